"""Start-up stays light: help imports click alone, and tau2 is imported only where an episode runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("httpx", "vcr", "deepdiff", "pydantic", "rich", "yaml", "tau2", "asyncio", "importlib.metadata")
PROBE = "import sys; from replaykit.cli.app import run; code = run({arguments!r}); print('|'.join(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"


def modules_after(*arguments: str) -> set[str]:
    """Modules loaded after a command ran in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", PROBE.format(arguments=list(arguments))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stderr.strip().splitlines()[-1].split("|"))


def test_help_imports_click_and_nothing_heavy():
    assert modules_after("--help") & set(HEAVY) == set()


@pytest.mark.parametrize("command", ["record", "replay", "list", "fleet", "doctor"])
def test_help_of_a_command_imports_no_engine_and_no_http(command):
    assert modules_after(command, "--help") & {"tau2", "httpx", "vcr", "deepdiff"} == set()


@pytest.mark.parametrize("arguments", [("fleet", "show", "airline/0"), ("list", "cassettes")], ids=" ".join)
def test_showing_what_is_there_never_imports_the_engine(arguments):
    assert modules_after(*arguments) & {"tau2", "replaykit.engine.tau2_engine"} == set()


def test_version_imports_not_even_click():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['replaykit', '--version']; import replaykit.cli as c; c.main(); print('click' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"
