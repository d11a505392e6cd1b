"""Exporting to tau2's results form: tau2 reads it, and importing it gives back what both hold."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from replaykit import export_results
from replaykit.cli.app import group
from replaykit.errors import UsageError
from replaykit.fleet_build import trial_seed
from replaykit.store import reader

LOAD = """
import json, sys
from loguru import logger
logger.remove()
from tau2.data_model.simulation import Results
results = Results.load(sys.argv[1])
rows = [(s.task_id, s.trial, s.reward_info.reward, s.termination_reason.value) for s in results.simulations]
print(json.dumps([rows, len(results.tasks), results.info.num_trials, list(results.to_df().shape)]))
"""


def held(result) -> dict:
    """What a cassette and a results file both hold of a result."""
    data = result.to_dict()
    return {key: data[key] for key in data if key not in ("diagnostics", "lost_turn")}


@pytest.mark.parametrize(
    ("panels", "controls"),
    [
        (("airline/0", "airline/7"), "reference"),
        (("retail/0", "retail/2", "retail/19"), "reference"),
        (("retail/2",), "one-exchange"),
    ],
)
def test_what_both_hold_comes_back(panels, controls, recording, imported, runtime, tmp_path):
    before = [reader.read(path) for path in recording(*panels, controls=controls)]
    export_results.export([tmp_path / "rec"], tmp_path / "r.json")
    done = {one.panel: reader.read(one.path) for one in imported(tmp_path / "r.json")}
    after = [done[c.panel] for c in before]
    assert [held(c.result) for c in after] == [held(c.result) for c in before]
    for old, new in zip(before, after, strict=True):
        pairs = [p for p in zip(old.requests, new.requests, strict=True) if p[0].seat != "judge"]
        assert [a.digest for a, _ in pairs] == [b.digest for _, b in pairs]
        assert [a.outcome for a, _ in pairs] == [b.outcome for _, b in pairs]


def test_tau2_itself_reads_the_file(recording, runtime, tmp_path):
    recording("retail/0", "retail/2")
    export_results.export([tmp_path / "rec"], tmp_path / "r.json")
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "r.json")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows, tasks, trials, shape = json.loads(done.stdout.splitlines()[-1])
    assert rows == [["0", 0, 1.0, "user_stop"], ["2", 0, 1.0, "user_stop"]]
    assert (tasks, trials, shape[0]) == (2, 1, 2)


def test_tasks_are_the_pins_own(recording, runtime, tmp_path):
    recording("airline/7")
    export_results.export([tmp_path / "rec"], tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["tasks"] == [
        t for t in runtime.domain("airline").files.tasks if t["id"] == "7"
    ]


def test_trials_are_numbered_by_their_case_seeds(runtime, fleet, tmp_path):
    from replaykit import record_many

    record_many.run(
        record_many.Plan(fleet, ("airline/0",), (301, 300), tmp_path / "rec", False, 1),
        "one-exchange",
        None,
        record_many.Watch(),
    )
    export_results.export([tmp_path / "rec"], tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert [(s["trial"], s["seed"]) for s in document["simulations"]] == [(0, 626729), (1, trial_seed(301))]
    assert (document["info"]["num_trials"], document["info"]["seed"]) == (2, None)


def test_an_unknown_reward_is_no_zero(document, imported, tmp_path):
    source = document("retail/2")
    source["simulations"][0]["reward_info"]["nl_assertions"] = None
    (one,) = imported(source)
    export_results.export([one.path], tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["simulations"][0]["reward_info"] is None


def test_a_derived_episode_says_so_in_the_file(document, imported, tmp_path):
    (one,) = imported(document("airline/0"))
    export_results.export([one.path], tmp_path / "r.json")
    about = json.loads((tmp_path / "r.json").read_text())["simulations"][0]["info"]["replaykit"]
    assert about["derived"]["verdicts"].startswith("evaluated by this engine")
    assert about["final_db_hash"] == one.result.final_db_hash


@pytest.mark.parametrize(
    ("panels", "named"), [(("airline/0", "retail/0"), "domain"), (("airline/0",), "arm")], ids=["domains", "arms"]
)
def test_what_does_not_belong_into_one_file_is_refused(panels, named, recording, tmp_path):
    recording(*panels)
    if named == "arm":
        recording(*panels, controls="one-exchange")
    with pytest.raises(UsageError, match=f"differ in their {named}"):
        export_results.export([tmp_path / "rec"], tmp_path / "r.json")
    assert not (tmp_path / "r.json").exists()


def test_a_file_that_is_there_is_not_overwritten(recording, tmp_path):
    (tmp_path / "r.json").write_text("mine")
    with pytest.raises(UsageError, match="never overwritten"):
        export_results.export(recording("airline/0"), tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == "mine"


def test_an_interrupted_recording_is_left_out_and_named(recording, tmp_path):
    _, cut = recording("airline/0", "airline/1")
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-3]))
    done = CliRunner().invoke(
        group,
        ["export", "tau2-results", str(tmp_path / "rec"), "--out", str(tmp_path / "r.json")],
        standalone_mode=False,
    )
    assert done.return_value == 3
    assert f"left out: {cut} is interrupted" in done.output
    assert "1 simulations" in done.output
