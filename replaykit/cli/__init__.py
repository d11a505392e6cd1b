"""The command line. Command files are imported only when their command runs; ``--help`` imports click alone."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: run a command, and end with a stable exit code."""
    if sys.argv[1:] == ["--version"]:
        from replaykit._version import __version__

        print(f"replaykit {__version__}")
        return
    from replaykit.cli.app import run

    sys.exit(run(sys.argv[1:]))
