"""``replaykit controls``: the control provider on its own."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.shared import stoppable


@click.group()
def command() -> None:
    """Run the loopback control provider on its own, to point a client or a gateway at it.

    \b
    Examples:
      replaykit controls serve --port 8765
      replaykit controls serve --port 8765 --journal journal.jsonl
    """


@command.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 takes a free one."
)
@click.option("--case", default="one-exchange", show_default=True, help="Name of the case in the addresses.")
@click.option("--key", help="Credential to demand. Default: any is taken.")
@click.option(
    "--seat",
    type=click.Choice(["learner", "customer", "judge"]),
    help="Who answers at the bare address, for gateways that know only one.",
)
@click.option(
    "--journal",
    "journal_path",
    type=click.Path(path_type=Path),
    help="Keep a journal of raw bytes in this file; credentials are masked.",
)
def serve(port: int, case: str, key: str | None, seat: str | None, journal_path: Path | None) -> None:
    """Serve the labelled one-exchange controls on all four wires until interrupted."""
    import threading

    from replaykit.certify.control import RoutedProvider
    from replaykit.controls.identities import one_exchange
    from replaykit.controls.wires import WIRES
    from replaykit.seats import SEATS

    secrets = [key] if key else []
    with RoutedProvider(port=port, journal_path=journal_path, secrets=secrets, keep_bytes=False) as provider:
        provider.add_case(case, one_exchange(), key=key)
        provider.route = (case, seat or "learner")
        for wire in WIRES:
            for name in SEATS:
                click.echo(f"{wire:<20} {name:<9} {provider.base_url(case, name, wire)}")
        click.echo(
            f"{'bare address':<20} {seat or 'learner':<9} http://127.0.0.1:{provider.port}/v1  (stop with Ctrl-C)"
        )
        try:
            with stoppable():
                threading.Event().wait()
        except KeyboardInterrupt:
            click.echo(f"{provider.request_count()} requests were answered")
