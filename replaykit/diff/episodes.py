"""Compare two recorded episodes, from the outside in."""

from __future__ import annotations

from collections.abc import Iterable

from replaykit.cassette import Cassette
from replaykit.diff import conversations, headers, renumbering, results, wires
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import WORK_LIMIT, Walk
from replaykit.diff.values import DIFFERENT, SAME, SECTIONS, UNFINISHED, EpisodeDiff, Finding


def compare(
    left: Cassette,
    right: Cassette,
    ignored: Ignored | None = None,
    names: tuple[str, str] = ("left", "right"),
    work_limit: int = WORK_LIMIT,
    wire: bool = False,
) -> EpisodeDiff:
    """Compare two cassettes.

    Args:
        ignored: What is left out.
        names: How the result names both sides.
        work_limit: How many values may be looked at; reached, the result says so.
        wire: Compare the bodies that crossed the wire as well.

    Raises:
        EvidenceError: a cassette does not unfold.
    """
    ignored, walk = ignored or Ignored(), Walk(work_limit)
    found = headers.compare(left.header, right.header, walk, ignored)
    ids, renumbered = renumbering.renumbered(left, right)
    talk = _talk(left, right, ids or (None, None), walk, ignored, found)
    found += talk.findings()
    if wire:
        found += wires.compare(left, right, walk, ignored, [f.section for f in found])
    if not left.interrupted and not right.interrupted:
        ended = results.Results(left, right, ids, walk, ignored)
        found += list(results.with_causes(ended.findings(), list(found), ended.same_calls))
    reasons = tuple(_unfinished(left, right, talk, walk))
    status = DIFFERENT if found else UNFINISHED if reasons else SAME
    seed = left.header["seeds"].get("case")
    sections = _sections(found, reasons, wire)
    return EpisodeDiff(*names, left.panel, seed, status, tuple(found), reasons, sections, renumbered)


def _talk(
    left: Cassette, right: Cassette, ids: tuple, walk: Walk, ignored: Ignored, outside: Iterable[Finding]
) -> conversations.Talk:
    sides = [conversations.Conversation.of(c, i, ignored) for c, i in zip((left, right), ids, strict=True)]
    return conversations.Talk(*sides, walk, ignored, frozenset(f.section for f in outside))


def _unfinished(left: Cassette, right: Cassette, talk: conversations.Talk, walk: Walk) -> Iterable[str]:
    for word, side in (("left", left), ("right", right)):
        if side.interrupted:
            yield f"the {word} recording is interrupted: its result is not known"
    yield from talk.unfinished
    if walk.is_too_deep:
        yield "a value is nested too deeply to be compared"
    elif walk.unfinished:
        yield f"the limit of {walk.limit} compared values was reached: raise it with --work-limit"


def _sections(found: list[Finding], reasons: tuple[str, ...], wire: bool) -> dict[str, str]:
    differing = {f.section for f in found}
    looked_at = [s for s in SECTIONS if s != "replay" and (s != "wire" or wire)]
    rest = UNFINISHED if reasons else SAME
    return {s: DIFFERENT if s in differing else rest for s in looked_at}
