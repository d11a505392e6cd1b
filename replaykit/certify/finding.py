"""What a judging function says of one capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class Failed(Exception):
    """A check found its fault.

    Args:
        code: One of the check's codes.
        where: Which step or part, for a person.
    """

    def __init__(self, code: str, where: str = "") -> None:
        super().__init__(f"{code} {where}".strip())
        self.code, self.where = code, where


class Unseen(Exception):
    """The capture does not hold what the check has to look at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check, for one probe, one panel or as a whole.

    Attributes:
        status: One of `replaykit.certificate.STATUSES`.
        code: Stable reason of a failure, or None.
        where: Which part, for a person.
        exercised: How many exchanges at the control it rests on.
        timing_ms: Durations measured; never compared between runs.
    """

    status: str
    code: str | None = None
    where: str = ""
    exercised: int = 0
    timing_ms: dict[str, int] = field(default_factory=dict)


_ORDER = ("ERROR", "FAIL", "NOT_EXERCISED", "PASS", "WAIVED", "NOT_APPLICABLE")


def combined(findings: Iterable[Finding]) -> Finding:
    """The worst of several findings with the sum of what they rest on; nothing at all is not exercised."""
    found = list(findings)
    if not found:
        return Finding("NOT_EXERCISED", "nothing_asked")
    worst = min(found, key=lambda f: _ORDER.index(f.status))
    timing: dict[str, int] = {}
    for finding in found:
        timing |= finding.timing_ms
    return Finding(worst.status, worst.code, worst.where, sum(f.exercised for f in found), timing)
