"""What a comparison found, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replaykit import canonical
from replaykit.diff import text
from replaykit.difference import MISSING, Difference

SAME, DIFFERENT, UNFINISHED, FAILED = "same", "different", "unfinished", "error"
SECTIONS = (
    "panel",
    "engine",
    "fleet",
    "settings",
    "roster",
    "arm",
    "transports",
    "versions",
    "seeds",
    "header",
    "requests",
    "replies",
    "wire",
    "simulation",
    "database",
    "policy states",
    "reward",
    "termination",
    "diagnostics",
    "usage",
    "replay",
)
"""From the outside in: what an episode ran on, what crossed its seats, what it ended in, what it cost."""
KIND_WORDS = {
    "value": "another value",
    "type": "another type",
    "number": "the same number in another spelling",
    "spelling": "the same JSON in another spelling",
    "missing": "only on the left",
    "extra": "only on the right",
    "order": "the same in another order",
    "seat": "another seat",
    "no_text": "no text on both sides, written otherwise",
    "not_located": "difference not located",
}
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference.

    Attributes:
        section: One of `SECTIONS`.
        place: JSON pointer from the top of the episode's document; what ``--ignore`` takes.
        pointer: JSON pointer within the request, reply, row or section.
        kind: One of `KIND_WORDS`.
        left, right: Both values, or `difference.MISSING`.
        seat, number: Of the request, where it is about one.
        table, key, field: Of the database row, where it is about one; field is None for a whole row.
        before: The one value that the untouched row holds there; empty where the row is new, or it is not known.
        inner: Differences inside two JSON texts, where the values are such.
        right_pointer: Where it is on the right, when that is elsewhere.
        follows_from: Which differences among its inputs it can follow from; empty: none of its inputs differs, so it
            is a cause.
        note: What else a person needs to know.
    """

    section: str
    place: str
    pointer: str
    kind: str
    left: Any
    right: Any
    seat: str | None = None
    number: int | None = None
    table: str | None = None
    key: str | None = None
    field: str | None = None
    before: tuple[Any, ...] = ()
    inner: tuple[Difference, ...] = ()
    right_pointer: str | None = None
    follows_from: tuple[str, ...] = ()
    note: str | None = None

    @property
    def is_cause(self) -> bool:
        """Nothing it depends on differs."""
        return not self.follows_from

    @property
    def where(self) -> str:
        """The place in words."""
        if self.table is not None:
            return f"{self.table} {self.key}" + (f" {self.field}" if self.field else "")
        if self.number is not None:
            what = "reply" if self.section == "replies" else "wire body" if self.section == "wire" else "request"
            return f"{self.seat}'s {what} {self.number}" + (f" at {self.pointer}" if self.pointer else "")
        return f"{self.section} at {self.pointer}" if self.pointer else self.section

    @property
    def line(self) -> text.Segments | None:
        """Both texts within one line, where both are texts."""
        if isinstance(self.left, str) and isinstance(self.right, str) and not self.inner:
            return text.segments(self.left, self.right)
        return None

    def to_dict(self) -> dict:
        """Plain data; a value longer than 4,000 characters is cut, with its digest."""
        data: dict[str, Any] = {
            "section": self.section,
            "place": self.place,
            "pointer": self.pointer,
            "kind": self.kind,
        }
        for name in ("right_pointer", "seat", "number", "table", "key", "field"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        if self.before:
            data["before"] = shortened(self.before[0])
        data |= {"left": shortened(self.left), "right": shortened(self.right)}
        if self.inner:
            data["inner"] = [d.to_dict() for d in self.inner]
        line = self.line
        if line is not None:
            data["line"] = [[word, part] for word, part in shortened_line(line)]
        data["follows_from"] = list(self.follows_from)
        return data | ({"note": self.note} if self.note else {})


@dataclass(frozen=True, slots=True)
class EpisodeDiff:
    """Two episodes compared.

    Attributes:
        left, right: Names of both sides, or None: there is none.
        panel: The panel's id.
        case_seed: The trial, or None: unknown.
        status: ``same``, ``different``, ``unfinished`` (nothing found, but not everything was compared), ``error``.
        findings: In the order of `SECTIONS`, requests and replies by number.
        unfinished: Why not everything was compared.
        sections: Status of each section that was looked at.
        renumbered: How many tool calls carry other ids at the same place: no change of behaviour.
        error: Why there is no comparison, and the exit code that goes with it.
    """

    left: str | None
    right: str | None
    panel: str
    case_seed: int | None
    status: str
    findings: tuple[Finding, ...] = ()
    unfinished: tuple[str, ...] = ()
    sections: dict[str, str] = field(default_factory=dict)
    renumbered: int = 0
    error: str | None = None
    exit_code: int = 0

    @property
    def first(self) -> Finding | None:
        """The first difference in the order in which an episode comes about."""
        return self.findings[0] if self.findings else None

    @property
    def first_request(self) -> Finding | None:
        """The first request that differs, is missing, or is asked on one side only."""
        return next((f for f in self.findings if f.section == "requests"), None)

    def to_dict(self) -> dict:
        """Plain data."""
        data: dict[str, Any] = {
            "panel": self.panel,
            "case_seed": self.case_seed,
            "left": self.left,
            "right": self.right,
            "status": self.status,
            "sections": self.sections,
            "first": self.first.to_dict() if self.first else None,
            "first_request": self.first_request.to_dict() if self.first_request else None,
            "causes": [i for i, finding in enumerate(self.findings) if finding.is_cause],
            "findings": [finding.to_dict() for finding in self.findings],
            "unfinished": list(self.unfinished),
            "renumbered_tool_call_ids": self.renumbered,
        }
        return data | ({"error": self.error, "exit_code": self.exit_code} if self.error else {})


def shortened(value: Any) -> Any:
    """A value as it is, or its beginning, size and digest."""
    written = canonical.ordered(canonical.encode(value))
    if len(written) <= _LONGEST:
        return canonical.encode(value)
    begins = written[:1_000].decode("utf-8", "replace")
    return {"$cut": len(written), "begins": begins, "digest": canonical.sha256(written)}


def shortened_line(line: text.Segments) -> text.Segments:
    """A line whose changed parts are cut like values."""
    return [(word, part if len(part) <= _LONGEST else part[:1_000] + "…") for word, part in line]


def is_missing(value: Any) -> bool:
    """Whether there is nothing on this side."""
    return value == MISSING
