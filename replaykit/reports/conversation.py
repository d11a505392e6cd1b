"""A cassette as a conversation for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from replaykit.reports import facts
from replaykit.reports.exchanges import request_lines, wire_lines
from replaykit.reports.facts import Fact
from replaykit.reports.folded import Folded, plain
from replaykit.reports.shapes import as_json
from replaykit.reports.transcript import Aside, Transcript, Turn

SEAT_STYLES = {"learner": "bold cyan", "customer": "bold green", "tool": "magenta", "judge": "bold yellow"}
TONE_STYLES = {"good": "green", "plain": "", "care": "yellow", "bad": "bold red", "faint": "dim"}
_BESIDE = 100  # columns from which policy changes stand beside the turns
_POLICY_WIDTH = 32
_FOLD = 4


@dataclass(frozen=True, slots=True)
class View:
    """What is unfolded.

    Attributes:
        width: Columns.
        colour: ANSI styles are wanted.
        full: Nothing is folded.
        requests, wire: Show every native request, every wire exchange, beneath its turn.
    """

    width: int
    colour: bool = False
    full: bool = False
    requests: bool = False
    wire: bool = False

    def fold(self, times: int = 1) -> int | None:
        """Lines of a long text that are shown, or None: all."""
        return None if self.full else times * _FOLD


def text(transcript: Transcript, view: View) -> str:
    """The whole episode."""
    return _printed(_episode(transcript, view), view)


def part(transcript: Transcript, requests: range | None, wire: range | None, view: View) -> str:
    """Some native requests and some wire exchanges, by number, in full, and nothing else."""
    pieces: list[RenderableType] = []
    for request in transcript.cassette.requests:
        if requests is not None and request.number in requests:
            pieces += [request_lines(request, None), Text()]
        if wire is not None and request.number in wire:
            pieces += [wire_lines(request, None), Text()]
    return _printed(pieces, view)


def _printed(pieces: Iterable[RenderableType], view: View) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=max(view.width, 40),
        force_terminal=view.colour,
        no_color=not view.colour,
        color_system="standard" if view.colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for piece in pieces:
        console.print(piece)
    written = out.getvalue()
    return written if view.colour else "".join(line.rstrip(" ") + "\n" for line in written.split("\n")[:-1])


def _episode(transcript: Transcript, view: View) -> Iterator[RenderableType]:
    yield _title(transcript)
    yield _facts(facts.header(transcript))
    yield _rule("conversation")
    by_number = {r.number: r for r in transcript.cassette.requests}
    for turn in transcript.turns:
        if turn.seam:
            yield Padding(_rule(turn.seam, "yellow"), (0, 0, 1, 0))
        yield _turn(turn, view)
        yield from _unfolded(by_number.get(turn.request), view)
    for aside in transcript.asides:
        yield _aside(aside, view)
        yield from _unfolded(by_number[aside.number], view)
    interrupted = transcript.cassette.interrupted
    yield _rule("INTERRUPTED", "bold red") if interrupted else _rule("verdict")
    yield _facts(facts.interruption(transcript) if interrupted else facts.verdict(transcript))


def _title(transcript: Transcript) -> Text:
    named = facts.title(transcript)
    line = Text().append_text(plain(named["panel"], "bold")).append("  arm ", "dim")
    line.append_text(plain(named["arm"], "bold"))
    if named["controls"]:
        line.append("  ").append_text(plain(f"[controls: {named['controls']}]", "yellow"))
    if transcript.cassette.interrupted:
        line.append("  ").append("INTERRUPTED", "bold red")
    return line


def _facts(rows: Iterable[Fact]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(width=14, style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    last = None
    for fact in rows:
        grid.add_row("" if fact.name == last else fact.name, plain(fact.text, TONE_STYLES[fact.tone]))
        last = fact.name
    return grid


def _rule(title: str, style: str = "dim") -> Rule:
    return Rule(plain(title, style), style="dim", align="left")


def _unfolded(request: Any, view: View) -> Iterator[RenderableType]:
    if request is not None and view.requests:
        yield Padding(request_lines(request, view.fold()), (0, 0, 1, 4))
    if request is not None and view.wire:
        yield Padding(wire_lines(request, view.fold()), (0, 0, 1, 4))


def _turn(turn: Turn, view: View) -> RenderableType:
    changes = [plain(c.text, TONE_STYLES[c.tone]) for c in turn.changes]
    if turn.agrees is False:
        changes.append(Text("state differs from the recorded one", TONE_STYLES["bad"]))
    body: list[RenderableType] = list(_message(turn, view))
    if view.width < _BESIDE:
        body += [Text("· ").append_text(change) for change in changes]
    beside = changes if view.width >= _BESIDE else None
    return Padding(_columns(turn, body, beside), (0, 0, 1, 0))


def _columns(turn: Turn, body: list[RenderableType], beside: list[Text] | None) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(width=4, justify="right", no_wrap=True)
    grid.add_column(width=8, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    seat = Text(turn.speaker, SEAT_STYLES[turn.speaker])
    cells: list[RenderableType] = [Text(str(turn.index), "dim"), seat, Group(*body)]
    if beside is not None:
        grid.add_column(width=_POLICY_WIDTH, overflow="fold")
        cells.append(Group(*beside))
    grid.add_row(*cells)
    return grid


def _message(turn: Turn, view: View) -> Iterator[RenderableType]:
    content, calls = turn.message.get("content"), turn.message.get("tool_calls") or []
    if turn.speaker == "tool":
        yield Folded(plain(content or "(empty)", "red" if turn.message.get("error") else "dim"), view.fold())
        return
    if content:
        yield plain(content)
    for call in calls:
        yield Folded(_call(call), view.fold(3))
    if not content and not calls:
        yield Text("(neither text nor calls)", "dim")


def _call(call: dict) -> Text:
    line = Text("→ ", overflow="fold").append_text(plain(call["name"], "bold"))
    for place, (name, value) in enumerate(call["arguments"].items()):
        line.append(", " if place else "  ").append_text(plain(name, "dim")).append("=", "dim")
        line.append_text(plain(as_json(value)))
    return line


def _aside(aside: Aside, view: View) -> RenderableType:
    head = Text().append(f"request {aside.number} to the ", "dim").append(aside.seat, SEAT_STYLES[aside.seat])
    head.append("" if aside.kind == aside.seat else f" ({aside.kind})", "dim")
    said = Padding(Folded(plain(aside.text), view.fold(3)), (0, 0, 0, 2))
    return Padding(Group(head, said), (0, 0, 1, 6))
