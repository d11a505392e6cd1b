"""A comparison for a terminal: the first difference, then section by section, causes told from consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from replaykit import canonical
from replaykit.reports.untrusted import one_line

_SHOWN = 3  # differences a section shows, unless all are wanted
_ROWS = 20  # database rows are what most people look for
_CUT = 300
_WORDS = {"same": "same", "different": "DIFFERENT", "unfinished": "UNFINISHED", "error": "ERROR"}
Style = Callable[..., str]


def plain(text: str, **_: Any) -> str:
    """No colours."""
    return text


def lines(report: Any, show_all: bool = False, style: Style = plain) -> Iterator[str]:
    """What a person reads.

    Args:
        report: A `DiffReport`.
        show_all: Print every difference.
        style: Colours text, as ``click.style`` does.
    """
    for pair in report.pairs:
        yield from _pair(pair, show_all, style)
    yield from _changes(report)
    for pointer, count in report.ignored.items():
        yield f"ignored: {pointer} ({count} places left out)"
    counts = report.to_dict()["counts"]
    yield f"diff: {len(report.pairs)} pairs: " + ", ".join(f"{n} {status}" for status, n in counts.items())


def _pair(pair: Any, show_all: bool, style: Style) -> Iterator[str]:
    colour = {"same": "green", "different": "red"}.get(pair.status, "yellow")
    trial = "" if pair.case_seed is None else f"  case seed {pair.case_seed}"
    names = f"{one_line(pair.left or 'nothing')} | {one_line(pair.right or 'nothing')}"
    yield f"{style(_WORDS[pair.status], fg=colour):<10} {pair.panel:<12}{trial}  {names}"
    if None in (pair.left, pair.right):
        yield f"  {pair.first.note}" if pair.first else f"  {one_line(pair.error)}"
        return
    if pair.error:
        yield f"  {one_line(pair.error)}"
    for reason in pair.unfinished:
        yield f"  not everything was compared: {reason}"
    if pair.renumbered:
        yield f"  {pair.renumbered} tool calls carry other ids at the same place: no change of behaviour"
    if pair.first is not None:
        yield "  first difference:"
        yield from _finding(pair.first, style)
    if pair.first_request not in (None, pair.first):
        yield "  first request that differs:"
        yield from _finding(pair.first_request, style)
    for section, findings in groupby(pair.findings, key=_group):
        yield from _section(section, list(findings), show_all, style)


def _group(finding: Any) -> str:
    return "requests and replies" if finding.section in ("requests", "replies") else finding.section


def _section(section: str, findings: list, show_all: bool, style: Style) -> Iterator[str]:
    causes = sum(f.is_cause for f in findings)
    if causes == len(findings):
        word = "a cause"
    elif causes:
        word = f"{causes} of them causes, the others may follow from earlier differences"
    else:
        word = f"may follow from: {', '.join(dict.fromkeys(c for f in findings for c in f.follows_from))}"
    count = "1 difference" if len(findings) == 1 else f"{len(findings)} differences"
    yield f"  {style(section, bold=True)}: {count} ({word})"
    most = len(findings) if show_all else _ROWS if section == "database" else _SHOWN
    for finding in [*sorted(findings, key=lambda f: not f.is_cause)][:most]:
        yield from _finding(finding, style)
    if len(findings) > most:
        yield f"    … and {len(findings) - most} more (--all shows them)"


def _finding(finding: Any, style: Style) -> Iterator[str]:
    from replaykit.diff.values import KIND_WORDS

    cause = "" if finding.is_cause else "  ← " + ", ".join(finding.follows_from)
    yield f"    {one_line(finding.where)}: {KIND_WORDS.get(finding.kind, finding.kind)}{cause}"
    if finding.note:
        yield f"      {one_line(finding.note)}"
    if finding.before:
        yield f"      before: {_shown(finding.before[0])}"
    if finding.inner:
        yield from (f"      {one_line(d.pointer)}: {_shown(d.left)} → {_shown(d.right)}" for d in finding.inner[:_ROWS])
    elif finding.line is not None:
        yield "      " + _cut(_line(finding.line, style), _CUT * 3)
    elif finding.kind != "not_located" or finding.note:
        yield from (
            f"      {word} {_shown(value)}" for word, value in (("left:  ", finding.left), ("right: ", finding.right))
        )


def _line(segments: Iterable[tuple[str, str]], style: Style) -> str:
    forms = {
        "=": lambda t: t,
        "-": lambda t: style(f"[-{t}-]", fg="red"),
        "+": lambda t: style(f"{{+{t}+}}", fg="green"),
    }
    return "".join(forms[word](_cut(one_line(text))) for word, text in segments)


def _changes(report: Any) -> Iterator[str]:
    """Causes that several panels share; those of one section and the same panels on one line."""
    groups: dict[tuple, list] = {}
    for change in report.changes:
        if len(change.panels) > 1:
            place = _place(change.finding) if change.finding.number is not None else change.finding.section
            groups.setdefault((change.finding.section, change.panels, place), []).append(change)
    if groups:
        yield "causes that several panels share:"
    for (_, panels, place), changes in groups.items():
        named = ", ".join(panels[:8]) + (f" and {len(panels) - 8} more" if len(panels) > 8 else "")
        where = _place(changes[0].finding) if len(changes) == 1 else f"{place}, {len(changes)} places"
        yield f"  {one_line(where)}: {len(panels)} panels ({named})"


def _place(finding: Any) -> str:
    """Where a shared cause is, without the number of the request it is first seen in."""
    return f"{finding.seat}'s {finding.section} at {finding.pointer}" if finding.number is not None else finding.where


def _shown(value: Any) -> str:
    from replaykit.diff.values import is_missing

    return (
        "nothing"
        if is_missing(value)
        else _cut(one_line(canonical.ordered(canonical.encode(value)).decode("utf-8", "surrogatepass")))
    )


def _cut(text: str, most: int = _CUT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
