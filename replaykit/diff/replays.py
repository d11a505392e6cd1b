"""Compare what two replays of a panel showed, or a replay with a cassette, as far as a replay report says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replaykit import canonical
from replaykit.cassette import Cassette
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import DIFFERENT, SAME, UNFINISHED, EpisodeDiff, Finding
from replaykit.difference import Difference

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
    at = next((i for i, f in enumerate(found) if f.section not in ("panel", "engine", "header")), len(found))
    found[at:at] = _divergences(left.get("divergences"), right.get("divergences"), walk)
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
    """Places where a replay diverged: what each side holds there, which is the recorded value where it did not."""
    if not isinstance(left, list) or not isinstance(right, list):
        return []
    ours, theirs = ({canonical.ordered([d.get(k) for k in _WHICH]): d for d in side} for side in (left, right))
    found = []
    for which in (*ours, *(w for w in theirs if w not in ours)):
        one, other = ours.get(which), theirs.get(which)
        values = [_value(side, one or other) for side in (one, other)]
        found += [_of_divergence(one or other, d) for d in walk.compare(*values)]
    return found


def _value(divergence: dict | None, named: dict) -> Any:
    return named.get("recorded") if divergence is None else divergence.get("actual")


def _of_divergence(named: dict, d: Difference) -> Finding:
    pointer = str(named["pointer"]) + d.pointer
    place = canonical.pointer("divergences", named["kind"]) + pointer
    about = {"seat": named.get("seat"), "number": named.get("number"), "note": named["sentence"]}
    return Finding("replay", place, pointer, d.kind, d.left, d.right, **about)


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
