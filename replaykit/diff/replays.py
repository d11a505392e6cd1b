"""Compare what two replays of a panel showed, or a replay with a cassette, as far as a replay report says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replaykit import canonical
from replaykit.cassette import Cassette
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import DIFFERENT, SAME, UNFINISHED, EpisodeDiff, Finding
from replaykit.difference import MISSING, Difference

_MEMBERS = (
    ("panel", "panel"),
    ("engine", "engine"),
    ("header", "digest"),
    ("replay", "status"),
    ("replay", "requests"),
    ("database", "final_db_hash"),
    ("reward", "reward"),
    ("termination", "termination"),
)
_WHICH = ("kind", "seat", "number", "pointer")


def compare(left: dict, right: dict, ignored: Ignored, names: tuple[str, str]) -> EpisodeDiff:
    """Compare two entries of replay reports (see `of_cassette` for the form of a cassette)."""
    walk, found = Walk(), []
    for section, member in _MEMBERS:
        if member in left and member in right and not ignored.covers(member):
            values = [ignored.without(side[member], member) for side in (left, right)]
            found += [_finding(section, d) for d in walk.compare(*values, (member,))]
    found += _divergences(left.get("divergences"), right.get("divergences"), walk)
    found = [replace(f, follows_from=_causes(f, found)) for f in found]
    reasons = tuple(
        f"the {w} replay is {s['status']}"
        for w, s in (("left", left), ("right", right))
        if s.get("status") in ("incomplete", "error")
    )
    status = DIFFERENT if found else UNFINISHED if reasons else SAME
    sections = {section: DIFFERENT if section in {f.section for f in found} else SAME for section, _ in _MEMBERS}
    return EpisodeDiff(
        *names, str(left.get("panel") or right.get("panel")), None, status, tuple(found), reasons, sections
    )


def of_cassette(cassette: Cassette) -> dict[str, Any]:
    """A cassette in the form of a report's entry: what it says of itself."""
    entry = {"panel": cassette.panel, "digest": cassette.digest, "requests": len(cassette.requests)}
    result = cassette.result
    if result is None:
        return entry | {"status": "incomplete"}
    return entry | {"final_db_hash": result.final_db_hash, "reward": result.reward, "termination": result.termination}


def _divergences(left: Any, right: Any, walk: Walk) -> list[Finding]:
    """Divergences that only one replay shows, and those that both show otherwise."""
    if not isinstance(left, list) or not isinstance(right, list):
        return []
    ours, theirs = ({canonical.ordered([d.get(k) for k in _WHICH]): d for d in side} for side in (left, right))
    found = []
    for which in (*ours, *(w for w in theirs if w not in ours)):
        one, other = ours.get(which, MISSING), theirs.get(which, MISSING)
        named = one if other == MISSING else other
        place = canonical.pointer("divergences", named["kind"])
        differences = walk.compare(one, other) if MISSING not in (one, other) else [_one_sided(one, other)]
        found += [_of_divergence(named, place, d) for d in differences]
    return found


def _of_divergence(named: dict, place: str, d: Difference) -> Finding:
    about = {"seat": named.get("seat"), "number": named.get("number"), "note": named["sentence"]}
    return Finding("replay", place + d.pointer, d.pointer, d.kind, d.left, d.right, **about)


def _one_sided(left: Any, right: Any) -> Difference:
    return Difference("", "missing" if right == MISSING else "extra", left, right)


def _finding(section: str, found: Difference) -> Finding:
    note = (
        "a report holds the hash only: diff the cassettes for the rows" if found.pointer == "/final_db_hash" else None
    )
    kind = "not_located" if note else found.kind
    return Finding(section, found.pointer, found.pointer, kind, found.left, found.right, note=note)


def _causes(finding: Finding, found: list[Finding]) -> tuple[str, ...]:
    """Another engine, or another cassette, can be behind anything that a replay shows."""
    if finding.section in ("panel", "engine", "header"):
        return ()
    return tuple(s for s in ("panel", "engine", "header") if s in {f.section for f in found})
