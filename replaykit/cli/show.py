"""``replaykit show``: print a cassette as a conversation."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import fleet_option, json_flag, print_json

_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?")
_ALL = "all"


class _Command(click.Command):
    """``--requests`` and ``--wire`` take a number or nothing: what follows and is no number is not theirs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args[1:], ""]
        bare = ("--requests", "--wire")
        given = [a + f"={_ALL}" if a in bare and not _NUMBERS.fullmatch(n) else a for a, n in zip(args, following, strict=True)]
        return super().parse_args(ctx, given)


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> range | str | None:
    if value is None or value == _ALL:
        return value
    found = _NUMBERS.fullmatch(value)
    if found is None:
        raise click.BadParameter("give a request's number, a range such as 3-5, or nothing for all")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


@click.command(cls=_Command)
@click.argument("path", metavar="CASSETTE", type=click.Path(path_type=Path))
@click.option("--full", is_flag=True, help="Fold nothing.")
@click.option("--requests", callback=_numbers, metavar="[N]", help="Unfold native requests: all beneath their turns, or only N (or N-M).")
@click.option("--wire", callback=_numbers, metavar="[N]", help="Unfold HTTP exchanges, likewise.")
@json_flag
@fleet_option
def command(path: Path, full: bool, requests: Any, wire: Any, as_json: bool, fleet_path: Path | None) -> None:
    """Print a cassette as a conversation.

    Turns with their seats, tool calls and results, what each changed in the policy state, diagnostics and verdict. An
    interrupted recording is printed as far as it goes.

    \b
    Examples:
      replaykit show recordings/airline/0-reference-s300.cassette.jsonl
      replaykit show CASSETTE --full | less -R
      replaykit show CASSETTE --requests 3 --wire 3
    """
    from replaykit.reports.transcript import transcript
    from replaykit.store import reader

    episode = transcript(reader.read(path), _domains(fleet_path))
    if as_json:
        print_json(_document(episode, requests, wire))
    else:
        _print(episode, full, requests, wire)


def _domains(path: Path | None) -> dict:
    """Facts by domain. An episode can be read without a fleet; one that was named must be there."""
    from replaykit.cli.shared import load_fleet
    from replaykit.errors import UsageError

    try:
        return load_fleet(path).domains
    except UsageError:
        if path is not None:
            raise
        return {}


def _print(episode: Any, full: bool, requests: Any, wire: Any) -> None:
    from replaykit.reports import conversation

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    view = conversation.View(shutil.get_terminal_size((100, 24)).columns, colour, full, requests == _ALL, wire == _ALL)
    ranges = tuple(numbers if isinstance(numbers, range) else None for numbers in (requests, wire))
    if any(ranges):
        _check(ranges, len(episode.cassette.requests))
    text = conversation.part(episode, ranges, view) if any(ranges) else conversation.text(episode, view)
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False, color=colour)


def _check(ranges: tuple, count: int) -> None:
    from replaykit.errors import UsageError

    for numbers in ranges:
        if numbers and not 1 <= numbers.start <= numbers.stop - 1 <= count:
            raise UsageError(f"there is no request {numbers.stop - 1}: this cassette has requests 1 to {count}")


def _document(episode: Any, requests: Any, wire: Any) -> dict:
    from replaykit.reports import exchanges

    document = episode.to_dict()
    for name, numbers, plain in (("requests", requests, exchanges.request_document), ("wire", wire, exchanges.wire_document)):
        if numbers is not None:
            document[name] = [plain(r) for r in episode.cassette.requests if numbers == _ALL or r.number in numbers]
    return document
