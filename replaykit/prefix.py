"""Going live behind a recorded beginning: what resume and fork share.

The beginning goes through the same gateway as a recording: each request the engine asks is compared with the recorded
one and gets the recorded reply. Behind it the seats are asked. An episode whose beginning does not play as recorded
stops before anything is sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import Any

from replaykit.budget import Budget, BudgetSpent, Ledger
from replaykit.cassette import Cassette, RecordedRequest
from replaykit.engine.protocol import Engine, EngineIdentity, SeatModels
from replaykit.errors import PrefixDiverged, UsageError
from replaykit.recorded_terms import models
from replaykit.replay import Comparison, ReplayStopped
from replaykit.seating import Seating
from replaykit.seats import SEATS, ReplySource, SeatFailure, SeatReply, SeatRequest, TransportRequest, WireExchange
from replaykit.store.journal import Journal
from replaykit.transports.wire import mark_cut


class PrefixSource:
    """Answers recorded requests as they were answered, and asks a live seat for the others.

    A request that was written but whose outcome was not is answered from its wire exchange where that holds the whole
    response; only otherwise is it asked again.

    Args:
        requests: The recorded beginning.
        live: Who answers behind it.
    """

    def __init__(self, requests: tuple[RecordedRequest, ...], live: ReplySource) -> None:
        self._requests, self._live = requests, live

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """See `ReplySource.ask`; recorded exchanges are reported again, since their connections were paid for."""
        if request.number > len(self._requests):
            return self._live.ask(request, on_exchange)
        recorded = self._requests[request.number - 1]
        for exchange in recorded.exchanges:
            on_exchange(exchange)
        outcome = recorded.outcome
        if outcome is None and is_answered_on_wire(recorded, self._live):
            outcome = _read_again(recorded.exchanges[-1], self._live, request)
        if isinstance(outcome, SeatReply):
            return outcome
        if isinstance(outcome, SeatFailure):
            raise outcome
        if outcome is not None:
            raise BudgetSpent(str(outcome.get("limit")))
        return self._live.ask(request, on_exchange)


def is_answered_on_wire(recorded: RecordedRequest, live: ReplySource) -> bool:
    """Whether a request without outcome has one on the wire: the kill came between the two records."""
    if recorded.outcome is not None or not recorded.exchanges:
        return False
    last, (_, record) = recorded.exchanges[-1], recorded.exchange_records[-1]
    if last.failure is not None:
        return True
    body = (record["response"] or {}).get("body") or {}
    return last.response is not None and "withheld" not in body and hasattr(live, "from_wire")


def _read_again(exchange: WireExchange, live: Any, request: TransportRequest) -> SeatReply:
    if exchange.failure is not None:
        raise SeatFailure.from_dict(exchange.failure)
    answer = exchange.response
    reply = live.from_wire(answer["status"]["code"], answer["headers"], answer["body"], request)
    return mark_cut(reply, request.settings.get("max_output_tokens"))


class PrefixRecord:
    """Keeps the record of an episode that begins with a recording.

    Args:
        requests: The recorded beginning.
        journal: Where the rest goes.
        copies: Whether the beginning is written as well (a fork) or stands in the journal already (a resume).
        seam: Written as a note where the recording ends.
        states: Turns whose policy states are in the journal already.
    """

    def __init__(
        self,
        requests: tuple[RecordedRequest, ...],
        journal: Journal,
        copies: bool,
        seam: Mapping[str, Any],
        states: Set[int] = frozenset(),
    ) -> None:
        self._requests, self._journal, self._copies, self._seam, self._states = requests, journal, copies, seam, states
        self._comparison = Comparison(requests)
        self._seen: dict[int, int] = {}
        self._noted = False

    def request(self, request: SeatRequest) -> None:
        """Compare a recorded request, write any other.

        Raises:
            Stopped: it is another request than the recorded one.
        """
        if request.number > len(self._requests):
            self.note_seam()
            self._journal.request(request)
            return
        self._compare(request)
        if self._copies:
            self._journal.request(request)

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """Write a wire exchange that is not written yet."""
        seen = self._seen[number] = self._seen.get(number, 0) + 1
        if self._copies or number > len(self._requests) or seen > len(self._requests[number - 1].exchange_records):
            self.note_seam(number)
            self._journal.exchange(number, exchange)

    def reply(self, number: int, reply: SeatReply) -> None:
        """Write a reply that is not written yet."""
        if self._is_new(number):
            self._journal.reply(number, reply)

    def failure(self, number: int, failure: SeatFailure) -> None:
        """Write a failure that is not written yet."""
        if self._is_new(number):
            self._journal.failure(number, failure)

    def end(self, number: int, end: Mapping[str, Any]) -> None:
        """Write an end that is not written yet."""
        if self._is_new(number):
            self._journal.end(number, end)

    def state(self, turn: int, digest: str) -> None:
        """Write a policy state that is not written yet.

        Raises:
            PrefixDiverged: the episode ended before its recorded beginning did.
        """
        self._check_whole()
        if turn not in self._states:
            self._journal.state(turn, digest)

    def close(self, fields: Mapping[str, Any]) -> None:
        """Write result and footer.

        Raises:
            PrefixDiverged: the episode ended before its recorded beginning did.
        """
        self._check_whole()
        self.note_seam()
        self._journal.close(fields)

    def note_seam(self, number: int | None = None) -> None:
        """Write the seam, once, in front of the first thing that goes live."""
        if self._noted or (number is not None and number < self._live_from()):
            return
        self._noted = True
        self._journal.note({"seam": dict(self._seam)})

    def _check_whole(self) -> None:
        if self._comparison.asked < len(self._requests):
            missing = self._requests[self._comparison.asked]
            raise _diverged(
                f"the {missing.seat}'s request {missing.number} was recorded, but the episode ends before it"
            )

    def _live_from(self) -> int:
        return len(self._requests) + 1 if self._copies else 1

    def _is_new(self, number: int) -> bool:
        is_new = self._copies or number > len(self._requests) or self._requests[number - 1].outcome is None
        if is_new:
            self.note_seam(number)
        return is_new

    def _compare(self, request: SeatRequest) -> None:
        try:
            self._comparison.request(request)
        except ReplayStopped as stopped:
            raise Stopped(self._comparison.divergences[-1].sentence) from stopped
        if self._comparison.divergences:
            raise Stopped(self._comparison.divergences[-1].sentence)


class Stopped(BaseException):
    """The beginning departs from the recording. Not an Exception, so that tau2 does not swallow it."""


def play_on(play: Callable[[], Any]) -> Any:
    """Play an episode behind a recorded beginning.

    Raises:
        PrefixDiverged: the beginning departs from the recording.
    """
    try:
        return play()
    except Stopped as stopped:
        raise _diverged(str(stopped)) from stopped


def sources(requests: tuple[RecordedRequest, ...], live: Mapping[str, ReplySource]) -> dict[str, ReplySource]:
    """Reply sources of the three seats behind a recorded beginning."""
    return {seat: PrefixSource(requests, live[seat]) for seat in SEATS}


def configured(seated: Seating, parent: Cassette) -> Seating:
    """The seats with tau2 configured as in a recording: its models stand in every native request.

    A seat that the recording never asked is configured as its header says, and else as the one who sits there now.
    """
    recorded = models(parent)
    asked = {request.seat for request in parent.requests} | set(parent.header.get("configured") or ())
    kept = [getattr(recorded if seat in asked else seated.models, seat) for seat in SEATS]
    return replace(seated, models=SeatModels(*kept))


def ledger(requests: tuple[RecordedRequest, ...], asked_again: bool) -> Ledger:
    """The budget as the recorded beginning left it, as far as its exchanges say.

    The gateway debits the beginning's requests and connections as it plays them; the waiting is taken over here, and
    so is a request that was sent, never answered, and is asked again.
    """
    waited_s = sum(e.timing.get("total_s", 0.0) for r in requests for e in r.exchanges)
    book = Ledger(Budget(), time.monotonic)
    book.started_s -= waited_s
    book.waiting_s = waited_s
    book.requests = int(asked_again)
    return book


def check_same_ground(header: Mapping[str, Any], engine: Engine, fleet_digest: str) -> None:
    """Refuse to go on where the rest of the episode would run on something else than its beginning.

    Raises:
        UsageError: another fleet or another engine.
    """
    if header["fleet_digest"] != fleet_digest:
        raise UsageError("this cassette was recorded with another fleet: give that fleet with --fleet")
    ours, theirs = _ground(engine.identity), _ground(header["engine"])
    parts = [key for key in ours if ours[key] != theirs.get(key)]
    if parts:
        raise UsageError(f"this cassette was recorded on another engine ({', '.join(parts)} differ): use that engine")


def _ground(identity: EngineIdentity | Mapping[str, Any]) -> dict:
    data = identity.to_dict() if isinstance(identity, EngineIdentity) else dict(identity)
    return {key: value for key, value in data.items() if key not in ("python", "libraries")}


def _diverged(sentence: str) -> PrefixDiverged:
    return PrefixDiverged(f"{sentence}; nothing was asked: 'replaykit replay' shows what changed since it was recorded")
