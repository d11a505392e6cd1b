"""What several commands share: options, the fleet in use, writing results."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from replaykit.errors import UsageError

fleet_option = click.option(
    "--fleet",
    "fleet_path",
    type=click.Path(path_type=Path),
    help="Fleet file. Default: fleet.json here, else the one replaykit came with.",
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


class CassettePath(click.ParamType):
    """A path on this disk or a URL that fsspec reads."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `pathlib.Path` or a `store.remote.RemotePath`."""
        if "://" not in str(value):
            return Path(value)
        from replaykit.store import remote

        return remote.located(value)


def load_fleet(path: Path | None) -> Any:
    """The fleet a command works with."""
    from replaykit.store import fleet_file

    return fleet_file.read(path)


def print_json(document: Any) -> None:
    """One JSON document on standard output, keys in their own order; in ASCII where the output is not UTF-8."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    click.echo(json.dumps(document, ensure_ascii=not is_utf8, indent=1))


def write_result(path: Path, text: str) -> None:
    """Write a report as a whole, or say why not.

    Raises:
        UsageError: it cannot be written.
    """
    from replaykit.store import atomic

    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def tell(sentence: str) -> None:
    """A sentence on standard error that is no failure."""
    click.echo(f"replaykit: {sentence}", err=True)


def is_terminal() -> bool:
    """Whether progress may be drawn on standard error."""
    import os

    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def stoppable() -> Iterator[None]:
    """Let an interrupt or a polite kill end a server, also where a shell started it in the background with interrupts
    ignored. Both raise KeyboardInterrupt in the block."""
    import signal

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
