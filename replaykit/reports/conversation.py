"""A cassette as a conversation for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from replaykit.reports import headline
from replaykit.reports.exchanges import request_lines, wire_lines
from replaykit.reports.folded import Folded, plain
from replaykit.reports.transcript import Aside, Transcript, Turn
from replaykit.reports.untrusted import shown

SEAT_STYLES = {"learner": "bold cyan", "customer": "bold green", "tool": "magenta", "judge": "bold yellow"}
TONE_STYLES = {"good": "green", "plain": "", "care": "yellow", "bad": "bold red"}
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

    @property
    def fold(self) -> int | None:
        """Lines of a long text that are shown, or None: all."""
        return None if self.full else _FOLD


def text(transcript: Transcript, view: View) -> str:
    """The whole episode."""
    return _printed(_episode(transcript, view), view)


def part(transcript: Transcript, numbers: tuple[range | None, range | None], view: View) -> str:
    """Some native requests and some wire exchanges, in full, and nothing else."""
    pieces = []
    for request in transcript.cassette.requests:
        if numbers[0] is not None and request.number in numbers[0]:
            pieces += [request_lines(request, None), Text()]
        if numbers[1] is not None and request.number in numbers[1]:
            pieces += [wire_lines(request, None), Text()]
    return _printed(pieces, view)


def _printed(pieces: Any, view: View) -> str:
    out = StringIO()
    console = Console(
        file=out, width=view.width, force_terminal=view.colour, no_color=not view.colour, color_system="standard" if view.colour else None,
        markup=False, highlight=False, emoji=False, legacy_windows=False,
    )
    for piece in pieces:
        console.print(piece)
    written = out.getvalue()
    return written if view.colour else "".join(line.rstrip() + "\n" for line in written.splitlines())


def _episode(transcript: Transcript, view: View) -> Iterator[RenderableType]:
    yield headline.header(transcript)
    yield _rule("conversation")
    by_number = {r.number: r for r in transcript.cassette.requests}
    for turn in transcript.turns:
        yield _turn(turn, view)
        yield from _unfolded(by_number.get(turn.request), view)
    for aside in transcript.asides:
        yield _aside(aside, view)
        yield from _unfolded(by_number[aside.number], view)
    yield from _ending(transcript)


def _ending(transcript: Transcript) -> Iterator[RenderableType]:
    if transcript.cassette.interrupted:
        yield _rule("INTERRUPTED", "bold red")
        yield headline.interruption(transcript)
    else:
        yield _rule("verdict")
        yield headline.verdict(transcript)


def _rule(title: str, style: str = "dim") -> Rule:
    return Rule(Text(title, style), style="dim", align="left")


def _unfolded(request: Any, view: View) -> Iterator[RenderableType]:
    if request is not None and view.requests:
        yield Padding(request_lines(request, view.fold), (0, 0, 1, 4))
    if request is not None and view.wire:
        yield Padding(wire_lines(request, view.fold), (0, 0, 1, 4))


def _turn(turn: Turn, view: View) -> RenderableType:
    changes = [plain(c.text, TONE_STYLES[c.tone]) for c in turn.changes]
    if turn.agrees is False:
        changes.append(Text("state differs from the recorded one", TONE_STYLES["bad"]))
    body: list[RenderableType] = list(_message(turn, view))
    if view.width < _BESIDE:
        return Padding(_columns(turn, [*body, *[Text("· ").append_text(c) for c in changes]], None), (0, 0, 1, 0))
    return Padding(_columns(turn, body, changes), (0, 0, 1, 0))


def _columns(turn: Turn, body: list, changes: list | None) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(width=4, justify="right", no_wrap=True)
    grid.add_column(width=8, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    number, seat = Text(str(turn.index), "dim"), Text(turn.speaker, SEAT_STYLES[turn.speaker])
    if changes is None:
        grid.add_row(number, seat, Group(*body))
        return grid
    grid.add_column(width=_POLICY_WIDTH, overflow="fold")
    grid.add_row(number, seat, Group(*body), Group(*changes))
    return grid


def _message(turn: Turn, view: View) -> Iterator[RenderableType]:
    content = turn.message.get("content")
    if turn.speaker == "tool":
        failed = bool(turn.message.get("error"))
        yield Folded(plain(content or "(empty)", "red" if failed else "dim"), view.fold)
        return
    if content:
        yield plain(content)
    for call in turn.message.get("tool_calls") or []:
        yield _call(call, view)
    if not content and not turn.message.get("tool_calls"):
        yield Text("(neither text nor calls)", "dim")


def _call(call: dict, view: View) -> RenderableType:
    line = Text("→ ", "bold").append(shown(call["name"]), "bold").append("(")
    for place, (name, value) in enumerate(call["arguments"].items()):
        line.append(", " if place else "").append(shown(name), "dim").append("=", "dim").append(shown(json.dumps(value, ensure_ascii=False)))
    return Folded(line.append(")"), None if view.full else 3 * _FOLD)


def _aside(aside: Aside, view: View) -> RenderableType:
    head = Text(f"request {aside.number} to the ", "dim").append(aside.seat, SEAT_STYLES[aside.seat]).append(f" ({aside.kind})", "dim")
    return Padding(Group(head, Padding(Folded(plain(aside.text), 3 * (view.fold or 0) or None), (0, 0, 0, 2))), (0, 0, 1, 6))
