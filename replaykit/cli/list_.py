"""``replaykit list``: cassettes at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from replaykit.cli.shared import CassettePath, json_flag, print_json


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=CassettePath())
@click.option("--interrupted", "only_interrupted", is_flag=True, help="Only recordings that did not come to their end.")
@json_flag
def command(paths: tuple[Path, ...], only_interrupted: bool, as_json: bool) -> int:
    """List cassettes: panel, arm, case seed, how the episode ended, reward, requests.

    PATH is a cassette or a folder of them; s3:// and other URLs are read through fsspec. Only headers and footers are
    read, so ten thousand take a few seconds; 'replaykit replay' verifies what is between. Exit 5 when a file is
    damaged.

    \b
    Examples:
      replaykit list recordings
      replaykit list recordings --interrupted
      replaykit list cassettes --json
    """
    from replaykit.reports import listing
    from replaykit.store import reader

    counts: Counter[str] = Counter()
    worst, kept = 0, []
    for entry in listing.entries(reader.find(paths)):
        if only_interrupted and entry["state"] == "complete":
            continue
        counts[entry["state"]] += 1
        worst = max(worst, entry.get("exit_code", 0))
        if as_json:
            kept.append(entry)
        else:
            click.echo(listing.line(entry))
    if as_json:
        print_json({"schema": listing.SCHEMA, "counts": dict(sorted(counts.items())), "cassettes": kept})
    else:
        click.echo(listing.tally(counts))
    return worst
