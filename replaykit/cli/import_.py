"""``replaykit import``: turn other tools' files into cassettes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import fleet_option, json_flag, load_fleet, print_json


@click.group()
def command() -> None:
    """Turn other tools' files into cassettes.

    What can be derived is derived by the engine in use and labelled so; what the file does not hold stays unknown.
    """


@command.command("tau2-results")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("imported"),
    show_default=True,
    help="Folder for the cassettes.",
)
@click.option("--zstd", is_flag=True, help="Compress the cassettes (needs the extra 'zstd').")
@fleet_option
@json_flag
def tau2_results(path: Path, out: Path, zstd: bool, fleet_path: Path | None, as_json: bool) -> int:
    """Every simulation of a native results file of tau2 becomes a cassette.

    FILE is a results file (0.2 or 1.0 lines) or a folder with results.json and simulations/. Recorded replies are
    played through the engine; where it now says something else than the file, the finding is named and the import
    goes on. Exit 3 when a simulation could not be imported.

    \b
    Examples:
      replaykit import tau2-results data/simulations/run/results.json
      replaykit import tau2-results results.json --out imported && replaykit replay imported
    """
    from replaykit import import_results
    from replaykit.reports.progress import Progress

    importer = import_results.open_file(path, out, load_fleet(fleet_path), zstd)
    with Progress("simulations", len(importer.file.raw_simulations)) as progress:
        done = import_results.run(importer, progress)
    missing = [one for one in done if one.reason is not None]
    if as_json:
        print_json([one.to_dict() for one in done])
    else:
        for one in done:
            _print(one)
        click.echo(f"{len(done) - len(missing)} of {len(done)} simulations imported")
    return 3 if missing else 0


def _print(one: Any) -> None:
    if one.reason is not None:
        click.echo(f"NOT IMPORTED simulation {one.index}: {one.reason}")
        return
    r = one.result
    reward = "unknown" if r.reward is None else f"{r.reward:g}"
    click.echo(f"{one.panel:<12} {r.termination:<24} reward {reward:<8} {len(r.trajectory)} messages  {one.path}")
    for finding in one.findings:
        click.echo(f"             {_said(finding)}")


def _said(finding: Any) -> str:
    from replaykit.reports.replay_report import shown

    return finding.name if finding.detail is None else f"{finding.name}  {shown(finding.detail)}"
