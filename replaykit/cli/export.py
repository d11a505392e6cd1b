"""``replaykit export``: write what other tools read."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def command() -> None:
    """Write what other tools read: tau2's results, vcrpy cassettes, HAR files. No existing file is overwritten."""


_out = click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")


@command.command("tau2-results")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@_out
def tau2_results(paths: tuple[Path, ...], out: Path) -> int:
    """Write a results file that tau2's own viewer, metrics and submission tools read (1.0 line).

    PATH is a cassette or a folder of them, all of one domain, one arm and one roster. Interrupted recordings are left
    out and named (exit 3).

    \b
    Example:
      replaykit export tau2-results recordings/airline --out results.json
    """
    from replaykit import export_results

    count, left_out = export_results.export(paths, out)
    click.echo(f"{count} simulations in {out}")
    for path in left_out:
        click.echo(f"left out: {path} is interrupted", err=True)
    return 3 if left_out else 0


@command.command("vcr")
@click.argument("cassette", type=click.Path(path_type=Path))
@_out
def vcr(cassette: Path, out: Path) -> int:
    """Write the HTTP of a cassette as a cassette that plain vcrpy plays.

    Attempts that got no whole response have no place in vcrpy's form: they are left out and counted.

    \b
    Example:
      replaykit export vcr recordings/airline/0-reference-s300.cassette.jsonl --out airline-0.yaml
    """
    from replaykit import exchange

    count, left_out = exchange.export_vcr(cassette, out)
    click.echo(f"{count} interactions in {out}")
    if left_out:
        click.echo(f"left out: {left_out} attempts without a whole response", err=True)
    return 0


@command.command("har")
@click.argument("cassette", type=click.Path(path_type=Path))
@_out
def har(cassette: Path, out: Path) -> int:
    """Write the HTTP of a cassette as an HTTP archive for browser tools.

    \b
    Example:
      replaykit export har recordings/airline/0-reference-s300.cassette.jsonl --out airline-0.har
    """
    from replaykit import exchange

    click.echo(f"{exchange.export_har(cassette, out)} exchanges in {out}")
    return 0
