"""Runs that tau2's own orchestrator played and tau2's own code wrote down: importing them gives the same end."""

from __future__ import annotations

import json

import pytest

from replaykit.engine import results_form
from replaykit.engine import run as engine_run
from replaykit.replay import replay
from replaykit.store import reader

PANELS = {
    "airline": ("0", "3", "7", "8", "14", "20", "23", "33", "41", "44"),
    "retail": ("0", "2", "3", "16", "19", "21", "37", "54", "103", "113"),
}


@pytest.fixture
def written(monkeypatch):
    """The simulations that tau2 writes while panels are recorded, as its own JSON."""
    rows: list[dict] = []
    plain = engine_run.ordered_loop

    def keeping(orchestrator):
        class Kept(plain(orchestrator)):
            def run(self):
                simulation = super().run()
                rows.append(json.loads(simulation.model_dump_json()))
                return simulation

        return Kept

    monkeypatch.setattr(engine_run, "ordered_loop", keeping)
    return rows


def as_tau2_writes(info: dict, part: dict) -> dict:
    """Reward information in tau2's members."""
    judged = info["assertions"]
    return {
        "reward": part["reward"],
        "db_check": {"db_match": info["db"]["match"], "db_reward": info["db"]["reward"]},
        "nl_assertions": judged
        and [{"nl_assertion": a["assertion"], "met": a["met"], "justification": a["justification"]} for a in judged],
        "reward_breakdown": info["breakdown"],
        "info": {"nl": None if judged else {"note": "No nl_assertions to evaluate"}},
    }


@pytest.mark.parametrize("domain", sorted(PANELS))
def test_hash_and_reward_of_twenty_panels_are_equal(domain, written, recording, imported, runtime, fleet):
    cassettes = [reader.read(path) for path in recording(*(f"{domain}/{n}" for n in PANELS[domain]))]
    results = [c.result for c in cassettes]
    for simulation, result in zip(written, results, strict=True):
        simulation["reward_info"] = as_tau2_writes(result.reward_info, {"reward": result.reward})
    participant = {"implementation": "llm_agent", "llm": "m", "llm_args": {"temperature": 0.0}}
    place = {"domain_name": domain, "policy": runtime.policy(domain)}
    info = {
        "max_steps": 200,
        "max_errors": 10,
        "seed": 300,
        "agent_info": participant,
        "user_info": participant,
        "environment_info": place,
    }
    tasks = [results_form.task(runtime, domain, n) for n in PANELS[domain]]
    done = imported({"info": info, "tasks": tasks, "simulations": written})
    assert [(o.result.final_db_hash, o.result.reward) for o in done] == [(r.final_db_hash, r.reward) for r in results]
    assert [o.result.trajectory for o in done] == [r.trajectory for r in results]
    assert {d.name for o in done for d in o.findings} <= {"import.judge_reply_rebuilt"}
    assert {replay(reader.read(o.path), runtime, fleet, "x").status for o in done} == {"equal"}
