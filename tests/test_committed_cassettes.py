"""The committed cassettes replay equal, and they cover what they are there for."""

from __future__ import annotations

import pytest
from pathlib import Path

from replaykit import replay_many
from replaykit.store import reader

ROOT = Path(__file__).parent.parent
FILES = reader.find([ROOT / "cassettes"])


@pytest.fixture(scope="module")
def cassettes():
    return [reader.read(path) for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.partition(".")[0])
def test_it_replays_equal(runtime, fleet, path):
    outcome = replay_many.one(path, fleet)
    divergences = outcome.report.divergences if outcome.report else outcome.error
    assert outcome.report and [d for d in outcome.report.divergences if not d.environment] == [], divergences


COVERED = {
    "an airline episode": lambda c: c.panel.startswith("airline/"),
    "a retail episode": lambda c: c.panel.startswith("retail/"),
    "the one-exchange controls": lambda c: c.header["controls"] == "one-exchange",
    "the reference controls": lambda c: c.header["controls"] == "reference",
    "a judge who was asked": lambda c: any(r.seat == "judge" for r in c.requests),
    "no judge": lambda c: not any(r.seat == "judge" for r in c.requests),
    "the all-true default": lambda c: any(d.name == "judge.all_true_default" for d in c.result.diagnostics),
    "a judge who cannot be parsed": lambda c: c.result.reward is None,
    "a changed database": lambda c: c.result.initial_db_hash != c.result.final_db_hash,
    "a transfer": lambda c: any(
        call["name"] == "transfer_to_human_agents" for m in c.result.trajectory for call in m.get("tool_calls") or ()
    ),
    "an end in tool errors": lambda c: c.result.termination == "too_many_errors",
    "an unusable learner": lambda c: c.result.termination == "agent_error",
    "a reply cut at the limit": lambda c: c.result.termination == "context_window_exceeded",
    "an unusable customer": lambda c: c.result.termination == "user_error",
}


@pytest.mark.parametrize("covers", COVERED.values(), ids=COVERED.keys())
def test_the_set_covers(cassettes, covers):
    assert any(covers(c) for c in cassettes)


def test_the_set_is_small_and_holds_no_path_or_host(cassettes):
    data = b"".join(p.read_bytes() for p in FILES)
    assert len(FILES) >= 10 and len(data) < 2_000_000
    assert str(ROOT).encode() not in data and str(Path.home()).encode() + b"/" not in data
