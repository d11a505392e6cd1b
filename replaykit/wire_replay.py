"""Replay on the level of the wire: the transport's own code runs again on the recorded HTTP.

For each recorded exchange the transport builds its request anew, which has to be the recorded bytes, and reads the
recorded response anew, which has to give the recorded reply. So a changed transport or library shows as what it is.
Nothing is sent. Only transports that are built in or installed are run: a cassette cannot name code to import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from replaykit import transports
from replaykit.cassette import Cassette, RecordedRequest
from replaykit.diff.leaves import Walk
from replaykit.difference import Difference
from replaykit.divergence import Divergence
from replaykit.errors import ReplaykitError
from replaykit.seats import ReplySource, SeatFailure, SeatReply, TransportRequest, WireExchange
from replaykit.store.redaction import PLACEHOLDER, Redactor
from replaykit.transports import bodies, pairing
from replaykit.transports.wire import mark_cut

CHECKS = ("wire requests", "wire replies")
_BEFORE_SENDING = ("capability", "unsendable", "pairing")  # failures that a transport raises without a wire
_NO_PLACE = "http://localhost"


class WireReplay:
    """A reply source that answers as recorded, after running the transport's code on the recorded wire.

    Args:
        cassette: What is replayed.
        source: Answers as recorded.

    Attributes:
        divergences: What the transports do otherwise now.
        notes: What could not be run again, and why.
        checked: How many exchanges were run again.
        whole: Every exchange that could be was run again; those before a fork's seam are its parent's.
    """

    def __init__(self, cassette: Cassette, source: ReplySource) -> None:
        self._cassette, self._source = cassette, source
        self._transports: dict[str, Any] = {}
        self._from = (cassette.header.get("fork") or {}).get("at", 1)
        self.divergences: list[Divergence] = []
        self.notes: list[str] = []
        self.checked = 0
        self.whole = True

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """See `ReplySource.ask`."""
        recorded = self._cassette.requests[request.number - 1]
        if request.number >= self._from and (recorded.exchanges or _failed_before_sending(recorded)):
            transport = self._transport(request.seat, recorded)
            if transport is not None:
                self.divergences += _guarded(transport, request, recorded)
                self.checked += max(1, len(recorded.exchanges))
        return self._source.ask(request, on_exchange)

    def _transport(self, seat: str, recorded: RecordedRequest) -> Any:
        if seat not in self._transports:
            try:
                self._transports[seat] = _made(self._cassette, seat, recorded)
            except ReplaykitError as error:
                self._transports[seat], self.whole = None, False
                self.notes.append(f"the {seat}'s wire was not run again: {error}")
        return self._transports[seat]


def _made(cassette: Cassette, seat: str, recorded: RecordedRequest) -> Any:
    """The transport of a seat as the cassette's header describes it, without a sender and without a key."""
    identity = (cassette.header.get("transports") or {}).get(seat) or {}
    part = cassette.header["arm" if seat == "learner" else "roster"].get(seat) or {}
    name = str(part.get("transport") or identity.get("transport"))
    if name not in transports.names():
        raise ReplaykitError(f"the transport {name!r} is neither built in nor installed")
    options = {"body_fields": identity.get("body_fields") or {}, "dialect": identity.get("dialect") or {}}
    factory, model = transports.load(name), identity.get("model")
    made = factory(identity.get("base_url") or _NO_PLACE, model, None, None, **options)
    if not hasattr(made, "to_wire"):
        raise ReplaykitError(f"the transport {name!r} has no wire of its own")
    if identity.get("base_url") or not recorded.exchanges:
        return made
    return factory(_base_url(made, recorded), model, None, None, **options)


def _base_url(made: Any, recorded: RecordedRequest) -> str:
    """The base address behind a recorded one, where the header does not say: controls get a new port in every run."""
    uri = recorded.exchanges[0].request["uri"]
    request = TransportRequest(recorded.seat, recorded.number, recorded.native.model, [], None, None, {}, 0.0)
    path = urlsplit(made.url(request)).path
    return uri[: uri.rindex(path)] if path in uri else uri


def _failed_before_sending(recorded: RecordedRequest) -> bool:
    return isinstance(recorded.outcome, SeatFailure) and recorded.outcome.kind in _BEFORE_SENDING


def _guarded(transport: Any, request: TransportRequest, recorded: RecordedRequest) -> list[Divergence]:
    """As `_run_again`; a transport is anybody's code, and may raise anything."""
    try:
        return list(_run_again(transport, request, recorded))
    except ReplaykitError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        what = f"the transport's own code raises now: {said}"
        return [_divergence("wire_request", recorded, Difference("", "value", None, said), what)]


def _run_again(transport: Any, request: TransportRequest, recorded: RecordedRequest) -> Iterator[Divergence]:
    try:
        pairing.check(request.messages)
        body, failure = bodies.encode(transport.to_wire(request)), None
    except SeatFailure as raised:
        body, failure = b"", raised
    if failure is not None or not recorded.exchanges:
        yield from _refused(failure, recorded)
        return
    for position, exchange in enumerate(recorded.exchanges):
        yield from _request(transport, request, body, recorded, position)
        if exchange.response is not None and position == len(recorded.exchanges) - 1:
            yield from _reply(transport, request, recorded)


def _refused(failure: SeatFailure | None, recorded: RecordedRequest) -> Iterator[Divergence]:
    was = recorded.outcome.to_dict() if isinstance(recorded.outcome, SeatFailure) else None
    now = failure.to_dict() if failure else None
    if (was or {}).get("kind") != (now or {}).get("kind") or recorded.exchanges:
        word = "refuses to send" if failure else "sends"
        before = "was sent" if recorded.exchanges else "was refused"
        yield _divergence(
            "wire_request", recorded, Difference("", "value", was, now), f"the transport {word} now what {before}"
        )


def _request(
    transport: Any, request: TransportRequest, body: bytes, recorded: RecordedRequest, position: int
) -> Iterator[Divergence]:
    sent = recorded.exchanges[position].request
    was, now = _path(sent["uri"]), _path(Redactor().uri(transport.url(request)))
    if not was.endswith(now):
        found = Difference("/uri", "value", was, now)
        yield _divergence("wire_request", recorded, found, "the transport asks at another address now")
    packed = recorded.exchange_records[position][1]["request"]["body"] or {}
    is_redacted = isinstance(packed, dict) and (packed.get("redacted") or PLACEHOLDER.encode() in sent["body"])
    if body == sent["body"]:
        return
    found = next(iter(_body_differences(sent["body"], body)), None)
    if found is not None:
        what = f"the transport writes another body now, first at {found.pointer or 'the top'}"
        yield _divergence("wire_request", recorded, found, what)
    elif not is_redacted:
        spelt = Difference("", "spelling", _text(sent["body"]), _text(body))
        yield _divergence("wire_request", recorded, spelt, "the transport writes the same JSON in other bytes now")


def _path(uri: str) -> str:
    """An address without its host, which is configuration: a resumed recording may have been moved."""
    parts = urlsplit(uri)
    return urlunsplit(("", "", parts.path, parts.query, ""))


def _body_differences(recorded: bytes, now: bytes) -> list[Difference]:
    """Differences between two bodies, but for what redaction took out of the recorded one."""
    try:
        values = json.loads(recorded), json.loads(now)
    except (ValueError, RecursionError):
        return [Difference("", "value", _text(recorded), _text(now))]
    return [d for d in Walk().compare(*values) if not (isinstance(d.left, str) and PLACEHOLDER in d.left)]


def _reply(transport: Any, request: TransportRequest, recorded: RecordedRequest) -> Iterator[Divergence]:
    packed = (recorded.exchange_records[-1][1]["response"] or {}).get("body") or {}
    if "withheld" in packed or recorded.outcome is None:
        return
    answer = recorded.exchanges[-1].response
    try:
        read = transport.from_wire(answer["status"]["code"], answer["headers"], answer["body"], request)
        now = _plain(mark_cut(read, request.settings.get("max_output_tokens")))
    except SeatFailure as failure:
        now = _plain(failure)
    was = _plain(recorded.outcome)
    found = next((d for d in Walk().compare(was, Redactor().value(now)) if not _is_redacted(d)), None)
    if found is not None:
        what = f"the transport reads another reply in the recorded response now, first at {found.pointer or 'the top'}"
        yield _divergence("wire_reply", recorded, found, what)


def _is_redacted(found: Difference) -> bool:
    return isinstance(found.left, str) and PLACEHOLDER in found.left


def _plain(outcome: Any) -> dict:
    """A reply, or a failure without its words, which are the transport's own and may name the environment."""
    if isinstance(outcome, SeatReply):
        return outcome.to_dict()
    failure = outcome.to_dict() if isinstance(outcome, SeatFailure) else dict(outcome)
    return {"failure": {key: value for key, value in failure.items() if key != "message"}}


def _divergence(kind: str, recorded: RecordedRequest, found: Difference, what: str) -> Divergence:
    sentence = f"the {recorded.seat}'s request {recorded.number}: {what}"
    return Divergence(kind, found.pointer, found.left, found.right, sentence, recorded.seat, recorded.number)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
