"""``replaykit diff``: what differs between two runs, and what of it is a cause."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import print_json, write_result


@click.command()
@click.argument("left", type=click.Path(path_type=Path))
@click.argument("right", type=click.Path(path_type=Path))
@click.option(
    "--ignore",
    "ignore",
    multiple=True,
    metavar="POINTER",
    help="Leave a JSON pointer out, * for any one step; repeatable.",
)
@click.option("--wire", is_flag=True, help="Compare the bodies that crossed the wire as well.")
@click.option("--all", "show_all", is_flag=True, help="Print every difference of a pair, not the first twenty.")
@click.option(
    "--work-limit", type=click.IntRange(min=1), metavar="N", help="Compared values a pair.  [default: 1000000]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
@click.option(
    "--html", "html_path", type=click.Path(path_type=Path), metavar="FILE", help="Write a self-contained page."
)
@click.option("--junit", "junit_path", type=click.Path(path_type=Path), metavar="FILE", help="Write a JUnit report.")
def command(
    left: Path,
    right: Path,
    ignore: tuple[str, ...],
    wire: bool,
    show_all: bool,
    work_limit: int | None,
    as_json: bool,
    html_path: Path | None,
    junit_path: Path | None,
) -> int:
    """Say what differs between two runs, from the outside in.

    LEFT and RIGHT are cassettes, replay reports (replay --json), or folders of either; folders are paired by panel and
    trial. Exit 1 on a difference, 3 when nothing differs as far as it could be compared.

    \b
    Examples:
      replaykit diff before after
      replaykit diff a.cassette.jsonl b.cassette.jsonl --ignore '/requests/*/messages/*/content' --html diff.html
      replaykit diff replay-old.json replay-new.json
    """
    from replaykit.diff import report
    from replaykit.diff.leaves import WORK_LIMIT
    from replaykit.reports.progress import Progress

    pairs = report.pairs(left, right)
    with Progress("pairs", len(pairs)) as progress:
        found = report.compare(left, right, ignore, work_limit or WORK_LIMIT, wire, progress, pairs)
    _write(found, html_path, junit_path)
    if as_json:
        from replaykit import canonical

        print_json(canonical.encode(found.to_dict()))
    else:
        from replaykit.reports import diff_terminal

        for line in diff_terminal.lines(found, show_all, click.style):
            click.echo(line)
    return found.exit_code


def _write(found: object, html_path: Path | None, junit_path: Path | None) -> None:
    if html_path is not None:
        from replaykit.reports import diff_html

        write_result(html_path, diff_html.page(found))
    if junit_path is not None:
        from replaykit.reports import diff_junit

        write_result(junit_path, diff_junit.document(found))
