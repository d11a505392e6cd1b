"""A replay under another interpreter: named in a file of the user's, run with this package and its own libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaykit import engines
from replaykit.cli.app import run
from replaykit.errors import EngineNotReady, EvidenceError, InternalError, UsageError
from replaykit.store import engines_file, reader

ROOT = Path(__file__).parent.parent


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The user's file of engines, in a folder of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "replaykit" / "engines.json"


def test_an_interpreter_is_tried_before_it_gets_a_name(file):
    assert engines.add("here", Path(sys.executable)) == ".".join(map(str, sys.version_info[:3]))
    assert json.loads(file.read_text())["engines"] == {"here": os.path.abspath(sys.executable)}


@pytest.mark.parametrize(
    ("python", "reason"), [("/nonexistent/python", "not a Python"), ("/bin/ls", "cannot run replaykit"), ("/", "not a")]
)
def test_what_is_no_interpreter_gets_no_name(file, python, reason):
    with pytest.raises(UsageError, match=reason):
        engines.add("there", Path(python))
    assert not file.exists()


@pytest.mark.parametrize("name", ["", "../up", "a b", "-x", "x" * 65])
def test_a_name_has_to_be_plain(file, name):
    with pytest.raises(UsageError, match="cannot name an engine"):
        engines.add(name, Path(sys.executable))


def test_a_name_is_forgotten_and_an_unknown_one_refused(file):
    engines.add("here", Path(sys.executable))
    engines.remove("here")
    assert engines.named() == {}
    with pytest.raises(UsageError, match="engines add here --python"):
        engines.remove("here")


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "replaykit.engines/1"}', '{"schema": "x", "engines": {}}'])
def test_a_file_of_another_form_is_refused_and_left_as_it_is(file, text):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(UsageError, match="engines"):
        engines.add("here", Path(sys.executable))
    assert file.read_text() == text


def test_without_a_configuration_folder_the_file_is_in_the_home_folder():
    assert engines_file.locate({}) == Path.home() / ".config" / "replaykit" / "engines.json"
    assert engines_file.locate({"XDG_CONFIG_HOME": "relative"}) == engines_file.locate({})


def test_a_replay_under_another_interpreter_reports_as_one_here_does(file, recording, tmp_path, capsys):
    path = recording("airline/2")[0]
    engines.add("other", Path(sys.executable))
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert run(["replay", str(path), "--json", str(here)]) == 0
    assert run(["replay", str(path), "--engine", "other", "--json", str(there)]) == 0
    assert here.read_text() == there.read_text()
    assert run(["diff", str(here), str(there)]) == 0
    assert "1 same" in capsys.readouterr().out


def test_the_other_interpreter_uses_its_own_libraries(file, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    with engines._package_alone() as folder:
        assert [p.name for p in folder.iterdir()] == ["replaykit"]
    assert "PYTHONPATH" not in engines._environment()


def test_a_divergence_there_is_an_exit_code_here(file, recording, monkeypatch, tmp_path):
    path = recording("airline/2")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.cassette.jsonl"
    cut.write_bytes(b"".join(lines[:6]))
    engines.add("other", Path(sys.executable))
    assert run(["replay", str(cut), "--engine", "other"]) == 3
    assert reader.read(cut).interrupted


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (3, "replaykit: no tau2 engine", EngineNotReady),
        (2, "replaykit: bad option", UsageError),
        (5, "replaykit: damaged", EvidenceError),
        (1, "", InternalError),
        (-9, "Killed", InternalError),
    ],
)
def test_an_interpreter_that_gives_no_report_is_an_error_of_its_kind(code, said, kind):
    done = subprocess.CompletedProcess([], code, "not a report", said)
    with pytest.raises(kind, match=f"engine other: {said.removeprefix('replaykit: ') or 'it ended with 1'}"):
        engines.outcomes(done, "other")
