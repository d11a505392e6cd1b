"""From verified records to a `Cassette`: the shape of each record is checked where it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.cassette import (
    DIGEST_LENGTH,
    HEADER_KEYS,
    Cassette,
    RecordedRequest,
    summary_of,
)
from replaykit.errors import EvidenceError
from replaykit.pages import UNFIT, Pages
from replaykit.request_digest import RequestDigests
from replaykit.scoring.tally import Tally
from replaykit.seats import SEATS, SeatFailure, SeatReply, SeatRequest
from replaykit.store.agreement import check_exchange

_SHAPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "header": {
        **dict.fromkeys(HEADER_KEYS, object),
        **dict.fromkeys(("schema", "panel", "fleet_digest", "created_at"), str),
        **dict.fromkeys(("engine", "settings", "roster", "arm", "seeds", "created_by"), dict),
    },
    "request": {"n": int, "seat": str, "digest": str, "native": dict},
    "exchange": {"n": int, "attempt": int, "request": dict, "response": (dict, type(None))},
    "reply": {"n": int, "reply": dict},
    "failure": {"n": int, "failure": dict},
    "end": {"n": int, "end": dict},
    "state": {"turn": int, "digest": (str, dict)},
    "note": {"note": dict},
    "result": {},
    "footer": {"summary": dict, "fields": dict, "counts": dict, "digest": str},
}


_MISSING = object()


class Assembly:
    """Takes the records of one cassette in file order."""

    def __init__(self, path: Path | None) -> None:
        self.pages = Pages()
        self._path = path
        self._offset = 0
        self._digests = RequestDigests()
        self._header: dict = {}
        self._asked: dict[int, tuple[str, str]] = {}
        self._outcomes: dict[int, Any] = {}
        self._exchanges: dict[int, list[tuple[int, dict]]] = {}
        self.exchange_count = 0
        self._states: list[tuple[int, str]] = []
        self._notes: list[dict] = []
        self._result: dict | None = None
        self._footer: dict | None = None

    def add(self, record: dict, offset: int) -> None:
        """Take in the next record.

        Raises:
            EvidenceError: it has not the shape of its kind, or refers to what is not there.
        """
        self._offset = offset
        try:
            self._check_shape(record)
            for value in record.pop("new", ()):
                self.pages.shared.add(value)
            _TAKERS[record["kind"]](self, record)
        except UNFIT as error:
            raise self._fault(f"this {record.get('kind')} record is not well formed: {_reason(error)}") from error

    def cassette(self, digest: str, whole_bytes: int) -> Cassette:
        """What the records make."""
        return Cassette(
            header=self._header,
            requests=tuple(map(self._request, self._asked)),
            states=tuple(self._states),
            notes=tuple(self._notes),
            footer=self._footer,
            digest=digest,
            whole_bytes=whole_bytes,
            path=self._path,
        )

    def _request(self, number: int) -> RecordedRequest:
        seat, digest = self._asked[number]
        exchanges = tuple(self._exchanges.get(number, ()))
        return RecordedRequest(number, seat, digest, self._outcomes.get(number), exchanges, self.pages)

    def askers(self) -> dict[int, str]:
        """The seat of each request number."""
        return {number: seat for number, (seat, _) in self._asked.items()}

    def ended(self) -> set[int]:
        """The numbers of the requests that have an outcome."""
        return set(self._outcomes)

    def _fault(self, message: str) -> EvidenceError:
        return EvidenceError(message, self._path, self._offset)

    def _check_shape(self, record: dict) -> None:
        shape = _SHAPES.get(record["kind"])
        if shape is None:
            raise ValueError("no such kind of record in this schema")
        for member, kind in shape.items():
            value = record.get(member, _MISSING)
            if type(value) is kind:
                continue
            if value is _MISSING:
                raise ValueError(f"it lacks {member}")
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ValueError(f"its {member} is a {type(value).__name__}")
        if not isinstance(record.get("new", []), list):
            raise ValueError("its new shared values are no list")

    def _take_header(self, record: dict) -> None:
        self._header = {key: value for key, value in record.items() if key != "kind"}

    def _take_request(self, record: dict) -> None:
        number = record["n"]
        if number != len(self._asked) + 1:
            raise ValueError(f"request {number} comes where request {len(self._asked) + 1} was due")
        if record["seat"] not in SEATS:
            raise ValueError(f"there is no seat {record['seat']!r}")
        self.pages.natives.add(number, record["native"])
        native = SeatRequest.from_dict(self.pages.natives.value(number), number)
        digest = self._digests.of(native)
        if native.seat != record["seat"] or record["digest"] not in (digest, digest[:DIGEST_LENGTH]):
            raise ValueError(f"request {number} is not the one its digest names")
        self._asked[number] = record["seat"], digest

    def _take_exchange(self, record: dict) -> None:
        self._check_asked(record["n"])
        self._check_timing(record.get("timing", {}))
        self.exchange_count += 1
        for side, documents in (("request", self.pages.bodies), ("response", self.pages.answers)):
            body = (record[side] or {}).get("body")
            if isinstance(body, dict) and ("is" in body or "like" in body):
                documents.add(self.exchange_count, body)
                if documents.form(self.exchange_count) != "text":
                    documents.value(self.exchange_count)
        check_exchange(self.exchange_count, record, self.pages)
        self._exchanges.setdefault(record["n"], []).append((self.exchange_count, record))

    def _take_reply(self, record: dict) -> None:
        self.pages.replies.add(record["n"], record["reply"])
        self._outcome(record["n"], SeatReply.from_dict(self.pages.replies.value(record["n"])))

    def _take_failure(self, record: dict) -> None:
        self._outcome(record["n"], SeatFailure.from_dict(self.pages.shared.unfold(record["failure"])))

    def _take_end(self, record: dict) -> None:
        self._outcome(record["n"], self.pages.shared.unfold(record["end"]))

    def _take_state(self, record: dict) -> None:
        digest = self.pages.shared.unfold(record["digest"])
        if not isinstance(digest, str):
            raise ValueError("its digest is no text")
        self._states.append((record["turn"], digest))

    def _take_note(self, record: dict) -> None:
        self._notes.append(self.pages.shared.unfold(record["note"]))

    def _take_result(self, record: dict) -> None:
        if self._result is not None:
            raise ValueError("there are two results")
        self._result = {key: self.pages.shared.unfold(value) for key, value in record.items() if key != "kind"}

    def _take_footer(self, record: dict) -> None:
        if self._result is None:
            raise ValueError("there is no result before the footer")
        open_ends = [number for number in self._asked if number not in self._outcomes]
        if open_ends:
            raise ValueError(f"the recording is complete, but request {open_ends[0]} has no outcome")
        self._check_agreement(record)
        self._footer = {**self._result, **record["fields"], "summary": record["summary"]}

    def _check_agreement(self, footer: dict) -> None:
        """The short footer, which a quick look believes, says what the records say."""
        fields, result, states = footer["fields"], self._result.get("result"), self._result.get("policy_states")
        if not canonical.same(footer["summary"], summary_of(result or {})):
            raise ValueError("its summary is not that of the result")
        asked = ((seat, self._outcomes[number]) for number, (seat, _) in self._asked.items())
        if "usage" in fields and fields["usage"] != Tally.of(asked).seats:
            raise ValueError("its usage is not what the replies add up to")
        if "policy_counts" in fields:
            from replaykit import policy  # for those alone who read whole cassettes

            if states is None or fields["policy_counts"] != policy.counts(states["final"]):
                raise ValueError("its policy counts are not those of the final policy state")

    def _check_timing(self, timing: Any) -> None:
        if not isinstance(timing, dict) or not all(isinstance(s, (int, float)) for s in timing.values()):
            raise ValueError("its timing holds no seconds")

    def _check_asked(self, number: int) -> None:
        if number not in self._asked:
            raise ValueError(f"request {number} was not asked before")

    def _outcome(self, number: int, outcome: Any) -> None:
        self._check_asked(number)
        if number in self._outcomes:
            raise ValueError(f"request {number} has two outcomes")
        self._outcomes[number] = outcome


_TAKERS: dict[str, Callable[[Assembly, dict], None]] = {kind: getattr(Assembly, f"_take_{kind}") for kind in _SHAPES}


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)
