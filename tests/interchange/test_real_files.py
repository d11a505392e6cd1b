"""Results files of other people's runs, where they lie beside the repository: they end as tau2 1.0.1 says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from replaykit.cli.app import group
from replaykit.replay import replay
from replaykit.store import reader

FOLDER = Path(__file__).parents[3] / "shared" / "real"
FACTS = json.loads((FOLDER / "facts.json").read_text())["files"] if (FOLDER / "facts.json").is_file() else {}

pytestmark = pytest.mark.skipif(not FACTS, reason="no real results files beside the repository")


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_episode_ends_as_tau2_says(name, imported, runtime, fleet):
    for one, fact in zip(imported(FOLDER / name), FACTS[name]["episodes"], strict=True):
        data = one.to_dict()
        assert (one.panel.partition("/")[2], data["final_db_hash"]) == (fact["task"], fact["final_db_hash"])
        assert data["db_match"] == fact["db_match_1_0_1"]
        assert (data["termination"], data["reward"]) == (fact["termination"], fact["recorded_reward"])
        assert len(one.result.trajectory) == fact["messages"]
        assert {f["name"] for f in data["findings"]} <= {"import.judge_reply_rebuilt"}
        assert replay(reader.read(one.path), runtime, fleet, "x").status == "equal"


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_episode_can_be_shown(name, imported):
    for one in imported(FOLDER / name):
        shown = CliRunner().invoke(group, ["show", str(one.path)], standalone_mode=False)
        assert shown.exception is None
        assert one.panel in shown.output
        assert f"ended           {one.result.termination}" in shown.output
