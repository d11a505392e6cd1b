"""``replaykit certify``: qualify a transport panel by panel, verify a certificate, test the suite itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from replaykit.cli.shared import fleet_option, json_flag, load_fleet, print_json, tell, write_result

_EXIT = """\b
Exit codes: 0 qualified (full profile only), 1 measured and not qualified (every fast run), 3 incomplete,
6 void: the self-test failed. 'certify verify': 0 it holds, 5 it does not.
"""


class _TransportOrVerify(click.Group):
    """``verify`` is a command of its own; anything else is the name of a transport."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command before a transport's name."""
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_TransportOrVerify,
    epilog=_EXIT,
    subcommand_metavar="TRANSPORT [OPTIONS] | verify CERTIFICATE [OPTIONS] | --self-test",
)
def command() -> None:
    """Certify that a transport carries the three seats faithfully, panel by panel, offline.

    TRANSPORT is a built-in name (openai-chat, openai-responses, anthropic-messages, gemini-generate, litellm), one
    registered by another package, or module:attribute. Options: 'replaykit certify run --help'.

    \b
    Examples:
      replaykit certify openai-chat --panels airline/0,retail/2 --profile fast --out out
      replaykit certify mypackage.transports:Mine --panels all --out certification/mine
      replaykit certify openai-chat --out out --cluster tcp://scheduler:8786
      replaykit certify verify out/certificate.json --fleet fleet.json
      replaykit certify --self-test
    """


@command.command("run", hidden=True)
@click.argument("transport", required=False)
@click.option(
    "--panels",
    "selectors",
    multiple=True,
    default=("all",),
    show_default=True,
    help="Panels: ids, domains, ranges, all.",
)
@click.option(
    "--profile",
    "mode",
    type=click.Choice(["full", "fast"]),
    default="full",
    show_default=True,
    help="fast scales the clocks and never qualifies.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("certificate-out"),
    show_default=True,
    help="Folder for certificate, report and evidence. An interrupted run in it is gone on with.",
)
@click.option(
    "--base-url",
    help="Certify the gateway at this address, which must forward to the control provider at --control-port.",
)
@click.option("--control-port", type=click.IntRange(1, 65535), help="Port of the control provider for --base-url.")
@click.option("--wire", help="Wire of a third party's transport that does not name one.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=JSON",
    help='Option of the transport, e.g. dialect=\'{"max_tokens": "max_completion_tokens"}\'.',
)
@click.option(
    "--waivers",
    "waivers_path",
    type=click.Path(path_type=Path),
    help="JSON list of waivers: id, check, panel, reason, owner, link, granted, expires.",
)
@click.option(
    "--days", type=click.IntRange(1, 3660), default=28, show_default=True, help="How long the certificate is valid."
)
@click.option("--previous", type=click.Path(path_type=Path), help="The certificate that the new one follows.")
@click.option("--sign", "key_path", type=click.Path(path_type=Path), help="ed25519 private key (PEM) to sign with.")
@click.option(
    "--self-test", "self_test", is_flag=True, help="Run the known-good and known-bad transports through every check."
)
@click.option(
    "--self-test-report",
    "report_path",
    type=click.Path(path_type=Path),
    help="Take or keep the self-test's report in this file.",
)
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help="Capture the panels on the workers of a Dask scheduler (extra 'cluster'; see docs/scale.md).",
)
@fleet_option
@json_flag
def run(transport: str | None, self_test: bool, as_json: bool, report_path: Path | None, **options: Any) -> int:
    """Certify one transport, or run the self-test."""
    from replaykit.errors import UsageError

    if self_test:
        return _self_test(as_json, report_path)
    if transport is None:
        raise UsageError("name a transport to certify, 'verify' with a certificate, or --self-test")
    return _certify(transport, as_json, report_path, **options)


@command.command()
@click.argument("path", metavar="CERTIFICATE", type=click.Path(path_type=Path))
@click.option("--evidence", type=click.Path(path_type=Path), help="Evidence folder. Default: beside the certificate.")
@click.option("--key", type=click.Path(path_type=Path), help="ed25519 public key (PEM) that must have signed it.")
@click.option("--now", help="Verify as of this moment, e.g. 2027-01-01T00:00:00Z. Default: the clock.")
@click.option("--last-version", type=int, default=0, help="Refuse a lower version than this one.")
@click.option("--expect", multiple=True, metavar="NAME=SHA256", help="Pin the digest of profile or catalogue.")
@fleet_option
@json_flag
def verify(
    path: Path,
    evidence: Path | None,
    key: Path | None,
    now: str | None,
    last_version: int,
    expect: tuple[str, ...],
    fleet_path: Path | None,
    as_json: bool,
) -> int:
    """Verify a certificate offline: one line a step, no carried verdict trusted. Exit 5 when a step is wrong."""
    from replaykit.certify import verify as verifying

    fleet = load_fleet(fleet_path) if fleet_path else None
    expected = tuple((name, digest) for name, _, digest in (e.partition("=") for e in expect))
    request = verifying.Request(path, _moment(now), evidence, fleet, key, last_version, expected)
    lines = []
    for line in verifying.steps(request):
        lines.append(line)
        if not as_json:
            click.echo(line.text())
    held = verifying.holds(lines)
    if as_json:
        print_json(
            {
                "certificate": str(path),
                "holds": held,
                "steps": [{"step": line.step, "found": line.found, "said": line.said} for line in lines],
            }
        )
    elif not held:
        click.echo(f"{path} does not verify", err=True)
    return 0 if held else 5


@command.command()
@click.argument("path", metavar="CERTIFICATE", type=click.Path(path_type=Path))
@click.option("--as", "form", type=click.Choice(["junit", "test-result", "svr"]), required=True, help="The form.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
def export(path: Path, form: str, out: Path | None) -> None:
    """Write a certificate as JUnit, as an in-toto test result, or as a simple verification result.

    It is read strictly and not verified: use 'certify verify' for that.
    """
    from replaykit.reports import certificate_projections
    from replaykit.store import certificate_file

    text = certificate_projections.text(certificate_file.read(path)[0], form)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_result(out, text)


def _moment(now: str | None) -> str:
    from datetime import UTC, datetime

    from replaykit.errors import UsageError

    if now is None:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        moment = datetime.fromisoformat(now)
    except ValueError as error:
        raise UsageError(f"{now!r} is no moment: write it like 2027-01-01T00:00:00Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _self_test(as_json: bool, report_path: Path | None) -> int:
    from replaykit.certify import self_test
    from replaykit.reports.progress import Progress

    with Progress("bundles of checks", self_test.chunk_count()) as progress:
        report = self_test.run(progress.step)
    if report_path is not None:
        write_result(report_path, self_test.to_text(report))
    if self_test.holds(report):
        self_test.keep(report)
    if as_json:
        print_json(report)
    else:
        for part in ("alarms", "survivors", "idle_checks", "universal_passes"):
            for entry in report[part]:
                click.echo(f"{part}: {entry}")
        click.echo(self_test.summary(report))
    return 0 if self_test.holds(report) else 6


def _certify(
    transport: str, as_json: bool, report_path: Path | None, out: Path, key_path: Path | None, **options: Any
) -> int:
    from replaykit import certificate
    from replaykit.certify import run as running
    from replaykit.reports import certificate_html
    from replaykit.reports.progress import Progress
    from replaykit.store import certificate_file

    order = _order(transport, report_path, **options)
    place = out / "certificate.json"
    with Progress("checks and panels", running.work_count(order)) as progress:
        statement = running.run(order, certificate_file.Evidence(certificate_file.own_folder(place)), progress)
    running.check_whole(statement)
    certificate_file.write(place, statement, key_path)
    write_result(
        place.with_suffix(".html"),
        certificate_html.page(statement, certificate_file.Evidence(certificate_file.own_folder(place))),
    )
    if as_json:
        print_json(statement)
    else:
        _print(statement, place)
    return certificate.EXIT_CODES[statement["predicate"]["verdict"]]


def _order(
    transport: str,
    report_path: Path | None,
    *,
    selectors: tuple[str, ...],
    mode: str,
    base_url: str | None,
    control_port: int | None,
    wire: str | None,
    options: tuple[str, ...],
    waivers_path: Path | None,
    previous: Path | None,
    fleet_path: Path | None,
    days: int,
    address: str | None,
) -> Any:
    from replaykit import engine
    from replaykit.certify import inputs, run, self_test, subject
    from replaykit.errors import UsageError
    from replaykit.store import certificate_file

    if (base_url is None) != (control_port is None):
        raise UsageError("--base-url and --control-port go together: the gateway must forward to the control provider")
    if address is not None and base_url is not None:
        raise UsageError("--cluster and --base-url do not go together: a gateway is certified from one machine")
    fleet = load_fleet(fleet_path)
    chosen = fleet.select(selectors)
    before = certificate_file.read(previous)[0] if previous else None
    named = subject.load(transport, inputs.options(options), base_url)
    inputs.check_wire(named, wire)
    waivers = inputs.waivers(waivers_path)
    runtime = engine.load()
    report = self_test.known(report_path) or _fresh_report(report_path)
    return run.Order(
        named,
        fleet,
        chosen,
        mode,
        runtime,
        report,
        wire,
        control_port,
        waivers,
        before,
        days=days,
        cluster=address,
        tell=tell,
    )


def _fresh_report(report_path: Path | None) -> dict:
    from replaykit.certify import self_test

    click.echo("replaykit: testing the suite itself first (its report is kept for this version)", err=True)
    report = self_test.run()
    self_test.keep(report, report_path)
    return report


def _print(statement: dict, place: Path) -> None:
    predicate = statement["predicate"]
    for row in predicate["checks"]:
        if row["status"] != "PASS":
            click.echo(f"{row['id']} {row['status']:<14} {row['code'] or ''} {row['where']}".rstrip())
    counts = ", ".join(f"{n} {s}" for s, n in predicate["panels"]["counts"].items() if n)
    named = sum(bool(row["diagnostics"]) for row in predicate["panels"]["rows"])
    click.echo(f"panels: {counts}; engine: {predicate['engine']['kind']}; all-true defaults named on {named} panels")
    click.echo(f"not claimed: {'; '.join(predicate['non_claims'])}")
    click.echo(
        f"{predicate['verdict']} by {predicate['verdict_rule']} ({predicate['profile']['mode']} profile): {place}"
    )
