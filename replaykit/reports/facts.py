"""What stands above and below a conversation, as named facts: who sat where, how it ended, what was found.

What a cassette holds is untrusted: a member that has not its shape is left out or said as it is, never an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from replaykit.reports.seams import seams
from replaykit.reports.shapes import as_json, members, rows
from replaykit.reports.transcript import Transcript
from replaykit.seats import SEATS


class Fact(NamedTuple):
    """One fact.

    Attributes:
        name: What it is about; facts of one name that follow each other belong together.
        text: What is said, untrusted.
        tone: ``good``, ``plain``, ``care``, ``bad`` or ``faint``.
    """

    name: str
    text: str
    tone: str = "plain"


def header(transcript: Transcript) -> Iterator[Fact]:
    """Engine, seats, seeds, origin."""
    cassette, head = transcript.cassette, transcript.cassette.header
    by, seeds = members(head.get("created_by")), members(head.get("seeds"))
    yield Fact("engine", engine_line(members(head.get("engine"))))
    for seat in SEATS:
        side = members(head.get("arm" if seat == "learner" else "roster"))
        yield Fact(seat, seat_line(members(side.get(seat))))
    yield Fact("seeds", f"case {seeds.get('case')}, trial {seeds.get('trial')}")
    yield Fact("settings", f"{members(head.get('settings')).get('version')}")
    origin = f"{by.get('tool')} {by.get('version')}"
    yield Fact("recorded", f"{head.get('created_at')} by {origin}, {len(cassette.requests)} requests")
    yield from _origin(head)
    for seam in seams(cassette.notes):
        yield Fact("seam", seam.text)
    if cassette.path is not None:
        yield Fact("file", str(cassette.path))
    yield Fact("digest", cassette.digest, "faint")
    if transcript.policy_note:
        yield Fact("note", transcript.policy_note, "care")


def _origin(head: Mapping) -> Iterator[Fact]:
    """What was imported, what was derived for it, and what nobody knows."""
    source = members(head.get("imported"))
    if source:
        place = f", simulation {source['index']}" if "index" in source else ""
        yield Fact("imported", f"from {source.get('file')} ({source.get('kind')}{place})", "care")
    for what, how in members(head.get("derived")).items():
        yield Fact("derived", f"{what.replace('_', ' ')}: {how}", "faint")
    unknown = head.get("unknown")
    if isinstance(unknown, list) and unknown:
        yield Fact("unknown", ", ".join(map(str, unknown)), "faint")


def title(transcript: Transcript) -> dict[str, str | None]:
    """Panel, arm and controls label, which name an episode."""
    head = transcript.cassette.header
    controls = head.get("controls")
    arm = members(head.get("arm")).get("name")
    return {"panel": str(head["panel"]), "arm": str(arm or "unnamed"), "controls": str(controls) if controls else None}


def engine_line(engine: Mapping) -> str:
    """An engine in one line."""
    corrections = engine.get("corrections") or []
    more = f", {len(corrections)} corrections" if corrections else ""
    revision = engine.get("revision")
    return f"{engine.get('kind')}: {engine.get('distribution')} {engine.get('version')} (revision {revision}{more})"


def seat_line(identity: Mapping) -> str:
    """A seat's identity in one line; what is a control says so."""
    control = identity.get("control")
    label = control.get("label") if isinstance(control, dict) else control
    line = f"{identity.get('model', 'unknown')} over {identity.get('transport', 'unknown')}"
    return f"{line}  [{label}]" if label else line


def interruption(transcript: Transcript) -> Iterator[Fact]:
    """What an interrupted recording still says."""
    cassette = transcript.cassette
    whole = f"{len(cassette.requests)} requests in {cassette.whole_bytes} whole bytes"
    yield Fact("INTERRUPTED", f"The recording has no end: {whole}.", "bad")
    yield Fact("", "The conversation is rebuilt from requests and replies; there is no verdict.", "faint")
    yield Fact("", "'replaykit resume' goes on from here.", "faint")


def verdict(transcript: Transcript) -> Iterator[Fact]:
    """How the episode ended: reward and its parts, termination, diagnostics, database, usage."""
    result, footer = transcript.result or {}, transcript.cassette.footer or {}
    yield Fact("reward", number(result.get("reward")), _tone(result.get("reward")))
    steps, errors = result.get("steps"), result.get("errors")
    yield Fact("ended", f"{result.get('termination')} after {steps} steps, {errors} tool errors")
    yield from _file_said(members(footer.get("recorded")), result)
    yield from _lost(members(result.get("lost_turn")))
    yield from _reward_parts(members(result.get("reward_info")))
    yield from _diagnostics(result)
    yield from _violations(members(footer.get("policy_states")))
    yield from _database(result)
    yield from _usage(members(footer.get("usage")))


def number(value: Any) -> str:
    """A reward, or that it is unknown."""
    return "unknown" if value is None else f"{value:g}" if isinstance(value, (int, float)) else as_json(value)


def _tone(value: Any) -> str:
    return "care" if value is None else "good" if value else "bad"


def _file_said(recorded: Mapping, result: Mapping) -> Iterator[Fact]:
    """What an imported file said of the end, beside what was derived now."""
    reward, end = members(recorded.get("reward_info")).get("reward"), recorded.get("termination")
    if recorded:
        same = reward == result.get("reward") and end == result.get("termination")
        yield Fact("the file said", f"{end}, reward {number(reward)}", "faint" if same else "care")


def _lost(lost: Mapping) -> Iterator[Fact]:
    if lost:
        yield Fact("lost turn", f"request {lost.get('number')} to the {lost.get('seat')}: {lost.get('reason')}", "bad")


def _reward_parts(found: Mapping) -> Iterator[Fact]:
    if found.get("note"):
        yield Fact("", str(found["note"]))
    for name, value in members(found.get("breakdown")).items():
        yield Fact(f"  {name}", number(value), _tone(value))
    for kind, said in (("actions", _action), ("communicate", _information), ("assertions", _assertion)):
        for check in rows(found.get(kind)):
            met = check.get("match", check.get("met"))
            yield Fact(kind, f"{'✓' if met else '✗'} {said(check)}", "good" if met else "bad")


def _action(check: Mapping) -> str:
    return f"{check.get('name')}({arguments_line(check.get('arguments'))})"


def arguments_line(arguments: Any) -> str:
    """A call's arguments on one line."""
    return ", ".join(f"{name}={as_json(value)}" for name, value in members(arguments).items())


def _information(check: Mapping) -> str:
    return f"said: {check.get('info')}"


def _assertion(check: Mapping) -> str:
    return f"{check.get('assertion')} — {check.get('justification')}"


def _diagnostics(result: Mapping) -> Iterator[Fact]:
    for diagnostic in rows(result.get("diagnostics")):
        detail = diagnostic.get("detail")
        text = "" if detail is None else detail if isinstance(detail, str) else as_json(detail)
        yield Fact("diagnostic", f"{diagnostic.get('name')}  {text}".rstrip(), "care")


def _violations(states: Mapping) -> Iterator[Fact]:
    final = members(states.get("final"))
    for found in rows(final.get("violations")):
        yield Fact("violation", f"{found.get('rule')}{_place(found)}", "bad")
    for error in rows(final.get("format_errors")):
        yield Fact("format error", f"{error.get('kind')}{_place(error)}", "bad")


def _place(found: Mapping) -> str:
    tool = f" ({found['tool']})" if found.get("tool") else ""
    return f" at message {found.get('turn')}{tool}"


def _database(result: Mapping) -> Iterator[Fact]:
    same = result.get("initial_db_hash") == result.get("final_db_hash")
    yield Fact("database", f"{str(result.get('final_db_hash'))[:16]}… ({'unchanged' if same else 'changed'})")
    for table, changed in members(result.get("db_changes")).items():
        for key, row in members(changed).items():
            yield Fact("", f"{table} {key}: {row_change(members(row))}")


def row_change(row: Mapping) -> str:
    """What became of a database row: the names of its changed fields."""
    before, after = row.get("before"), row.get("after")
    if before is None or after is None:
        return "added" if before is None else "removed"
    if not isinstance(before, dict) or not isinstance(after, dict):
        return "changed"
    return ", ".join(k for k in {**before, **after} if before.get(k) != after.get(k)) or "members in another order"


_COUNTS = (
    ("requests", "requests"),
    ("failures", "failures"),
    ("prompt_tokens", "prompt tokens"),
    ("completion_tokens", "completion tokens"),
    ("cost", "US dollars"),
)


def _usage(usage: Mapping) -> Iterator[Fact]:
    for seat, row in usage.items():
        counted = [f"{row[key]} {word}" for key, word in _COUNTS if members(row).get(key)]
        if counted:
            yield Fact("usage", f"{seat}: {', '.join(counted)}", "faint")
