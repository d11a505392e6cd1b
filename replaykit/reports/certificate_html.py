"""A certificate as one self-contained page: no script, no address outside itself, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Protocol

from replaykit.errors import EvidenceError

_MARKS = {
    "PASS": "\u2713",
    "FAIL": "\u2717",
    "ERROR": "!",
    "NOT_EXERCISED": "?",
    "NOT_APPLICABLE": "\u2013",
    "WAIVED": "w",
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1c2024;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;font-size:13px}
td,th{padding:.15rem .45rem;border:1px solid #d5d9de;text-align:left;vertical-align:top}th{background:#f2f4f6;position:sticky;top:0}
.verdict{font-size:1.2rem;padding:.6rem 1rem;border-left:.5rem solid #888;background:#f6f7f8}
.QUALIFIED{border-color:#1a7f37}.NOT_QUALIFIED{border-color:#b35900}.INCOMPLETE,.VOID{border-color:#b3261e}
.PASS{background:#e6f4ea}.FAIL,.ERROR{background:#fbdfdd;font-weight:700}.NOT_EXERCISED{background:#fff1cc;font-weight:700}
.WAIVED{background:#e8e3fb}.NOT_APPLICABLE{color:#6b7280}.grid td{text-align:center}.grid td:first-child{text-align:left;white-space:nowrap}
.bar{position:relative;height:1.1em;width:34rem;background:#f2f4f6}.bar span{position:absolute;top:0;height:100%;min-width:2px}
.up{background:#3b6fd4}.wait{background:#d9dde3}.down{background:#c2571a}code{font-size:12px;word-break:break-all}
@media(prefers-color-scheme:dark){body{background:#16181b;color:#e4e6e9}th,.verdict,.bar{background:#23262b}td,th{border-color:#3a3f46}
.PASS{background:#173a22}.FAIL,.ERROR{background:#5a1f1b}.NOT_EXERCISED{background:#574312}.WAIVED{background:#37306b}}
"""


class Captures(Protocol):
    """Where the page reads the timelines of faults (the store's evidence folder)."""

    def read(self, name: str) -> Any:
        """One part."""


def page(statement: Mapping[str, Any], captures: Captures | None = None) -> str:
    """The page.

    Args:
        statement: A certificate's statement.
        captures: Its evidence, for the timelines; without, they are left out and the page says so.
    """
    predicate = statement["predicate"]
    parts = [
        _verdict(statement, predicate),
        _facts(statement, predicate),
        _checks(predicate["checks"]),
        _harness(predicate["harness"]),
        _grid(predicate["panels"]),
        _waivers(predicate),
        _timelines(captures),
        _comparison(predicate["comparison"]),
    ]
    title = escape(f"{statement['subject'][0]['name']}: {predicate['verdict']}")
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}"><meta name="viewport" content="width=device-width">'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{title}</title><style>{_STYLE}</style></head><body>{"".join(parts)}</body></html>\n'


def badge(predicate: Mapping[str, Any], today: str) -> str:
    """The sentence of a badge: the verb, the count, the date; it says so when the certificate has expired."""
    counts, total = predicate["panels"]["counts"], predicate["panels"]["total"]
    until = predicate["certificate"]["expires_at"][:10]
    verb = {
        "QUALIFIED": "transport qualified",
        "NOT_QUALIFIED": "transport not qualified",
        "INCOMPLETE": "certification incomplete",
    }
    said = verb.get(predicate["verdict"], "certification void")
    waived = f", {counts['WAIVED']} waived" if counts["WAIVED"] else ""
    end = f"until {until}" if today <= until else f"expired {until}"
    return f"{said} \u00b7 {counts['PASS']}/{total}{waived} \u00b7 {end}"


def _verdict(statement: Mapping[str, Any], predicate: Mapping[str, Any]) -> str:
    not_claimed = "; ".join(predicate["non_claims"])
    mode = predicate["profile"]["mode"]
    note = " A fast profile scales its clocks and never qualifies." if mode == "fast" else ""
    return (
        f"<h1>Certificate of {escape(statement['subject'][0]['name'])}</h1>"
        f'<p class="verdict {escape(predicate["verdict"])}"><b>{escape(predicate["verdict"])}</b> by rule {escape(predicate["verdict_rule"])}, '
        f"{escape(mode)} profile.{note}<br>{escape(badge(predicate, predicate['certificate']['issued_at'][:10]))}<br>"
        f"<b>Not claimed:</b> {escape(not_claimed)}.</p>"
    )


def _facts(statement: Mapping[str, Any], predicate: Mapping[str, Any]) -> str:
    run, engine, profile = predicate["run"], predicate["engine"], predicate["profile"]
    rows = [
        ("certificate", f"{predicate['certificate']['id']}, version {predicate['certificate']['version']}"),
        ("issued, expires", f"{predicate['certificate']['issued_at']}, {predicate['certificate']['expires_at']}"),
        ("subject", f"sha256 {statement['subject'][0]['digest']['sha256']}"),
        ("wire", f"{profile['wire']}; not carried: {', '.join(profile['not_carried']) or 'nothing'}"),
        ("declared rewrites", "; ".join(f"{k}: {v}" for k, v in profile["rewrites"].items()) or "none"),
        ("engine", f"{engine['kind']}: {engine['distribution']} {engine['version']}"),
        (
            "answers",
            "labelled controls on loopback: " + ", ".join(i["label"] for i in predicate["control"]["identities"]),
        ),
        ("claims", ", ".join(predicate["claims"]) or "none"),
        ("assurance", f"{predicate['assurance']}; {predicate['signed']}"),
        (
            "self-test",
            f"known-good {predicate['self_test']['known_good']}, {len(predicate['self_test']['known_bad'])} known-bads caught",
        ),
        ("requests at the control", ", ".join(f"{k} {v}" for k, v in predicate["wire_requests"].items())),
        ("run", f"{run['start']} to {run['end']}"),
        (
            "evidence",
            f"{predicate['evidence']['files']} files, manifest sha256 {predicate['evidence']['manifest_sha256']}",
        ),
        ("limits", "; ".join(predicate["limits"])),
    ]
    return "<h2>Facts</h2>" + _table((), rows)


def _checks(rows: Iterable[Mapping[str, Any]]) -> str:
    cells = "".join(
        f'<tr><td>{escape(r["id"])}</td><td class="{escape(r["status"])}">{escape(r["status"])}</td><td>{escape(r["code"] or "")}</td>'
        f"<td>{escape(r['title'])}</td><td>{escape(r['severity'])}</td><td>{r['exercised']}</td>"
        f"<td>{escape(', '.join(f'{k} {v}' for k, v in r['timing_ms'].items()))}</td><td>{escape(r['where'])}</td></tr>"
        for r in rows
    )
    head = "".join(
        f"<th>{h}</th>" for h in ("check", "status", "code", "what holds", "severity", "exchanges", "ms", "where")
    )
    return f"<h2>Checks</h2><table><tr>{head}</tr>{cells}</table>"


def _harness(rows: Iterable[Mapping[str, Any]]) -> str:
    return "<h2>The suite itself</h2>" + _table(
        (), [(f"{r['id']} {r['status']}", f"{r['title']} {r['where']}") for r in rows]
    )


def _grid(panels: Mapping[str, Any]) -> str:
    rows = panels["rows"]
    names = list(rows[0]["checks"]) if rows else []
    head = "<th>panel</th>" + "".join(f"<th>{escape(n)}</th>" for n in names) + "<th>served</th>"
    body = "".join(_grid_row(row, names) for row in rows)
    counts = ", ".join(f"{n} {s}" for s, n in panels["counts"].items() if n)
    return f'<h2>Panels</h2><p>{panels["total"]} panels: {escape(counts)}.</p><table class="grid"><tr>{head}</tr>{body}</table>'


def _grid_row(row: Mapping[str, Any], names: Iterable[str]) -> str:
    cells = "".join(
        _grid_cell(name, row["checks"].get(name, "NOT_EXERCISED"), row["codes"].get(name)) for name in names
    )
    return f"<tr><td>{escape(row['id'])}</td>{cells}<td>{escape(', '.join(row['model_served']))}</td></tr>"


def _grid_cell(name: str, status: str, code: str | None) -> str:
    title = escape(f"{name} {status} {code or ''}".rstrip())
    return f'<td class="{escape(status)}" title="{title}">{_MARKS.get(status, "?")}</td>'


def _waivers(predicate: Mapping[str, Any]) -> str:
    issued = predicate["certificate"]["issued_at"][:10]
    rows = [
        (
            w["id"],
            f"{w['check']} on {w['panel']}: {w['reason']} ({w['owner']}, until {w['expires']}, {_days(issued, w['expires'])} days left, used {w['used']} times)",
        )
        for w in predicate["waivers"]
    ]
    return "<h2>Waivers</h2>" + (_table((), rows) if rows else "<p>None.</p>")


def _days(start: str, end: str) -> int:
    from datetime import date

    return (date.fromisoformat(end) - date.fromisoformat(start)).days


def _timelines(captures: Captures | None) -> str:
    """For each fault, when the request came in, how long the control waited, when its answer went out."""
    if captures is None:
        return "<h2>Timelines</h2><p>The captures were not at hand.</p>"
    rows = []
    for number in range(1, 51):
        try:
            parts = captures.read(f"checks/C{number:02d}")
        except EvidenceError:
            continue
        for part in parts.values():
            rows += [_timeline(f"C{number:02d}", e) for e in part.get("wire") or () if e.get("fault") and _tells(e)]
    return f"<h2>Timelines of faults</h2><p>Blue: the request arrives. Grey: the control waits. Orange: its answer leaves.</p><table>{''.join(rows[:400])}</table>"


def _tells(exchange: Mapping[str, Any]) -> bool:
    return exchange["fault"]["kind"] not in ("reply", "patch")


def _timeline(check: str, exchange: Mapping[str, Any]) -> str:
    times = exchange["times_us"]
    start = times.get("first_byte", 0)
    end = max(times.values(), default=start) or start
    asked = times.get("request", start)
    first, last = times.get("response_first", end), times.get("response_last", times.get("response_first", end))
    span = max(end - start, 1)

    def bar(kind: str, a: int, b: int) -> str:
        return f'<span class="{kind}" style="left:{(a - start) * 100 / span:.2f}%;width:{max(b - a, 0) * 100 / span:.2f}%"></span>'

    bars = bar("up", start, asked) + bar("wait", asked, first) + bar("down", first, max(last, first))
    fault, sent = exchange["fault"]["kind"], len(str(exchange["response"]))
    said = f"{span / 1000:.1f} ms, {sent} bytes out, {exchange['outcome']}"
    return f'<tr><td>{escape(check)}</td><td>{escape(fault)}</td><td><div class="bar">{bars}</div></td><td>{escape(said)}</td></tr>'


def _comparison(found: Mapping[str, Any]) -> str:
    if found["previous_sha256"] is None:
        return "<h2>Against the certificate before</h2><p>There was none.</p>"
    rows = [
        ("changed", "; ".join(found["changed"]) or "nothing"),
        ("not comparable", "; ".join(found["not_comparable"]) or "nothing"),
    ]
    return "<h2>Against the certificate before</h2>" + _table((), [("previous", found["previous_sha256"]), *rows])


def _table(head: Iterable[str], rows: Iterable[tuple[str, str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(f"<tr><th>{escape(a)}</th><td>{escape(str(b))}</td></tr>" for a, b in rows)
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"
