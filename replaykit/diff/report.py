"""Compare two sides pair by pair, and say what the differences have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.diff import episodes, replays, sides
from replaykit.diff.headers import NEVER_COMPARED
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import WORK_LIMIT
from replaykit.diff.values import DIFFERENT, FAILED, SAME, UNFINISHED, EpisodeDiff, Finding
from replaykit.errors import ReplaykitError

SCHEMA = "replaykit.diff/1"
_OUTSIDE = {"panel", "engine", "fleet", "arm", "roster", "seeds", "versions", "header"}


@dataclass(frozen=True, slots=True)
class Change:
    """One cause that several pairs share.

    Attributes:
        finding: As the first of them shows it.
        panels: Panels it touches, in fleet order.
    """

    finding: Finding
    panels: tuple[str, ...]

    def to_dict(self) -> dict:
        """Plain data."""
        return {"finding": self.finding.to_dict(), "panels": list(self.panels)}


@dataclass(frozen=True, slots=True)
class DiffReport:
    """What a comparison showed. It holds no clock: the same files give the same bytes.

    Attributes:
        left, right: Both sides as given.
        pairs: In fleet order.
        ignored: Pointer -> how many places it took out.
    """

    left: str
    right: str
    pairs: tuple[EpisodeDiff, ...]
    ignored: dict[str, int]

    @property
    def status(self) -> str:
        """``different`` if any pair is, else ``error``, else ``unfinished``, else ``same``."""
        found = {pair.status for pair in self.pairs}
        return next((s for s in (DIFFERENT, FAILED, UNFINISHED) if s in found), SAME)

    @property
    def exit_code(self) -> int:
        """0 same, 1 different, 3 unfinished; a file that could not be read decides before all."""
        codes = {pair.exit_code for pair in self.pairs if pair.status == FAILED}
        codes |= {{SAME: 0, DIFFERENT: 1, UNFINISHED: 3}.get(pair.status, 0) for pair in self.pairs}
        return next((code for code in (6, 5, 4, 2, 1, 3) if code in codes), 0)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What was changed, each once, with the panels it touches: causes, and what another engine brings along."""
        found: dict[bytes, list[tuple[Finding, str]]] = {}
        for pair in self.pairs:
            for finding in _distinct(f for f in pair.findings if _is_change(f)):
                found.setdefault(_identity(finding), []).append((finding, pair.panel))
        return tuple(Change(group[0][0], tuple(dict.fromkeys(p for _, p in group))) for group in found.values())

    def to_dict(self) -> dict:
        """Plain data."""
        counts: dict[str, int] = {}
        for pair in self.pairs:
            counts[pair.status] = counts.get(pair.status, 0) + 1
        return {
            "schema": SCHEMA,
            "left": self.left,
            "right": self.right,
            "status": self.status,
            "counts": dict(sorted(counts.items())),
            "changes": [change.to_dict() for change in self.changes],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ignored": [{"pointer": pointer, "left_out": count} for pointer, count in self.ignored.items()],
            "never_compared": [{"pointer": pointer, "why": why} for pointer, why in NEVER_COMPARED.items()],
        }


Pairs = list[tuple[sides.Item | None, sides.Item | None]]


def pairs(left: Path, right: Path) -> Pairs:
    """Which episodes of two sides belong together.

    Raises:
        UsageError: nothing to compare on a side.
        EvidenceError: a single file is damaged.
    """
    return list(sides.pairs(sides.items(left), sides.items(right)))


def compare(
    left: Path,
    right: Path,
    ignore: Iterable[str] = (),
    work_limit: int = WORK_LIMIT,
    wire: bool = False,
    watch: Any = None,
    paired: Pairs | None = None,
) -> DiffReport:
    """Compare two sides: cassettes, replay reports, or folders of either.

    Args:
        ignore: JSON pointers to leave out, ``*`` for any one step.
        work_limit: Compared values a pair; reached, the pair is unfinished.
        wire: Compare the bodies that crossed the wire as well.
        watch: Told when a pair is done (`step(errors=bool)`).
        paired: What `pairs` gave for both sides, if it was asked.

    Raises:
        UsageError: nothing to compare on a side, or a bad pointer.
        EvidenceError: a single file is damaged.
    """
    ignored, done = Ignored(ignore), []
    paired = pairs(left, right) if paired is None else paired
    for one, other in paired:
        done.append(_pair(one, other, ignored, work_limit, wire, len(paired) == 1))
        if watch is not None:
            watch.step(errors=done[-1].status != SAME)
    return DiffReport(str(left), str(right), tuple(done), ignored.counts)


def _pair(
    left: sides.Item | None, right: sides.Item | None, ignored: Ignored, work_limit: int, wire: bool, is_only: bool
) -> EpisodeDiff:
    if left is None or right is None:
        return _one_sided(left, right)
    names = left.name, right.name
    try:
        for item in (left, right):
            if item.error is not None:
                raise item.error
        if left.path is not None and right.path is not None:
            return episodes.compare(sides.read(left), sides.read(right), ignored, names, work_limit, wire)
        entries = [i.report if i.path is None else replays.of_cassette(sides.read(i)) for i in (left, right)]
        return replays.compare(*entries, ignored, names)
    except ReplaykitError as error:
        if is_only:
            raise
        return EpisodeDiff(
            *names, left.panel or right.panel, left.case_seed, FAILED, error=str(error), exit_code=error.exit_code
        )


def _one_sided(left: sides.Item | None, right: sides.Item | None) -> EpisodeDiff:
    item = left or right
    if item.error is not None:
        return EpisodeDiff(
            left and left.name,
            right and right.name,
            item.panel,
            item.case_seed,
            FAILED,
            error=str(item.error),
            exit_code=item.error.exit_code,
        )
    kind, values = ("missing", (item.panel, None)) if right is None else ("extra", (None, item.panel))
    finding = Finding(
        "panel", "", "", kind, *values, note=f"only the {'left' if right is None else 'right'} side has this episode"
    )
    return EpisodeDiff(left and left.name, right and right.name, item.panel, item.case_seed, DIFFERENT, (finding,))


def _is_change(finding: Finding) -> bool:
    """A cause, or a place of a request that follows from the outside alone: a tool's text under another engine."""
    is_place = finding.section == "requests" or finding.place.startswith("/divergences")
    return finding.is_cause or (is_place and set(finding.follows_from) <= _OUTSIDE)


def _distinct(findings: Iterable[Finding]) -> Iterable[Finding]:
    return {_identity(f): f for f in findings}.values()


def _identity(finding: Finding) -> bytes:
    """What makes two causes one change: the same place and the same values, whatever the request's number."""
    return canonical.ordered(
        [finding.section, finding.seat, finding.pointer, finding.kind, canonical.encode([finding.left, finding.right])]
    )
