"""What stands above and below a conversation: who sat where, how it ended, and what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from replaykit.reports.folded import plain
from replaykit.reports.transcript import Transcript

_SEATS = ("learner", "customer", "judge")


def header(transcript: Transcript) -> RenderableType:
    """Panel, arm, roster, engine, seeds, labels."""
    cassette, head = transcript.cassette, transcript.cassette.header
    arm = _dict(head.get("arm"))
    title = plain(cassette.panel, "bold").append("  arm ", "dim").append_text(plain(arm.get("name") or "unnamed", "bold"))
    if head.get("controls"):
        title.append("  ").append_text(plain(f"[controls: {head['controls']}]", "yellow"))
    if cassette.interrupted:
        title.append("  ").append("INTERRUPTED", "bold red")
    return Group(title, _facts(list(_header_facts(transcript, arm))))


def _header_facts(transcript: Transcript, arm: Mapping) -> Iterator[tuple[str, Text]]:
    cassette, head = transcript.cassette, transcript.cassette.header
    roster, by, seeds = _dict(head.get("roster")), _dict(head.get("created_by")), _dict(head.get("seeds"))
    yield "engine", plain(engine_line(_dict(head.get("engine"))))
    for seat in _SEATS:
        yield seat, plain(seat_line(_dict((arm if seat == "learner" else roster).get(seat))))
    yield "seeds", plain(f"case {seeds.get('case')}, trial {seeds.get('trial')}")
    yield "recorded", plain(f"{head.get('created_at')} by {by.get('tool')} {by.get('version')}, {len(cassette.requests)} requests")
    for note in cassette.notes:
        yield "seam", plain(json.dumps(note, ensure_ascii=False))
    if cassette.path is not None:
        yield "file", plain(str(cassette.path))
    if transcript.policy_note:
        yield "note", plain(transcript.policy_note, "yellow")


def engine_line(engine: Mapping) -> str:
    """An engine in one line."""
    corrections = engine.get("corrections") or []
    more = f", {len(corrections)} corrections" if corrections else ""
    return f"{engine.get('kind')}: {engine.get('distribution')} {engine.get('version')} (revision {engine.get('revision')}{more})"


def seat_line(identity: Mapping) -> str:
    """A seat's identity in one line; what is a control says so."""
    control = identity.get("control")
    label = control.get("label") if isinstance(control, dict) else control
    line = f"{identity.get('model', 'unknown')} over {identity.get('transport', 'unknown')}"
    return f"{line}  [{label}]" if label else line


def interruption(transcript: Transcript) -> RenderableType:
    """What an interrupted recording still says."""
    cassette = transcript.cassette
    lines = [
        plain(f"INTERRUPTED: the recording has no end. {len(cassette.requests)} requests stand in its {cassette.whole_bytes} whole bytes."),
        plain("The conversation above is rebuilt from them; there is no verdict. 'replaykit resume' goes on from here.", "dim"),
    ]
    return Group(*lines)


def verdict(transcript: Transcript) -> RenderableType:
    """How the episode ended: reward and its parts, termination, diagnostics, database, usage."""
    return _facts(list(_verdict_facts(transcript)))


def _verdict_facts(transcript: Transcript) -> Iterator[tuple[str, Text]]:
    result, footer = transcript.result or {}, transcript.cassette.footer or {}
    reward, parts = result.get("reward"), _dict(result.get("reward_info"))
    yield "reward", plain("unknown" if reward is None else f"{reward:g}", "bold yellow" if reward is None else "bold green" if reward else "bold red")
    yield "ended", plain(f"{result.get('termination')} after {result.get('steps')} steps, {result.get('errors')} tool errors")
    yield from _lost(_dict(result.get("lost_turn")))
    yield from _reward_parts(parts)
    yield from _diagnostics(result.get("diagnostics") or [])
    yield from _violations(_dict(footer.get("policy_states")))
    yield from _database(result)
    yield from _usage(_dict(footer.get("usage")))


def _lost(lost: Mapping) -> Iterator[tuple[str, Text]]:
    if lost:
        yield "lost turn", plain(f"request {lost.get('number')} to the {lost.get('seat')}: {lost.get('reason')}", "red")


def _reward_parts(info: Mapping) -> Iterator[tuple[str, Text]]:
    if info.get("note"):
        yield "", plain(info["note"])
    for name, value in _dict(info.get("breakdown")).items():
        yield f"  {name}", plain("unknown" if value is None else f"{value:g}", "yellow" if value is None else "green" if value else "red")
    for kind, said in (("actions", _action), ("communicate", _info), ("assertions", _assertion)):
        for check in info.get(kind) or []:
            met = check.get("match", check.get("met"))
            yield kind, Text("✓ " if met else "✗ ", "green" if met else "red").append_text(plain(said(check)))


def _action(check: Mapping) -> str:
    arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in _dict(check.get("arguments")).items())
    return f"{check.get('name')}({arguments})"


def _info(check: Mapping) -> str:
    return f"said: {check.get('info')}"


def _assertion(check: Mapping) -> str:
    return f"{check.get('assertion')} — {check.get('justification')}"


def _diagnostics(found: list) -> Iterator[tuple[str, Text]]:
    for diagnostic in found:
        detail = diagnostic.get("detail")
        text = detail if isinstance(detail, str) or detail is None else json.dumps(detail, ensure_ascii=False)
        yield "diagnostic", plain(diagnostic.get("name"), "bold yellow").append_text(plain(f"  {text}" if text else ""))


def _violations(states: Mapping) -> Iterator[tuple[str, Text]]:
    final = _dict(states.get("final"))
    for found in final.get("violations") or []:
        yield "violation", plain(found.get("rule"), "bold red").append_text(plain(_place(found)))
    for error in final.get("format_errors") or []:
        yield "format error", plain(error.get("kind"), "bold red").append_text(plain(_place(error)))


def _place(found: Mapping) -> str:
    tool = f" ({found['tool']})" if found.get("tool") else ""
    return f" at message {found.get('turn')}{tool}"


def _database(result: Mapping) -> Iterator[tuple[str, Text]]:
    changed = result.get("db_changes")
    same = result.get("initial_db_hash") == result.get("final_db_hash")
    yield "database", plain(f"{str(result.get('final_db_hash'))[:16]}… ({'unchanged' if same else 'changed'})")
    for table, rows in _dict(changed).items():
        for key, row in _dict(rows).items():
            yield "", plain(f"{table} {key}: ").append_text(plain(row_change(_dict(row)), "cyan"))


def row_change(row: Mapping) -> str:
    """What became of a database row: the names of its changed fields."""
    before, after = row.get("before"), row.get("after")
    if before is None or after is None:
        return "added" if before is None else "removed"
    if not isinstance(before, dict) or not isinstance(after, dict):
        return "changed"
    return ", ".join(k for k in {**before, **after} if before.get(k) != after.get(k)) or "members in another order"


def _usage(usage: Mapping) -> Iterator[tuple[str, Text]]:
    for seat, row in usage.items():
        if isinstance(row, dict) and row.get("requests"):
            yield "usage", plain(f"{seat}: {_counts(row)}")


def _counts(row: Mapping) -> str:
    known = [(row.get("requests"), "requests"), (row.get("failures") or None, "failures"), (row.get("prompt_tokens"), "prompt tokens"),
             (row.get("completion_tokens"), "completion tokens"), (row.get("cost"), "US dollars")]
    return ", ".join(f"{count} {word}" for count, word in known if count is not None)


def _facts(rows: list[tuple[str, Text]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(width=14, style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    last = None
    for name, value in rows:
        grid.add_row("" if name == last else name, value)
        last = name
    return grid


def _dict(value: Any) -> dict:
    return value if isinstance(value, dict) else {}
