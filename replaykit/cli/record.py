"""``replaykit record``: play episodes and keep every request and reply."""

from __future__ import annotations

import time
from pathlib import Path

import click

from replaykit.cli.shared import fleet_option, json_flag, load_fleet, print_json, tell

ARM_EXAMPLE = """\b
An arm file names who sits at each seat:
  name = "my-arm"
  [learner]
  transport = "openai-chat"            # see docs/transports.md
  base_url = "https://api.example.com/v1"
  model = "my-model"
  key_env = "EXAMPLE_API_KEY"          # the variable that holds the key
  headers = { "x-team" = "evals" }     # extra headers and body fields
  body = { "service_tier" = "flex" }
  [customer]
  ...
  [judge]
  ...
"""


@click.command(epilog=ARM_EXAMPLE)
@click.argument("panels", nargs=-1, required=True, metavar="PANEL...")
@click.option(
    "--arm", "arm_path", type=click.Path(path_type=Path), metavar="FILE.toml", help="Who sits at the three seats."
)
@click.option(
    "--controls",
    type=click.Choice(["one-exchange", "reference"]),
    help="Labelled offline controls on a loopback provider.",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Episodes at once.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the cassettes.  [default: recordings/<UTC time>]"
)
@click.option(
    "--case-seed", "case_seeds", type=int, multiple=True, help="Case seed; repeat for several trials.  [default: 300]"
)
@click.option("--zstd", is_flag=True, help="Compress the cassettes (needs the extra 'zstd').")
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help="Record on the workers of a Dask scheduler (extra 'cluster'; see docs/scale.md).",
)
@fleet_option
@json_flag
def command(
    panels: tuple[str, ...],
    arm_path: Path | None,
    controls: str | None,
    jobs: int,
    out: Path | None,
    case_seeds: tuple[int, ...],
    zstd: bool,
    address: str | None,
    fleet_path: Path | None,
    as_json: bool,
) -> int:
    """Record episodes of panels into cassettes.

    PANEL is an id (airline/0), a domain (retail), a range (retail/10-19) or all. An episode that fails keeps its
    cassette, which says why. A cassette is never overwritten.

    \b
    Examples:
      replaykit record airline/0 --controls reference
      replaykit record all --controls one-exchange -j 2 --out recordings
      replaykit record retail/0-9 --arm my-arm.toml --case-seed 300 --case-seed 301
    """
    from replaykit import record_many
    from replaykit.reports.progress import Progress

    if (arm_path is None) == (controls is None):
        raise click.UsageError("name the seats with either --arm FILE.toml or --controls one-exchange|reference")
    out = out or Path("recordings") / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    plan = record_many.Plan(load_fleet(fleet_path), panels, case_seeds or (300,), out, zstd, jobs)
    finished: list = []
    try:
        with Progress("episodes", len(plan.episodes)) as progress:
            if address is None:
                outcomes = record_many.run(plan, controls, arm_path, progress, finished.append)
            else:
                outcomes = record_many.run_on(address, plan, controls, arm_path, progress, tell, finished.append)
    except BaseException:
        _say_what_is_there(finished, len(plan.episodes), out)
        raise
    return _report(outcomes, as_json, out)


def _say_what_is_there(finished: list, planned: int, out: Path) -> None:
    """What a run that did not come to its end leaves behind."""
    from replaykit.store import reader

    if not finished and not reader.find([out]):
        return
    tell(f"{len(finished)} of {planned} episodes were recorded")
    for outcome in finished:
        click.echo(outcome.line(), err=True)
    tell(f"'replaykit list {out}' shows what else was begun, 'replaykit resume CASSETTE' continues it")


def _report(outcomes: list, as_json: bool, out: Path) -> int:
    troubled = [o for o in outcomes if o.trouble]
    if as_json:
        print_json([o.to_dict() for o in outcomes])
    else:
        for o in outcomes:
            click.echo(o.line())
        for o in troubled:
            click.echo(f"{o.panel}: {o.trouble}", err=True)
        click.echo(
            f"{len(outcomes)} episodes recorded, {len(troubled)} ended by the outside world; "
            f"next: replaykit replay {out}"
        )
    if any(o.mismatch for o in outcomes):
        return 1
    return 4 if troubled else 0
