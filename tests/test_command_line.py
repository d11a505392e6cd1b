"""How a command ends: one sentence, its own exit code, and no harm to what is not its file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from replaykit.cli import app

ROOT = Path(__file__).parent.parent
SHOW = ["show", "cassettes/airline/0-one-exchange-s300.cassette.jsonl"]
needs_full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


def run(arguments: list[str], **options) -> subprocess.CompletedProcess:
    """replaykit in a process of its own; standard error as text."""
    return subprocess.run(
        [sys.executable, "-m", "replaykit", *arguments], stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False, **options
    )


@pytest.mark.parametrize("arguments", [SHOW, ["fleet", "show"], ["--help"]], ids=["show", "fleet", "help"])
def test_a_reader_that_leaves_ends_a_command_with_141_and_no_word(arguments):
    receiver, sender = os.pipe()
    os.close(receiver)
    done = run(arguments, stdout=sender)
    os.close(sender)
    assert (done.returncode, done.stderr) == (141, "")


@needs_full_device
def test_output_that_cannot_be_written_is_a_sentence_and_exit_3():
    with open("/dev/full", "w") as full:
        done = run(SHOW, stdout=full)
    assert done.returncode == 3 and done.stderr == "replaykit: the output cannot be used: No space left on device\n"


def test_closed_standard_streams_are_no_error():
    command = [sys.executable, "-m", "replaykit", *SHOW]
    closing = "import os, sys; os.close(1); os.close(2); os.execv(sys.executable, sys.argv[1:])"
    assert subprocess.run([sys.executable, "-c", closing, *command], cwd=ROOT, check=False).returncode == 0


def test_letters_the_output_has_not_are_written_as_their_codes():
    done = run(["fleet", "show"], stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0 and "\\u2026" in done.stdout


def test_a_replay_under_bisect_knows_no_other_codes_than_0_1_and_125(monkeypatch):
    for code, wanted in {0: 0, 1: 1, 2: 125, 3: 125, 5: 125, 6: 125, 130: 130, 141: 141}.items():
        monkeypatch.setattr(app, "_run", lambda arguments, code=code: code)
        assert app.run(["replay", "x", "--bisect"]) == wanted
        assert app.run(["replay", "x"]) == code


def test_input_that_is_not_there_is_125_under_bisect():
    assert app.run(["replay", "no/such/place", "--bisect"]) == 125


BUILD = {"a folder": "tests", "a device": "/dev/null"}


@pytest.mark.parametrize("place", BUILD.values(), ids=BUILD.keys())
def test_a_fleet_is_not_built_into_what_is_no_file(place, capsys):
    assert app.run(["fleet", "build", "--out", place]) == 2
    assert "is no file" in capsys.readouterr().err


def test_a_report_to_a_device_leaves_the_device_there(recording):
    done = run(["replay", str(recording("airline/0")[0]), "--json", "/dev/null"], stdout=subprocess.DEVNULL)
    assert done.returncode == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_missing_dependency_is_a_sentence_and_exit_3():
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", "-m", "replaykit", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=bare)
    assert done.returncode == 3 and done.stderr == "replaykit: the package click is not installed: install replaykit's dependencies\n"
