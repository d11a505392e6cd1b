"""The public list: every name loads, nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import replaykit

NAMES = [
    "AgentLoop", "AsyncAgentLoop", "Done", "Learner", "Arm", "Cassette", "Diagnostic", "Difference", "Divergence", "EngineNotReady", "EpisodeResult", "EvidenceError", "Fleet", "LostTurn",
    "OfflineViolation", "Panel", "ReplayReport", "ReplaykitError", "ReplyCall", "ReplySource", "SeatFailure", "SeatReply", "SeatRequest",
    "TransportRequest", "UsageError", "WireExchange", "load_engine", "read_cassette", "read_fleet", "replay_cassette",
]  # fmt: skip


def test_the_public_list_is_this_one():
    assert sorted(replaykit.PUBLIC) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_loads(name):
    assert getattr(replaykit, name) is not None


def test_importing_replaykit_imports_nothing_heavy():
    code = "import sys, replaykit; print([m for m in ('tau2', 'httpx', 'vcr', 'pydantic', 'click', 'deepdiff') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no public name"):
        _ = replaykit.nothing
