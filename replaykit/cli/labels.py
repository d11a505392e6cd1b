"""``replaykit labels``: build and check the transfer labels and the split manifest."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import json_flag, print_json

_FILE = click.Path(path_type=Path)
_derived = click.option("--derived", type=_FILE, metavar="FILE", help="Derived tasks (see docs/policy.md).")
_overrides = click.option(
    "--overrides",
    type=_FILE,
    metavar="FILE",
    help="Corrections after a hand check.  [default: data/manifests/label_overrides_v1.json, if it is there]",
)


@click.group()
def command() -> None:
    """Build and check the transfer labels and the split manifest.

    \b
    Examples:
      replaykit labels build
      replaykit labels build --derived data/derived_tasks.example.json --out my-manifests
      replaykit labels check
    """


@command.command()
@_derived
@_overrides
@click.option("--out", type=_FILE, default=Path("data/manifests"), show_default=True, help="Folder to write into.")
def build(derived: Path | None, overrides: Path | None, out: Path) -> None:
    """Write labels_v1.json and splits_v1.json from the engine's scenarios. Building twice gives the same bytes."""
    from replaykit import engine, labels_build

    texts = labels_build.sources(engine.load(), derived, overrides).build()
    labels_build.write(out, texts)
    click.echo(f"{out / labels_build.LABELS}: {_said(texts[0])}")
    click.echo(f"{out / labels_build.SPLITS}: the splits of these labels")


@command.command()
@_derived
@_overrides
@click.option("--dir", "folder", type=_FILE, help="Their folder.  [default: data/manifests here, else replaykit's own]")
@json_flag
def check(derived: Path | None, overrides: Path | None, folder: Path | None, as_json: bool) -> int:
    """Build both manifests again and compare. Exit 1 on a difference.

    Manifests that were built with derived tasks are checked with the same file.
    """
    from replaykit import engine, labels_build

    folder = folder or labels_build.folder()
    sources = labels_build.sources(engine.load(), derived, overrides)
    found = sources.differences(folder)
    if as_json:
        print_json({"folder": str(folder), "revision": sources.revision, "differences": found})
    else:
        for sentence in found:
            click.echo(sentence)
        click.echo(f"{folder}: {_said(sources.build()[0])}" if not found else f"{folder}: {len(found)} differences")
    return 1 if found else 0


def _said(text: bytes) -> str:
    """How many tasks each rule labels."""
    import json
    from collections import Counter

    entries = [entry for tasks in json.loads(text)["domains"].values() for entry in tasks.values()]
    rules = Counter(entry["rule"] for entry in entries)
    corrected = sum("override" in entry for entry in entries)
    parts = [f"{count} {rule}" for rule, count in rules.items()]
    parts += [f"{corrected} corrected by hand"] if corrected else []
    return f"{len(entries)} labels ({', '.join(parts)})"
