"""``replaykit resume``: continue an interrupted recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import fleet_option, json_flag, load_fleet, print_json


@click.command()
@click.argument("cassette", type=click.Path(path_type=Path))
@click.option(
    "--arm", "arm_path", type=click.Path(path_type=Path), metavar="FILE.toml", help="The arm it was recorded with."
)
@click.option("--controls", type=click.Choice(["one-exchange", "reference"]), help="The controls it was recorded with.")
@fleet_option
@json_flag
def command(cassette: Path, arm_path: Path | None, controls: str | None, fleet_path: Path | None, as_json: bool) -> int:
    """Continue an interrupted recording in place.

    The recorded beginning is replayed and checked, the rest goes live. Nothing already answered is asked again, the
    budget continues, and the seam is noted in the cassette. Controls need not be named again.

    \b
    Examples:
      replaykit resume recordings/retail/37-reference-s300.cassette.jsonl
      replaykit resume recordings/retail/37-my-arm-s300.cassette.jsonl --arm my-arm.toml
    """
    from replaykit import resume
    from replaykit.reports.progress import Progress

    with Progress("episodes", 1) as progress:
        done = resume.resume(cassette, load_fleet(fleet_path), controls, read_arm(arm_path), progress.request)
        progress.step()
    return report(done, as_json)


def read_arm(path: Path | None) -> Any:
    """The arm file, or None when none was named."""
    from replaykit import record_many

    return None if path is None else record_many.read_arm(path)


def report(done: Any, as_json: bool) -> int:
    """Print what was recorded; 4 when the outside world ended it."""
    result = done.result
    if as_json:
        named = {"termination": result.termination, "reward": result.reward, "final_db_hash": result.final_db_hash}
        print_json(
            {"panel": done.panel, "path": str(done.path), "requests": done.requests, **named, "trouble": done.trouble}
        )
    else:
        reward = "unknown" if result.reward is None else f"{result.reward:g}"
        click.echo(
            f"{done.panel:<12} {result.termination:<24} reward {reward:<8} {done.requests} requests  {done.path}"
        )
        if done.trouble:
            click.echo(f"ended by the outside world: {done.trouble}")
    return 4 if done.trouble else 0
