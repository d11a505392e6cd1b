"""The command line. Command files are imported only when their command runs; ``--help`` imports click alone."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: run a command, and end with a stable exit code."""
    if sys.argv[1:] == ["--version"]:
        from replaykit._version import __version__

        print(f"replaykit {__version__}")
        return
    try:
        from replaykit.cli.app import run
    except ModuleNotFoundError as error:
        sys.exit(_not_installed(error))
    sys.exit(run(sys.argv[1:]))


def _not_installed(error: ModuleNotFoundError) -> int:
    print(f"replaykit: the package {error.name} is not installed: install replaykit's dependencies", file=sys.stderr)
    return 3
