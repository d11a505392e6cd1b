"""``replaykit doctor``: which tau2 is here, can it be trusted, and does it do what upstream did."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import json_flag, print_json


@click.command()
@click.option(
    "--facts", type=click.Path(path_type=Path), help="Run every case of a facts file on the engine and compare."
)
@json_flag
def command(facts: Path | None, as_json: bool) -> int:
    """Name the tau2 engine found, and test it against facts.

    Exit 3 when there is no engine that can be trusted, with one sentence on what to do.

    \b
    Examples:
      replaykit doctor
      replaykit doctor --facts tau2-1.0.1-open.json.gz
    """
    from replaykit import engine

    runtime = engine.load()
    for domain in ("airline", "retail"):
        runtime.domain(domain)
    if facts is None:
        return _identity(runtime, as_json)
    return _parity(runtime, facts, as_json)


def _identity(runtime: object, as_json: bool) -> int:
    identity = runtime.identity.to_dict()
    if as_json:
        print_json(identity | {"digest": runtime.identity.digest, "notes": list(runtime.found.notes)})
        return 0
    revision = identity["revision"]
    click.echo(
        f"engine        {identity['kind']}: {identity['distribution']} {identity['version']}, revision {revision}"
    )
    click.echo(f"python        {identity['python']}, pydantic {identity['libraries']['pydantic']}")
    click.echo(f"source        {identity['source_digest']}")
    for name, digest in identity["data_digests"].items():
        click.echo(f"data          {digest[:16]}…  {name}")
    for name in identity["corrections"] or ["none needed"]:
        click.echo(f"correction    {name}")
    for note in runtime.found.notes:
        click.echo(f"note          {note}")
    return 0


def _parity(runtime: object, facts: Path, as_json: bool) -> int:
    from replaykit import parity
    from replaykit.reports.progress import Progress

    document = parity.read(facts)
    domains = parity.domain_differences(document, runtime)
    with Progress("cases", len(document["cases"])) as progress:
        results = parity.run(document, runtime, lambda case: progress.step(errors=bool(case.differences)))
    differing = [r for r in results if r.differences and not r.environment]
    environment = [r for r in results if r.environment]
    unknown = parity.not_compared(document)
    summary = f"{len(results)} cases, {len(differing) + len(domains)} differences"
    if as_json:
        print_json(
            {
                "cases": len(results),
                "differences": [{"case": r.name, "differences": r.differences} for r in differing],
                "domains": domains,
                "not_compared": unknown,
                "environment_differs": [{"case": r.name, "why": r.environment} for r in environment],
                "engine": runtime.identity.to_dict(),
            }
        )
        return 1 if differing or domains else 0
    if unknown:
        click.echo(f"not compared, since it is not known here: {', '.join(unknown)}")
    for row in domains:
        click.echo(f"{row['what']}: differs")
    for result in differing:
        first = result.differences[0]
        click.echo(
            f"{result.name}: {first['what']}: expected {str(first['expected'])[:120]}, got {str(first['actual'])[:120]}"
        )
    for result in environment:
        click.echo(f"{result.name}: environment differs: {result.environment}")
    click.echo(summary)
    return 1 if differing or domains else 0
