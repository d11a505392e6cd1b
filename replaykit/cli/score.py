"""``replaykit score``: figures of cassettes, panel by panel and arm by arm."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import CassettePath, fleet_option, json_flag, load_fleet, print_json, tell


def _ks(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    numbers = [part.strip() for part in value.split(",")]
    if not all(n.isascii() and n.isdigit() and int(n[:10]) > 0 for n in numbers):
        raise click.BadParameter("give whole numbers from 1 on, with commas, such as 1,2,4")
    return tuple(dict.fromkeys(int(n[:10]) for n in numbers))


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=CassettePath())
@click.option("--k", "ks", default="1", show_default=True, callback=_ks, metavar="N,N", help="The k of reliability.")
@click.option("--arms", nargs=2, metavar="A B", help="Compare two arms panel by panel.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of its interval.")
@click.option(
    "--labels",
    "labels_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Label file.  [default: data/manifests/labels_v1.json]",
)
@click.option("--aggregate", "--overall", "aggregate", is_flag=True, help="Refused: there is no figure across panels.")
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help="Read on the workers of a Dask scheduler (extra 'cluster'; see docs/scale.md).",
)
@json_flag
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@fleet_option
def command(
    paths: tuple[Path, ...],
    ks: tuple[int, ...],
    arms: tuple[str, str] | None,
    level: float,
    labels_path: Path | None,
    aggregate: bool,
    address: str | None,
    as_json: bool,
    as_csv: bool,
    fleet_path: Path | None,
) -> int:
    """Score cassettes, panel by panel and arm by arm.

    PATH is a cassette or a folder of them. No figure is given across panels. An interrupted recording is listed and
    not scored (exit 3). Two arms are compared only under the same roster, settings, fleet and engine (exit 2, with what
    differs, otherwise).

    \b
    Examples:
      replaykit score recordings
      replaykit score recordings --k 1,2,4 --json
      replaykit score recordings --arms base tuned
    """
    from replaykit import labels_build, score, scoring

    if aggregate:
        scoring.across_panels("figure")
    if as_json and as_csv:
        raise click.UsageError("name one of --json and --csv")
    found = _read(score.find(paths), load_fleet(fleet_path), labels_build.read_labels(labels_path), address)
    document = score.document(found, ks, arms or None, level)
    _print(document, as_json, as_csv)
    return found.exit_code


def _read(files: list[Path], fleet: object, labels: dict | None, address: str | None) -> object:
    from replaykit import score
    from replaykit.reports.progress import Progress

    with Progress("cassettes", len(files)) as progress:
        if address:
            return score.read_on(address, files, fleet, labels, progress, tell)
        return score.read(files, fleet, labels, progress)


def _print(document: dict, as_json: bool, as_csv: bool) -> None:
    from replaykit.reports import score_report

    if as_json:
        print_json(document)
    elif as_csv:
        click.echo(score_report.table_csv(document), nl=False)
    else:
        for line in score_report.lines(document):
            click.echo(line)
