"""``replaykit fleet``: build, verify and show the frozen index of panels."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import fleet_option, json_flag, load_fleet, print_json, write_result


@click.group()
def command() -> None:
    """Build, verify and show the fleet of panels, and what covers it.

    \b
    Examples:
      replaykit fleet build
      replaykit fleet verify
      replaykit fleet show retail/2
      replaykit fleet coverage certification cassettes
    """


@command.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("fleet.json"), show_default=True, help="File to write."
)
@click.option("--force", is_flag=True, help="Replace a file that differs.")
def build(out: Path, force: bool) -> None:
    """Write the fleet from the engine. Building twice gives the same bytes."""
    from replaykit import engine, fleet_build
    from replaykit.errors import UsageError

    if out.exists() and not out.is_file():
        raise UsageError(f"{out} is no file: name the file to write with --out")
    document = fleet_build.build(engine.load())
    if out.exists() and not force and out.read_bytes() != document.to_text().encode():
        raise UsageError(
            f"{out} exists and differs: look at it with 'replaykit fleet verify --fleet {out}', "
            "or use --force to replace it"
        )
    write_result(out, document.to_text())
    click.echo(f"{out}: {len(document.panels)} panels, digest {document.digest}")


@command.command()
@fleet_option
@json_flag
def verify(fleet_path: Path | None, as_json: bool) -> int:
    """Recompute every digest from the engine and compare. Exit 1 on a difference."""
    from replaykit import engine, fleet, fleet_build

    document = load_fleet(fleet_path)
    found = fleet.differences(document, fleet_build.build(engine.load()))
    if as_json:
        print_json({"panels": len(document.panels), "digest": document.digest, "differences": found})
    else:
        for sentence in found:
            click.echo(sentence)
        click.echo(f"{len(document.panels)} panels, {len(found)} differences, digest {document.digest}")
    return 1 if found else 0


@command.command()
@click.argument("panel", required=False)
@fleet_option
@json_flag
def show(panel: str | None, fleet_path: Path | None, as_json: bool) -> None:
    """Print the fleet, or one PANEL, a domain, or a range such as retail/10-19."""
    document = load_fleet(fleet_path)
    panels = document.select([panel or "all"])
    if as_json:
        whole = document.to_dict() | {"digest": document.digest}
        print_json([p.model_dump() for p in panels] if panel else whole)
    elif panel and len(panels) == 1:
        _print_panel(panels[0])
    else:
        _print_table(panels)
        click.echo(
            f"{len(panels)} panels, {sum(p.judge.required for p in panels)} need the judge, digest {document.digest}"
        )


@command.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--now", help="As of this moment. Default: the clock.")
@click.option("--panels", is_flag=True, help="One line a panel instead of counts.")
@fleet_option
@json_flag
def coverage(paths: tuple[Path, ...], now: str | None, panels: bool, fleet_path: Path | None, as_json: bool) -> None:
    """Show what is qualified, recorded, stale or missing, by panel and transport.

    PATHS hold certificates and cassettes. Default: certification and cassettes, as far as they are there.
    """
    from replaykit import coverage_files

    table = coverage_files.table(load_fleet(fleet_path), paths, now)
    if as_json:
        print_json(table.to_dict())
        return
    for line in coverage_files.lines(table, panels):
        click.echo(line)


def _print_table(panels: list) -> None:
    click.echo(f"{'panel':<12} {'reward basis':<22} {'judge':<8} {'component':<18} reference database")
    for p in panels:
        judge = f"{p.judge.assertions}" if p.judge.required else "-"
        click.echo(
            f"{p.id:<12} {'+'.join(p.metric.reward_basis):<22} {judge:<8} {p.component:<18} "
            f"{p.reference_final_db_hash[:16]}…"
        )


def _print_panel(panel: object) -> None:
    for key, value in panel.model_dump().items():
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for name, item in rows:
            label = f"{key}.{name}" if name else key
            click.echo(f"{label:<26} {', '.join(map(str, item)) if isinstance(item, list) else item}")
