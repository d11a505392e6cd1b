"""Replay reports for people and as JSON. The JSON holds no clock: the same cassettes give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replaykit import canonical

SCHEMA = "replaykit.replay-report/1"
_SHOWN = 400


def document(outcomes: list[Any]) -> dict:
    """All outcomes as one document."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        status = outcome.report.status if outcome.report else "error"
        counts[status] = counts.get(status, 0) + 1
    return {
        "schema": SCHEMA,
        "counts": dict(sorted(counts.items())),
        "cassettes": [canonical.encode(o.to_dict()) for o in outcomes],
    }


def text(outcomes: list[Any]) -> str:
    """The document as a file's text."""
    return canonical.pretty(document(outcomes))


def lines(outcomes: list[Any]) -> Iterator[str]:
    """What a person reads: one line an outcome that is equal, a paragraph for the others, a summary."""
    for outcome in outcomes:
        yield from _outcome(outcome)
    counts = document(outcomes)["counts"]
    total, equal = len(outcomes), counts.pop("equal", 0)
    rest = "".join(f", {n} {status}" for status, n in counts.items())
    divergences = sum(len(o.report.divergences) for o in outcomes if o.report)
    yield f"replay: {equal}/{total} equal{rest}, {divergences} divergences"


def _outcome(outcome: Any) -> Iterator[str]:
    report = outcome.report
    if report is None:
        yield f"ERROR      {outcome.error}"
        return
    word = {"equal": "equal", "diverged": "DIVERGED", "incomplete": "incomplete"}[report.status]
    yield f"{word:<10} {report.panel:<12} {report.requests:>3} requests  {report.cassette}"
    for note in report.notes:
        yield f"           note: {note}"
    if report.divergences:
        first = report.divergences[0]
        yield f"           first divergence: {first.sentence}"
        yield f"             recorded: {shown(first.recorded)}"
        yield f"             now:      {shown(first.actual)}"
        if first.environment:
            yield f"             environment differs: {first.environment}"
        if len(report.divergences) > 1:
            others = [d.kind for d in report.divergences[1:]]
            yield f"           and {len(others)} more: {', '.join(others)}"


def shown(value: Any) -> str:
    """A value on one line, control characters escaped, cut."""
    line = canonical.ordered(value).decode("utf-8", "backslashreplace")
    clean = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line)
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 1] + "…"
