"""``replaykit fork``: play a recording up to a request and go live from there."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.resume import read_arm, report
from replaykit.cli.shared import fleet_option, json_flag, load_fleet


@click.command()
@click.argument("cassette", type=click.Path(path_type=Path))
@click.option("--at", type=click.IntRange(min=1), required=True, metavar="N", help="The first request that goes live.")
@click.option("--arm", "arm_path", type=click.Path(path_type=Path), metavar="FILE.toml", help="Who answers from there.")
@click.option(
    "--controls", type=click.Choice(["one-exchange", "reference"]), help="Labelled controls answer from there."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="The new cassette. Default: beside the old one."
)
@fleet_option
@json_flag
def command(
    cassette: Path,
    at: int,
    arm_path: Path | None,
    controls: str | None,
    out: Path | None,
    fleet_path: Path | None,
    as_json: bool,
) -> int:
    """Record a child of a cassette: its requests before N are answered from the recording, N and later go live.

    The child is a whole cassette of its own: it replays without its parent, and names its parent's digest and the seam.

    \b
    Examples:
      replaykit fork recordings/retail/2-reference-s300.cassette.jsonl --at 5 --arm other-learner.toml
      replaykit fork recordings/retail/2-reference-s300.cassette.jsonl --at 5 --controls one-exchange
    """
    from replaykit import fork
    from replaykit.reports.progress import Progress

    with Progress("episodes", 1) as progress:
        child = fork.fork(cassette, at, load_fleet(fleet_path), controls, read_arm(arm_path), out, progress.request)
        progress.step()
    return report(child, as_json)
