"""``replaykit fork``: play a recording up to a request and go live from there."""

from __future__ import annotations

from pathlib import Path

import click

from replaykit.cli.resume import read_arm, report
from replaykit.cli.shared import fleet_option, json_flag, load_fleet

_MAX_PROMPT_BYTES = 1 << 20


@click.command()
@click.argument("cassette", type=click.Path(path_type=Path))
@click.option("--at", type=click.IntRange(min=1), required=True, metavar="N", help="The first request that goes live.")
@click.option("--arm", "arm_path", type=click.Path(path_type=Path), metavar="FILE.toml", help="Who answers from there.")
@click.option(
    "--controls", type=click.Choice(["one-exchange", "reference"]), help="Labelled controls answer from there."
)
@click.option(
    "--prompt",
    "prompt_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="System prompt of the learner from there on.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="The new cassette. Default: beside the old one."
)
@fleet_option
@json_flag
def command(
    cassette: Path,
    at: int,
    arm_path: Path | None,
    controls: str | None,
    prompt_path: Path | None,
    out: Path | None,
    fleet_path: Path | None,
    as_json: bool,
) -> int:
    """Record a child of a cassette: its requests before N are answered from the recording, N and later go live.

    The child is a whole cassette of its own: it replays without its parent, and names its parent's digest and the seam.

    \b
    Examples:
      replaykit fork recordings/retail/2-reference-s300.cassette.jsonl --at 5 --arm other-learner.toml
      replaykit fork recordings/retail/2-reference-s300.cassette.jsonl --at 5 --controls one-exchange
      replaykit fork recordings/retail/2-my-arm-s300.cassette.jsonl --at 5 --arm my-arm.toml --prompt stricter.md
    """
    from replaykit import fork
    from replaykit.reports.progress import Progress

    prompt = None if prompt_path is None else _read_prompt(prompt_path)
    fleet, arm = load_fleet(fleet_path), read_arm(arm_path)
    with Progress("episodes", 1) as progress:
        child = fork.fork(cassette, at, fleet, controls, arm, out, progress.request, prompt)
        progress.step()
    return report(child, as_json)


def _read_prompt(path: Path) -> str:
    from replaykit.errors import UsageError

    try:
        with path.open("rb") as file:
            data = file.read(_MAX_PROMPT_BYTES + 1)
        if len(data) > _MAX_PROMPT_BYTES:
            raise UsageError(f"{path} is larger than a prompt may be ({_MAX_PROMPT_BYTES} bytes)")
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: give the prompt as a text file") from error
