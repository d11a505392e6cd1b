"""Faults and the schedule that fixes them before the run.

A fault is plain data: a kind and its options. What it puts on the wire is decided in `delivery`, so that a schedule
can be written down, digested and committed to before the first request arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replaykit import canonical
from replaykit.controls.replies import Reply
from replaykit.seats import SEATS

STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
REDIRECTS = (301, 302, 307, 308)

KINDS: dict[str, dict[str, Any]] = {
    # the reply itself
    "reply": {"reply": {}},  # another reply instead of the one that is due
    "patch": {"patch": {}},  # the reply that is due, with some members changed
    "echo": {"place": "content", "text": None},  # the caller's credential (or a text), in the reply
    "echo_error": {"text": None},  # the same in a 401, and once more in a header in base64
    "overflow": {"limit": 32_768},  # the wire's words for a prompt that does not fit
    "status": {"status": 500, "retry_after": None, "retry_after_date_s": None, "message": None, "code": None},
    "error_under_200": {"status": 500},  # an error body with status 200
    "redirect": {"status": 307, "target": "self"},  # to itself, or to this origin
    # the form of the body
    "html": {"status": 200},
    "event_stream": {},
    "wrong_type": {"content_type": "text/plain"},
    "invalid_utf8": {},
    "gzip_lie": {},
    "byte_order_mark": {},
    "empty_body": {},
    "cut_json": {"keep": 0.5},  # a shorter body with the right length
    "raw": {"body": "", "status": 200, "content_type": "application/json"},
    # the framing
    "wrong_length": {"by": 64},  # the length claimed is larger by this (negative: smaller)
    "half_body": {"keep": 0.5, "then": "close"},
    "reset_mid_body": {"keep": 0.5},
    "reset_before_headers": {},
    "unterminated_chunks": {"then": "close"},
    "close_after_headers": {},
    "close_without_reply": {},
    "idle_close": {"after_s": 0.0},
    # time
    "silence": {},
    "dribble": {"interval_s": 1.0, "for_s": 60.0},
    "late": {"headers_s": 0.0, "body_s": 0.0},  # when the headers begin and the body ends, after the request
}
ENDS = ("close", "reset", "silence")
PLACES = ("content", "nested")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. Options that are not given have the defaults listed in `KINDS`.

    Raises:
        ValueError: there is no such kind, option or value.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r}; choose from {', '.join(KINDS)}")
        unknown = sorted(set(self.options) - set(KINDS[self.kind]))
        if unknown:
            raise ValueError(f"the fault {self.kind!r} has no option {unknown[0]!r}; it has {sorted(KINDS[self.kind])}")
        object.__setattr__(self, "options", MappingProxyType(KINDS[self.kind] | dict(self.options)))
        _check_choices(self)

    def __getitem__(self, option: str) -> Any:
        return self.options[option]

    def to_dict(self) -> dict:
        """Kind and all options, defaults included."""
        return {"kind": self.kind, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fault:
        """Undo `to_dict`.

        Raises:
            KeyError, ValueError: the data is not a fault.
        """
        return cls(data["kind"], data.get("options", {}))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which request of which seat meets which fault; fixed before the run, unseen by the transport.

    Attributes:
        faults: By seat and ordinal (from 1, counted over the whole requests of a case and seat).
        always: By seat, for every request without a fault of its own.
    """

    faults: Mapping[str, Mapping[int, Fault]] = field(default_factory=dict)
    always: Mapping[str, Fault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for seat in (*self.faults, *self.always):
            if seat not in SEATS:
                raise ValueError(f"there is no seat {seat!r}; choose from {', '.join(SEATS)}")
        if any(ordinal < 1 for by_ordinal in self.faults.values() for ordinal in by_ordinal):
            raise ValueError("ordinals in a schedule begin at 1")

    def fault(self, seat: str, ordinal: int) -> Fault | None:
        """The fault that this request meets, or None."""
        return self.faults.get(seat, {}).get(ordinal) or self.always.get(seat)

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the whole schedule."""
        return canonical.digest(self.to_dict())

    def to_dict(self) -> dict:
        """Plain data; ordinals become text."""
        faults = {s: {str(n): f.to_dict() for n, f in sorted(by.items())} for s, by in self.faults.items()}
        return {"faults": faults, "always": {s: f.to_dict() for s, f in self.always.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schedule:
        """Undo `to_dict`.

        Raises:
            KeyError, ValueError: the data is not a schedule.
        """
        faults = {s: {int(n): Fault.from_dict(f) for n, f in by.items()} for s, by in data["faults"].items()}
        return cls(faults, {s: Fault.from_dict(f) for s, f in data["always"].items()})


def patched(reply: Reply, patch: Mapping[str, Any]) -> Reply:
    """The reply with some members of its plain form replaced.

    Raises:
        KeyError, TypeError, ValueError: the result is no reply.
    """
    return Reply.from_dict(reply.to_dict() | dict(patch))


def _check_choices(fault: Fault) -> None:
    allowed = {"then": ENDS, "place": PLACES}
    for option, choices in allowed.items():
        if option in fault.options and fault[option] not in choices:
            raise ValueError(f"{option} of the fault {fault.kind!r} is one of {', '.join(choices)}")
    if fault.kind == "redirect" and fault["status"] not in REDIRECTS:
        raise ValueError(f"a redirect has one of the statuses {REDIRECTS}")
    for option, default in KINDS[fault.kind].items():
        is_number = isinstance(fault[option], int | float) and not isinstance(fault[option], bool)
        if isinstance(default, int | float) and not is_number:
            raise ValueError(f"{option} of the fault {fault.kind!r} is a number, not {fault[option]!r}")
    if fault.kind in ("reply", "patch"):
        _check_reply(fault)


def _check_reply(fault: Fault) -> None:
    try:
        patched(Reply("x"), fault[fault.kind])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the fault {fault.kind!r} describes no reply: {error}") from error
