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
    click.echo(f"{one.panel or '':<12} {r.termination:<24} reward {reward:<8} {len(r.trajectory)} messages  {one.path}")
    for finding in one.findings:
        click.echo(f"             {_said(finding)}")


def _said(finding: Any) -> str:
    from replaykit.reports.replay_report import shown

    return finding.name if finding.detail is None else f"{finding.name}  {shown(finding.detail)}"


@command.command("vcr")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--panel", metavar="PANEL", help="The panel it was recorded on.  [default: as the file says]")
@click.option("--case-seed", type=int, metavar="N", help="The case seed.  [default: as the file says, else 300]")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="CASSETTE", help="The cassette to write."
)
@fleet_option
@json_flag
def vcr(path: Path, panel: str | None, case_seed: int | None, out: Path, fleet_path: Path | None, as_json: bool) -> int:
    """Play a vcrpy cassette as an episode of a panel and keep it as a cassette.

    Each request of tau2 is answered by the next interaction. A file that holds another episode is refused. Without the
    replies to the end, the episode ends there and its reward is unknown.

    \b
    Example:
      replaykit import vcr airline-0.yaml --panel airline/0 --out airline-0.cassette.jsonl
    """
    from replaykit import import_results, import_wire

    result = import_wire.import_vcr(path, load_fleet(fleet_path), panel, case_seed, out)
    done = import_results.Imported(0, path.name, panel, out, result)
    if as_json:
        print_json(done.to_dict())
    else:
        _print(done)
    return 0
