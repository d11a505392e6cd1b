"""``replaykit replay``: run episodes again on their recorded replies and compare everything."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import CassettePath, fleet_option, load_fleet, print_json, tell, write_result


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=CassettePath())
@click.option("-j", "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write a JSON report; - for standard output.",
)
@click.option("--junit", "junit_path", type=click.Path(path_type=Path), metavar="FILE", help="Write a JUnit report.")
@click.option("--verify-hash", is_flag=True, help="Compute tau2's own hash beside every database hash (slow).")
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help="Replay on the workers of a Dask scheduler (extra 'cluster'; see docs/scale.md).",
)
@click.option("--bisect", is_flag=True, expose_value=False, help="Exit 0, 1 or 125, for 'git bisect run'.")
@click.option(
    "--engine", "engine_name", metavar="NAME", help="Replay under a named interpreter (see 'replaykit engines')."
)
@click.option(
    "--level",
    type=click.Choice(["seat", "wire"]),
    default="seat",
    show_default=True,
    help="wire: run the transports' code again too.",
)
@fleet_option
def command(
    paths: tuple[Path, ...],
    jobs: int,
    json_path: Path | None,
    junit_path: Path | None,
    verify_hash: bool,
    address: str | None,
    engine_name: str | None,
    level: str,
    fleet_path: Path | None,
) -> int:
    """Replay cassettes offline and compare everything.

    PATH is a cassette or a folder of them; s3:// and other URLs are read through fsspec. Exit 1 on any divergence, 3
    when a recording is interrupted, 5 when a file is damaged.

    \b
    Examples:
      replaykit replay recordings
      replaykit replay cassettes -j 2 --junit replay.xml
      replaykit replay cassettes --level wire
      replaykit replay cassettes --engine tau2-1.0.1 --json other.json
      git bisect run replaykit replay cassettes --bisect
    """
    from replaykit import replay_many
    from replaykit.reports.progress import Progress

    if engine_name is not None and (address is not None or verify_hash):
        raise click.UsageError("--engine goes with neither --cluster nor --verify-hash")
    files = replay_many.find(paths)
    with Progress("cassettes", len(files)) as progress:
        if address is not None:
            outcomes = replay_many.run_on(address, files, load_fleet(fleet_path), progress, level, verify_hash, tell)
        elif engine_name is None:
            outcomes = replay_many.run(files, load_fleet(fleet_path), jobs, progress, level, verify_hash)
        else:
            outcomes = _elsewhere(engine_name, paths, fleet_path, jobs, level)
    _write(outcomes, json_path, junit_path)
    if str(json_path) != "-":
        _print(outcomes)
    return replay_many.exit_code(outcomes)


def _elsewhere(name: str, paths: tuple[Path, ...], fleet_path: Path | None, jobs: int, level: str) -> list:
    from replaykit import engines
    from replaykit.store import fleet_file

    return engines.replay(name, paths, fleet_file.locate(fleet_path), jobs, level)


def _write(outcomes: list, json_path: Path | None, junit_path: Path | None) -> None:
    from replaykit.reports import replay_report

    if json_path is not None and str(json_path) == "-":
        print_json(replay_report.document(outcomes))
    elif json_path is not None:
        write_result(json_path, replay_report.text(outcomes))
    if junit_path is not None:
        from replaykit.reports import junit

        write_result(junit_path, junit.replay(outcomes))


def _print(outcomes: list) -> None:
    from replaykit.reports import replay_report

    for line in replay_report.lines(outcomes):
        click.echo(line)
