"""``replaykit show``: print a cassette as a conversation."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import CassettePath, fleet_option, json_flag, print_json

_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_ALL = "all"


class _Show(click.Command):
    """``--requests`` and ``--wire`` take a number or nothing: what follows and is no number is not theirs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        pairs = zip(args, [*args[1:], ""], strict=True)
        return super().parse_args(ctx, [_with_value(argument, following) for argument, following in pairs])


def _with_value(argument: str, following: str) -> str:
    bare = argument in ("--requests", "--wire") and not _NUMBERS.fullmatch(following)
    return f"{argument}={_ALL}" if bare else argument


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> range | str | None:
    if value is None or value == _ALL:
        return value
    found = _NUMBERS.fullmatch(value)
    if found is None:
        raise click.BadParameter("give a request's number, a range such as 3-5, or nothing for all")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


@click.command(cls=_Show)
@click.argument("path", metavar="CASSETTE", type=CassettePath())
@click.option("--full", is_flag=True, help="Fold nothing.")
@click.option("--requests", callback=_numbers, metavar="[N]", help="Unfold native requests: all, or only N (N-M).")
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
      replaykit show CASSETTE --full
      replaykit show CASSETTE --requests 3 --wire 3
    """
    from replaykit.reports.transcript import transcript
    from replaykit.store import reader

    if path.is_dir():
        raise _folder(path)
    episode = transcript(reader.read(path), domains(fleet_path))
    for numbers in (requests, wire):
        _check(numbers, len(episode.cassette.requests))
    if as_json:
        print_json(_document(episode, requests, wire))
    else:
        _print(episode, full, requests, wire)


def domains(path: Path | None) -> dict:
    """Facts by domain. An episode can be read without a fleet; one that was named must be there.

    Raises:
        UsageError: the named fleet cannot be read.
    """
    from replaykit.cli.shared import load_fleet
    from replaykit.errors import UsageError

    try:
        return load_fleet(path).domains
    except UsageError:
        if path is not None:
            raise
        return {}


def _folder(path: Path) -> Exception:
    from replaykit.errors import UsageError
    from replaykit.store import reader

    found = reader.find([path])
    example = f", for example {found[0]}" if found else ""
    return UsageError(f"{path} is a folder: name one cassette{example}, or see all with 'replaykit list {path}' or 'replaykit view {path}'")


def _check(numbers: Any, count: int) -> None:
    from replaykit.errors import UsageError

    if isinstance(numbers, range) and not 1 <= numbers.start <= numbers.stop - 1 <= count:
        asked = "-".join(map(str, sorted({numbers.start, numbers.stop - 1})))
        raise UsageError(f"there is no request {asked}: this cassette has requests 1 to {count}")


def _print(episode: Any, full: bool, requests: Any, wire: Any) -> None:
    from replaykit.reports import conversation

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((100, 24)).columns
    view = conversation.View(width, colour, full, requests == _ALL, wire == _ALL)
    named = [numbers if isinstance(numbers, range) else None for numbers in (requests, wire)]
    text = conversation.part(episode, *named, view) if any(named) else conversation.text(episode, view)
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False, color=colour)


def _document(episode: Any, requests: Any, wire: Any) -> dict:
    from replaykit import canonical
    from replaykit.reports import exchanges

    document = episode.to_dict()
    parts = (("requests", requests, exchanges.request_document), ("wire", wire, exchanges.wire_document))
    for name, numbers, plain in parts:
        if numbers is not None:
            document[name] = [plain(r) for r in episode.cassette.requests if numbers == _ALL or r.number in numbers]
    return canonical.encode(document)
