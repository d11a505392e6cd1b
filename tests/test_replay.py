"""Replaying: offline, everything compared, the first divergence named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from replaykit import replay_many
from replaykit.errors import EvidenceError
from replaykit.replay import Comparison, replay
from replaykit.reports import junit, replay_report
from replaykit.seats import SeatReply
from replaykit.store import reader

ROOT = Path(__file__).parent.parent


def report_of(path, runtime, fleet, change=None):
    """Replay a cassette after changing the value that was read."""
    cassette = reader.read(path)
    return replay(change(cassette) if change else cassette, runtime, fleet, "c")


def test_a_recording_replays_equal(recording, runtime, fleet):
    for path in recording("airline/7", "retail/2", "retail/37"):
        report = report_of(path, runtime, fleet)
        assert report.status == "equal" and report.divergences == () and len(report.checked) == 10


def other_reply(cassette, number, reply):
    requests = list(cassette.requests)
    requests[number - 1] = replace(requests[number - 1], outcome=reply)
    return replace(cassette, requests=tuple(requests))


def test_another_reply_makes_the_next_request_differ(recording, runtime, fleet):
    path = recording("retail/2")[0]
    report = report_of(path, runtime, fleet, lambda c: other_reply(c, 1, SeatReply("Good morning.")))
    first = report.divergences[0]
    assert (report.status, first.kind, first.seat, first.number, first.pointer) == ("diverged", "request", "learner", 2, "/messages/2/content")
    assert first.actual == "Good morning." and "differs at /messages/2/content" in first.sentence


def test_a_request_recorded_but_not_asked_is_named(recording, runtime, fleet):
    path = recording("airline/7")[0]
    report = report_of(path, runtime, fleet, lambda c: other_reply(c, 1, SeatReply("###STOP###")))
    assert "missing_request" in [d.kind for d in report.divergences]


def test_a_request_asked_but_not_recorded_is_named(recording, runtime, fleet):
    path = recording("airline/7")[0]
    report = report_of(path, runtime, fleet, lambda c: replace(c, requests=c.requests[:-1]))
    last = report.divergences[-1]
    assert last.kind == "extra_request" and "were recorded" in last.sentence


def changed_footer(**members):
    def change(cassette):
        return replace(cassette, footer={**cassette.footer, "result": {**cassette.footer["result"], **members}})

    return change


FOOTERS = {
    "another final database hash": ({"final_db_hash": "0" * 64}, "final_db_hash"),
    "another initial database hash": ({"initial_db_hash": "0" * 64}, "initial_db_hash"),
    "another reward": ({"reward": 0.25}, "reward"),
    "a reward of 1 instead of 1.0": ({"reward": 1}, "reward"),
    "another termination": ({"termination": "agent_stop"}, "termination"),
    "more steps": ({"steps": 99}, "simulation"),
    "a shorter trajectory": ({"trajectory": []}, "simulation"),
    "another learner state": ({"learner_state": []}, "learner_state"),
    "another customer state": ({"customer_state": []}, "customer_state"),
    "another diagnostic": ({"diagnostics": [{"name": "x"}]}, "diagnostics"),
}


@pytest.mark.parametrize(("members", "kind"), FOOTERS.values(), ids=FOOTERS.keys())
def test_a_result_that_differs_is_a_divergence(recording, runtime, fleet, members, kind):
    report = report_of(recording("airline/7")[0], runtime, fleet, changed_footer(**members))
    assert kind in [d.kind for d in report.divergences]


def test_policy_states_that_part_name_the_turn(recording, runtime, fleet):
    def change(cassette):
        states = json.loads(json.dumps(cassette.footer["policy_states"]))
        states["turns"][1]["digest"] = "0" * 64
        return replace(cassette, footer={**cassette.footer, "policy_states": states})

    report = report_of(recording("airline/7")[0], runtime, fleet, change)
    assert [d.kind for d in report.divergences] == ["policy_state"] and "after message" in report.divergences[0].sentence


def test_policy_records_that_part_from_the_footer_are_a_divergence(recording, runtime, fleet):
    report = report_of(recording("airline/7")[0], runtime, fleet, lambda c: replace(c, states=c.states[1:]))
    assert [d.kind for d in report.divergences] == ["policy_state"]


UNSENT = {"nothing": None, "another reason": {"reason": "tool_name_mismatch"}}


@pytest.mark.parametrize("outcome", UNSENT.values(), ids=UNSENT.keys())
def test_a_request_that_did_not_go_out_then_and_does_now_is_a_divergence(recording, runtime, fleet, outcome):
    report = report_of(recording("airline/7")[0], runtime, fleet, lambda c: other_reply(c, 2, outcome))
    assert (report.status, report.divergences[0].number) == ("diverged", 2) and "goes out now" in report.divergences[0].sentence


def test_a_header_without_a_trial_seed_is_damage(recording, runtime, fleet):
    with pytest.raises(EvidenceError, match="trial seed"):
        report_of(recording("airline/7")[0], runtime, fleet, lambda c: replace(c, header={**c.header, "seeds": {}}))


def test_an_interrupted_recording_is_incomplete_and_not_equal(recording, fleet, tmp_path):
    whole = recording("retail/37")[0].read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.cassette.jsonl"
    for count in range(1, len(whole)):
        cut.write_bytes(b"".join(whole[:count]))
        outcome = replay_many.one(cut, fleet)
        assert outcome.report.status == "incomplete" and replay_many.exit_code([outcome]) == 3


def test_every_flipped_bit_of_a_sample_is_refused(recording, fleet, tmp_path):
    data = recording("airline/0", controls="one-exchange")[0].read_bytes()
    target = tmp_path / "flipped.cassette.jsonl"
    for position in range(0, len(data), len(data) // 25):
        target.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        outcome = replay_many.one(target, fleet)
        assert outcome.report is None and outcome.exit_code == 5, position


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """replaykit in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "replaykit", *arguments], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}, check=False
    )


def test_reports_are_the_same_bytes_in_every_process(recording, tmp_path):
    folder = recording("airline/7", "retail/2", "retail/37")[0].parent.parent
    first = run("replay", str(folder), "--json", str(tmp_path / "a.json"), PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C")
    second = run("replay", str(folder), "-j", "2", "--json", str(tmp_path / "b.json"), PYTHONHASHSEED="7", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_damage_outranks_divergence_and_does_not_stop_the_others(recording, fleet, tmp_path):
    good = recording("airline/0")[0]
    bad = good.with_name("bad.cassette.jsonl")
    bad.write_bytes(good.read_bytes()[:-9] + b"xxxxxxxx\n")
    outcomes = replay_many.run(replay_many.find([tmp_path]), fleet, 1, type("W", (), {"step": lambda self, errors=False: None})())
    assert sorted(o.report is None for o in outcomes) == [False, True] and replay_many.exit_code(outcomes) == 5


def test_reports_hold_the_first_divergence_and_survive_control_characters(recording, runtime, fleet):
    path = recording("retail/2")[0]
    report = report_of(path, runtime, fleet, lambda c: other_reply(c, 1, SeatReply("bell \x07 and \x1b[31mred")))
    outcomes = [replay_many.Outcome("c", report)]
    text = "\n".join(replay_report.lines(outcomes))
    assert "first divergence" in text and "\x1b" not in text and "\\u001b" in text
    assert "<failure" in junit.replay(outcomes) and "\x07" not in junit.replay(outcomes)


USE = {
    "no cassette below a folder": (["replay", "docs"], 2, "no cassette"),
    "a path that is not there": (["replay", "no/such/place"], 2, "no/such/place"),
    "a panel that is not there": (["record", "airline/99", "--controls", "reference"], 2, "no panel"),
    "neither arm nor controls": (["record", "airline/0"], 2, "--arm"),
    "a mistyped command": (["reply"], 2, "Did you mean"),
}


@pytest.mark.parametrize(("arguments", "code", "sentence"), USE.values(), ids=USE.keys())
def test_wrong_use_is_one_sentence_and_exit_2(arguments, code, sentence):
    done = run(*arguments)
    assert done.returncode == code and sentence in done.stderr and "Traceback" not in done.stderr


def test_bisect_maps_the_exit_codes(recording, tmp_path):
    path = recording("airline/0")[0]
    assert run("replay", str(path), "--bisect").returncode == 0
    path.write_bytes(path.read_bytes()[:-20])
    assert run("replay", str(path), "--bisect").returncode == 125


def test_another_limit_of_the_budget_is_another_end(runtime, fleet, recording):
    cassette = reader.read(recording("retail/2")[0])
    comparison = Comparison(other_reply(cassette, 3, {"reason": "budget", "limit": "simulation"}).requests)
    comparison.end(3, {"reason": "budget", "limit": "simulation"})
    assert comparison.divergences == []
    comparison.end(3, {"reason": "budget", "limit": "wall"})
    (found,) = comparison.divergences
    assert (found.pointer, found.recorded, found.actual) == ("/limit", "simulation", "wall")
