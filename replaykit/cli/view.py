"""``replaykit view``: look at episodes in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import CassettePath, fleet_option, stoppable, write_result

_DEFAULTS = ("recordings", "cassettes")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]", type=CassettePath())
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.html", help="Write one file instead of serving.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1.  [default: a free one]")
@fleet_option
def command(paths: tuple[Path, ...], out: Path | None, port: int, fleet_path: Path | None) -> int:
    """Look at episodes in a browser: list, conversations, requests, wire, database changes, differences.

    PATH is a cassette or a folder of them; without one, 'recordings' or 'cassettes' here. Served to this machine only
    until Ctrl-C; a reload shows what was recorded since. With --out, one file that needs no server.

    \b
    Examples:
      replaykit view
      replaykit view recordings/airline --port 8000
      replaykit view cassettes --out cassettes.html
    """
    from replaykit.cli.show import domains
    from replaykit.reports.viewer.shelf import Shelf

    if out is not None and port:
        raise click.UsageError("--out writes a file and serves nothing: leave --port out")
    shelf = Shelf(paths or _default(), domains(fleet_path))
    return _serve(shelf, port) if out is None else _write(shelf, out)


def _default() -> tuple[Path, ...]:
    from replaykit.errors import UsageError

    for name in _DEFAULTS:
        if Path(name).is_dir():
            return (Path(name),)
    raise UsageError("there is no folder 'recordings' or 'cassettes' here: name a cassette or a folder of them")


def _write(shelf: Any, out: Path) -> int:
    html = shelf.html()
    write_result(out, html)
    click.echo(f"{out}: {shelf.count} episodes, {len(html.encode()):,} bytes")
    return _report_unreadable(shelf)


def _serve(shelf: Any, port: int) -> int:
    from replaykit.reports.viewer.serving import Server

    shelf.html()
    code = _report_unreadable(shelf)
    with Server(shelf.html, port) as server:
        click.echo(f"{server.url}  ({shelf.count} episodes, for this machine only; Ctrl-C stops)")
        try:
            with stoppable():
                server.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped")
    return code


def _report_unreadable(shelf: Any) -> int:
    for _, why in shelf.unreadable:
        click.echo(f"replaykit: not shown: {why}", err=True)
    return 5 if shelf.unreadable else 0
