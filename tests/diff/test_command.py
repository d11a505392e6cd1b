"""``replaykit diff``: exit codes, reports, and what it says on the terminal."""

from __future__ import annotations

import json

import pytest

from replaykit.cli.app import run

from .rewriting import rewritten


@pytest.fixture
def pair(episodes, tmp_path):
    """Paths of an episode and of the same with another reply."""

    def edit(data):
        data["turns"][3]["outcome"]["reply"]["content"] = "Another answer."

    changed = tmp_path / "changed.cassette.jsonl"
    rewritten(episodes["retail/2"], changed, edit)
    return str(episodes["retail/2"].path), str(changed)


@pytest.fixture
def interrupted(episodes, tmp_path):
    """Path of the beginning of the same episode."""
    path = tmp_path / "interrupted.cassette.jsonl"
    rewritten(episodes["retail/2"], path, lambda data: data["turns"].__delitem__(slice(5, None)), ends=False)
    return str(path)


def test_an_episode_is_the_same_as_itself(pair, capsys):
    assert run(["diff", pair[0], pair[0]]) == 0
    assert "1 same" in capsys.readouterr().out


def test_a_difference_is_exit_1_and_is_named_with_its_seat_number_and_pointer(pair, capsys):
    assert run(["diff", *pair]) == 1
    assert "learner's reply 4 at /content" in capsys.readouterr().out


def test_an_interrupted_recording_is_exit_3_and_never_said_to_be_the_same(pair, interrupted, capsys):
    assert run(["diff", pair[0], interrupted]) == 3
    said = capsys.readouterr().out
    assert "UNFINISHED" in said
    assert "interrupted" in said


def test_a_reached_limit_is_exit_3_and_names_the_limit(pair, capsys):
    assert run(["diff", pair[0], pair[0], "--work-limit", "5"]) == 3
    assert "limit of 5" in capsys.readouterr().out


@pytest.mark.parametrize("pointer", ["/replies/4", "/replies/*/content"])
def test_what_is_ignored_is_listed_and_no_difference(pair, capsys, pointer):
    assert run(["diff", *pair, "--ignore", pointer, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ignored"][0]["pointer"] == pointer
    assert document["ignored"][0]["left_out"] > 0


def test_json_names_the_first_difference_the_causes_and_what_is_never_compared(pair, capsys):
    assert run(["diff", *pair, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (found,) = document["pairs"]
    assert (found["first"]["number"], found["first"]["pointer"], found["causes"]) == (4, "/content", [0])
    assert {entry["pointer"] for entry in document["never_compared"]} >= {"/header/created_at", "/replies/*/id"}


def test_a_page_and_a_junit_report_are_written(pair, tmp_path):
    page, junit = tmp_path / "diff.html", tmp_path / "diff.xml"
    assert run(["diff", *pair, "--html", str(page), "--junit", str(junit)]) == 1
    assert page.read_text().startswith("<!doctype html>")
    assert 'failures="1"' in junit.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"), [(["missing", "missing"], 2), ([".", "--ignore", "x"], 2), (["/dev/null", "/dev/null"], 5)]
)
def test_wrong_use_and_unreadable_input_are_one_sentence(arguments, code, capsys, pair):
    arguments = [pair[0], pair[0], *arguments[1:]] if arguments[0] == "." else arguments
    assert run(["diff", *arguments]) == code
    said = capsys.readouterr().err.strip()
    assert said.startswith("replaykit: ")
    assert "\n" not in said


def test_bodies_on_the_wire_are_compared_when_asked(recording, tmp_path, capsys):
    path = str(recording("airline/2")[0])
    assert run(["diff", path, path, "--wire", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["sections"]["wire"] == "same"
