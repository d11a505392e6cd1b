"""The engine in use does what upstream tau2 1.0.1 did, in every case of the facts file."""

from __future__ import annotations

import copy

import pytest

from replaykit import parity
from replaykit.errors import UsageError


def test_every_case_of_the_facts_file_agrees(runtime, facts):
    results = parity.run(facts, runtime)
    assert len(results) == len(facts["cases"]) == 556
    assert [r for r in results if r.differences and not r.environment] == []


def test_databases_policies_tools_and_scenarios_agree(runtime, facts):
    assert parity.domain_differences(facts, runtime) == []


CHANGES = {
    "a request's digest": lambda e: e["requests"][1].update(sha256="0" * 64),
    "a missing request": lambda e: e["requests"].append(e["requests"][0]),
    "the final database hash": lambda e: e.update(final_db_hash="0" * 64),
    "the reward": lambda e: e.update(reward=0.5),
    "the breakdown": lambda e: e["reward_breakdown"].update(DB=0.25),
    "the steps": lambda e: e.update(steps=99),
    "the termination": lambda e: e.update(termination_reason="agent_stop"),
    "the trajectory": lambda e: e["trajectory"].pop(),
    "the seed": lambda e: e["requests"][0]["kwargs"].update(seed=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_fact_is_a_difference(runtime, facts, change):
    case = copy.deepcopy(next(c for c in facts["cases"] if c["panel"] == "airline/0" and c["kind"] == "reference"))
    change(case["expect"])
    assert parity.run({**facts, "cases": [case]}, runtime)[0].differences


def test_a_usable_turn_where_upstream_raised_is_a_difference(runtime, facts):
    case = copy.deepcopy(next(c for c in facts["cases"] if c["expect"].get("raised") == "ValueError"))
    case["script"] = next(c for c in facts["cases"] if c["panel"] == case["panel"] and c["kind"] == "one_exchange")["script"]
    found = parity.run({**facts, "cases": [case]}, runtime)[0].differences
    assert "unusable turn" in [d["what"] for d in found]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cases": 1}', b"\x1f\x8bnot gzip"], ids=["empty", "cut", "a list", "no list of cases", "bad gzip"])
def test_what_is_no_facts_file_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "facts.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="facts"):
        parity.read(path)
