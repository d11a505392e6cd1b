"""Start-up stays light: help imports click alone, and tau2 is imported only where an episode runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("httpx", "vcr", "deepdiff", "pydantic", "rich", "yaml", "tau2", "asyncio", "importlib.metadata")
PROBE = "import sys; from replaykit.cli.app import run; code = run({arguments!r}); print('|'.join(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"


def modules_after(*arguments: str) -> set[str]:
    """Modules loaded after a command ran in a fresh interpreter."""
    probe = [sys.executable, "-c", PROBE.format(arguments=list(arguments))]
    done = subprocess.run(probe, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode in (0, 5), done.stderr[-2000:]  # 5: the certificate is stale, which is not the question here
    return set(done.stderr.strip().splitlines()[-1].split("|"))


def test_help_imports_click_and_nothing_heavy():
    assert modules_after("--help") & set(HEAVY) == set()


@pytest.mark.parametrize("command", ["record", "replay", "list", "fleet", "doctor"])
def test_help_of_a_command_imports_no_engine_and_no_http(command):
    assert modules_after(command, "--help") & {"tau2", "httpx", "vcr", "deepdiff"} == set()


ONE = "cassettes/airline/7-reference-s300.cassette.jsonl"
CERTIFICATE = "certification/openai-chat/certificate.json"


@pytest.mark.parametrize(
    "arguments",
    [
        ("fleet", "show", "airline/0"),
        ("fleet", "coverage"),
        ("list", "cassettes"),
        ("score", "cassettes"),
        ("show", ONE),
        ("diff", ONE, ONE),
        ("certify", "verify", CERTIFICATE, "--fleet", "fleet.json"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_showing_what_is_there_never_imports_the_engine(arguments):
    assert modules_after(*arguments) & {"tau2", "replaykit.engine.tau2_engine"} == set()


def test_version_imports_not_even_click():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['replaykit', '--version']; import replaykit.cli as c; c.main(); print('click' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"
