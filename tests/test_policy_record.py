"""Policy states of real episodes: one pass, the same in every process, short enough counts for a footer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaykit import policy
from replaykit.agentloop import AgentLoop
from replaykit.seats import ReplyCall, SeatReply
from replaykit.store import reader, scan

ROOT = Path(__file__).parent.parent
FOLDER = "cassettes/airline"
FAULTY = [f"{FOLDER}/{name}-s300.cassette.jsonl" for name in ("4-tool-errors", "19-broken-arguments")]
PROBE = """
import sys
from pathlib import Path
from replaykit import canonical, engine, policy_record
from replaykit.store import fleet_file, reader
fleet = fleet_file.read()
for path in sys.argv[1:]:
    cassette = reader.read(path)
    states = policy_record.final(engine.load(), fleet.panel(cassette.panel), cassette.result)
    print(canonical.ordered(canonical.encode(states)).hex())
"""


def in_another_process(paths, seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    command = [sys.executable, "-c", PROBE, *paths]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_what_tools_said_of_bad_arguments_is_the_same_under_every_hash_seed(runtime, fleet, tmp_path):
    path = tmp_path / "c.cassette.jsonl"
    calls = [("get_user_details", '{"user": "x", "name": 1}'), ("calculate", '{"expression": 5}')]
    replies = iter([SeatReply(tool_calls=(ReplyCall("c", *call),)) for call in calls])
    with AgentLoop("airline/0", "one-exchange", cassette=path, fleet=fleet) as loop:
        loop.run(lambda request: next(replies, SeatReply("Good day.")))
    found = {in_another_process([str(path)], seed) for seed in ("0", "4711")}
    final = json.loads(bytes.fromhex(found.pop()))["final"]
    assert not found and all(error["detail"] for error in final["format_errors"])
    assert [error["kind"] for error in final["format_errors"]] == ["invalid_arguments"] * 2


def test_the_recorded_states_are_those_of_another_process(recording, runtime):
    paths = recording("airline/7", "retail/37")
    recorded = [reader.read(path).footer["policy_states"] for path in paths]
    found = [json.loads(bytes.fromhex(line)) for line in in_another_process(map(str, paths), "7").split()]
    assert found == recorded


def test_the_footer_counts_what_the_states_say(runtime):
    for path in map(ROOT.joinpath, FAULTY):
        states, fields = reader.read(path).footer["policy_states"], scan.scan(path).footer["fields"]
        assert fields["policy_counts"] == policy.counts(states["final"])


def test_counts_hold_what_occurred_and_nothing_else():
    state = {
        "transfer": {"attempted": True, "succeeded": False},
        "violations": [{"rule": "b"}, {"rule": "a"}, {"rule": "b"}],
        "format_errors": [],
    }
    counts = {"transferred": True, "violations": {"a": 1, "b": 2}, "format_errors": {}}
    assert policy.counts(state) == counts and list(counts["violations"]) == ["a", "b"]


@pytest.mark.slow
def test_all_reference_episodes_are_equal_recorded_replayed_and_replayed_elsewhere(runtime):
    command, environment = [sys.executable, "benchmarks/policy.py", "--json"], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False)
    found = json.loads(done.stdout)
    assert (found["episodes"], found["parted_here"], found["parted_elsewhere"]) == (164, [], [])
