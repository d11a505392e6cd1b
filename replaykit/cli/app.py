"""The command group, its lazy commands, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

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
    "list": ("replaykit.cli.list_", "List cassettes: panel, arm, how it ended, reward."),
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
  130  interrupted; 141  nobody read the output to its end
"""


class _ReaderLeft(Exception):
    """Nobody reads standard output any more."""


@contextlib.contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Keep a closed pipe from click, which ends with 1 there: here that says that a check failed."""
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderLeft from error


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

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """As click's; prints the help where it is asked for."""
        with _reader_may_leave():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _reader_may_leave():
            return super().invoke(ctx)

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
    _mend_streams()
    code = _run(arguments)
    return _BISECT.get(code, _SKIP if code < _SIGNALLED else code) if "--bisect" in arguments else code


# What 'git bisect run' understands: good, bad, cannot be tested; it stops at codes that a signal gives.
_BISECT = {0: 0, 1: 1}
_SKIP = 125
_SIGNALLED = 128


def _mend_streams() -> None:
    """Let a closed stream swallow what is written, and one without the letter for it show its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it lives as long as the process
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        code = group.main(arguments, prog_name="replaykit", standalone_mode=False)
        sys.stdout.flush()
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
    except (_ReaderLeft, BrokenPipeError):
        _let_go_of_output()
        return 141
    except ModuleNotFoundError as error:
        is_ours = (error.name or "replaykit").partition(".")[0] == "replaykit"
        sentence = (
            f"internal error: {error}"
            if is_ours
            else f"the package {error.name} is not installed: install replaykit's dependencies"
        )
        return _fail(sentence, 6 if is_ours else 3, debug)
    except OSError as error:
        _let_go_of_output()
        place = error.filename or "the output"
        return _fail(f"{os.fsdecode(place)} cannot be used: {error.strerror or error}", 3, debug)
    except Exception as error:  # the last resort: an internal error is a sentence too
        return _fail(f"internal error: {type(error).__name__}: {error} (run with --debug to see where)", 6, debug)


def _let_go_of_output() -> None:
    """Point standard output elsewhere, so that what is still to be flushed cannot fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(sentence: str, code: int, debug: bool = False) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    with contextlib.suppress(OSError):
        click.echo(f"replaykit: {sentence}", err=True)
    return code
