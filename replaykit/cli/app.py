"""The command group, its lazy commands, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys

import click

from replaykit._version import __version__
from replaykit.errors import ReplaykitError

# name -> (module, one line for --help). Help of the group is written from this table, so it loads no command.
COMMANDS = {
    "record": ("replaykit.cli.record", "Record episodes of panels into cassettes."),
    "resume": ("replaykit.cli.resume", "Continue an interrupted recording."),
    "replay": ("replaykit.cli.replay", "Replay cassettes offline and compare everything."),
    "diff": ("replaykit.cli.diff", "Say what differs between two runs, and what of it is a cause."),
    "fork": ("replaykit.cli.fork", "Play a recording up to a request and go live from there."),
    "show": ("replaykit.cli.show", "Print a cassette as a conversation."),
    "view": ("replaykit.cli.view", "Look at episodes in a browser, or write them as one HTML file."),
    "score": ("replaykit.cli.score", "Score cassettes, panel by panel and arm by arm."),
    "labels": ("replaykit.cli.labels", "Build and check the transfer labels of the tasks."),
    "import": ("replaykit.cli.import_", "Turn tau2 results files or vcrpy cassettes into cassettes."),
    "export": ("replaykit.cli.export", "Write tau2 results, vcrpy cassettes or HAR files from cassettes."),
    "engines": ("replaykit.cli.engines", "Name interpreters that have another tau2."),
    "certify": ("replaykit.cli.certify", "Certify a transport panel by panel; verify certificates."),
    "controls": ("replaykit.cli.controls", "Run the loopback control provider on its own."),
    "fleet": ("replaykit.cli.fleet", "Build, verify and show the fleet of panels."),
    "doctor": ("replaykit.cli.doctor", "Name the tau2 engine found, and test it against facts."),
}

EPILOG = """\b
Exit codes:
  0  all good
  1  a check failed: a divergence, a difference, not qualified
  2  wrong use, or input that cannot be read
  3  the environment is not ready, or the result is incomplete
  4  the outside world: a seat cannot be reached, a socket was opened offline
  5  damaged or forged evidence, or a schema newer than this version
  6  replaykit itself is wrong
"""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, imported now."""
        if name not in COMMANDS:
            return None
        return importlib.import_module(COMMANDS[name][0]).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple:
        """As click's, with a suggestion for a mistyped name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            if near:
                error.message += f" Did you mean {near[0]!r}?"
            raise


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="replaykit")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def group(ctx: click.Context, debug: bool) -> None:
    """Record, replay, diff and certify tau2-bench episodes.

    \b
    Examples:
      replaykit record airline/0 retail/10-19 --controls reference --out recordings
      replaykit replay recordings
      replaykit show cassettes/airline/7-reference-s300.cassette.jsonl
    """
    ctx.color = False if os.environ.get("NO_COLOR") else None


def run(arguments: list[str]) -> int:
    """Run the command line.

    Returns:
        The exit code.
    """
    debug = "--debug" in arguments
    try:
        code = group.main(arguments, prog_name="replaykit", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return _fail("interrupted", 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ReplaykitError as error:
        return _fail(str(error), error.exit_code, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the last resort: an internal error is a sentence too
        return _fail(f"internal error: {type(error).__name__}: {error} (run with --debug to see where)", 6, debug)


def _fail(sentence: str, code: int, debug: bool = False) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    click.echo(f"replaykit: {sentence}", err=True)
    return code
