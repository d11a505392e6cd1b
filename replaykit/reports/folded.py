"""Untrusted text on a terminal: written out, wrapped by columns, and folded to a few lines."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from replaykit.reports.untrusted import shown


def plain(text: object, style: str = "") -> Text:
    """Untrusted text with a style; it wraps anywhere rather than being cut."""
    return Text(shown(text), style, overflow="fold")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text of which only some lines are shown.

    Attributes:
        text: What is shown.
        lines: How many lines, or None: all.
    """

    text: Text
    lines: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines, and how many there are more."""
        if self.lines is None:
            yield self.text
            return
        room = options.max_width * (self.lines + 1)
        head, rest = self.text[:room], self.text[room:]
        wrapped = head.wrap(console, options.max_width, overflow="fold")
        yield from wrapped[: self.lines]
        if len(wrapped) > self.lines or rest:
            more = sum(len(line) for line in wrapped[self.lines :]) + len(rest)
            yield Text(f"… {more} more characters (--full)", "dim italic")
