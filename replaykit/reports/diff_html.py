"""A comparison as one self-contained page: no script, nothing loaded, all recorded text shown as text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any

from replaykit import canonical
from replaykit.reports.untrusted import shown

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--left:#c33;--right:#2a7;--dim:#888}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem} table{border-collapse:collapse;width:100%;table-layout:fixed;margin:.3rem 0 1rem}
td,th{border:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
td pre{margin:0;white-space:pre-wrap;font:13px/1.45 ui-monospace,monospace}
details{border:1px solid var(--line);border-radius:.4rem;margin:.5rem 0;padding:.3rem .7rem}
summary{cursor:pointer} .dim{color:var(--dim)} del{color:var(--left)} ins{color:var(--right)}
.different{color:var(--left)} .same{color:var(--right)} .cause{font-weight:600}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LONGEST = 4_000


def page(report: Any) -> str:
    """The page of a `DiffReport`."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Any) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>{_text(report.left)} | {_text(report.right)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{_text(report.left)} <span class=dim>and</span> {_text(report.right)}: {_status(report.status)}</h1>"
    yield from _changes(report)
    for pair in report.pairs:
        yield from _pair(pair, len(report.pairs) == 1)
    for pointer, count in report.ignored.items():
        yield f"<p class=dim>ignored: <code>{_text(pointer)}</code>, {count} places left out</p>"
    yield "</body></html>"


def _changes(report: Any) -> Iterator[str]:
    shared = [change for change in report.changes if len(change.panels) > 1]
    if shared:
        yield "<h2>Causes that several panels share</h2><ul>"
        for change in shared:
            panels = f"{len(change.panels)} panels: {_text(', '.join(change.panels))}"
            yield f"<li>{_text(change.finding.where)} <span class=dim>{panels}</span></li>"
        yield "</ul>"


def _pair(pair: Any, is_open: bool) -> Iterator[str]:
    trial = "" if pair.case_seed is None else f", case seed {pair.case_seed}"
    yield f"<details{' open' if is_open else ''}><summary><b>{_text(pair.panel)}</b>{trial}: {_status(pair.status)}"
    yield f" <span class=dim>{_text(pair.left or 'nothing')} | {_text(pair.right or 'nothing')}</span></summary>"
    if pair.error:
        yield f"<p>{_text(pair.error)}</p>"
    for reason in pair.unfinished:
        yield f"<p>Not everything was compared: {_text(reason)}</p>"
    if pair.renumbered:
        yield f"<p>{pair.renumbered} tool calls carry other ids at the same place: no change of behaviour.</p>"
    if pair.first is not None:
        yield f"<p>First difference: <b>{_text(pair.first.where)}</b></p>"
    for section, findings in groupby(pair.findings, key=lambda f: f.section):
        yield f"<h3>{_text(section)}</h3><table><tr><th>where<th>left<th>right</tr>"
        for finding in findings:
            yield from _finding(finding)
        yield "</table>"
    yield "</details>"


def _finding(finding: Any) -> Iterator[str]:
    from replaykit.diff.values import KIND_WORDS

    role = (
        "<span class=cause>a cause</span>"
        if finding.is_cause
        else f"may follow from {_text(', '.join(finding.follows_from))}"
    )
    before = f"<br>before: <code>{_value(finding.before[0])}</code>" if finding.before else ""
    note = f"<br>{_text(finding.note)}" if finding.note else ""
    kind = KIND_WORDS.get(finding.kind, finding.kind)
    yield f"<tr><td>{_text(finding.where)}<br><span class=dim>{_text(kind)}; {role}{before}{note}</span></td>"
    line = finding.line
    sides = (
        (_marked(line, "-", "del"), _marked(line, "+", "ins"))
        if line
        else (_value(finding.left), _value(finding.right))
    )
    yield "".join(f"<td><pre>{side}</pre></td>" for side in sides) + "</tr>"


def _marked(line: Any, word: str, tag: str) -> str:
    parts = [(w, _text(_cut(text))) for w, text in line if w in ("=", word)]
    return "".join(text if w == "=" else f"<{tag}>{text}</{tag}>" for w, text in parts)


def _value(value: Any) -> str:
    from replaykit.diff.values import is_missing

    if is_missing(value):
        return "<span class=dim>nothing</span>"
    return _text(_cut(canonical.ordered(canonical.encode(value)).decode("utf-8", "surrogatepass")))


def _status(word: str) -> str:
    return f"<span class={word}>{word}</span>"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _text(text: Any) -> str:
    return escape(shown(str(text)))
