"""``replaykit engines``: name interpreters that have another tau2."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import json_flag, print_json


@click.group()
def command() -> None:
    """Name interpreters that have another tau2, for 'replay --engine NAME'.

    \b
    Examples:
      replaykit engines add tau2-1.0.1 --python ~/tau2-1.0.1/bin/python
      replaykit replay cassettes --engine tau2-1.0.1 --json tau2-1.0.1.json
      replaykit replay cassettes --json here.json
      replaykit diff here.json tau2-1.0.1.json
    """


@command.command("add")
@click.argument("name")
@click.option("--python", type=click.Path(path_type=Path), required=True, metavar="PATH", help="The interpreter.")
def add(name: str, python: Path) -> int:
    """Give an interpreter a name, after trying it."""
    from replaykit import engines

    version = engines.add(name, python)
    click.echo(f"{name}: Python {version}")
    return 0


@command.command("list")
@json_flag
def list_(as_json: bool) -> int:
    """List the named interpreters."""
    from replaykit import engines

    found = engines.named()
    if as_json:
        print_json(found)
    else:
        for name, python in found.items():
            click.echo(f"{name:<20} {python}")
    return 0


@command.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Forget a name; the interpreter itself stays."""
    from replaykit import engines

    engines.remove(name)
    return 0
