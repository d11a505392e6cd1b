"""The engine in use does what upstream tau2 1.0.1 did, in every case of the facts file."""

from __future__ import annotations

import copy
import gzip
from dataclasses import replace

import pytest

from replaykit import parity
from replaykit.divergence import without_suggestion
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


CONTENT = {
    "empty": b"",
    "cut": b"{",
    "a list": b"[]",
    "no list of cases": b'{"cases": 1}',
    "no case": b'{"cases": []}',
    "domains that are a list": b'{"cases": [{}], "domains": [1]}',
    "a domain that is a text": b'{"cases": [{}], "domains": {"airline": "x"}}',
    "a seed that is a text": b'{"cases": [{}], "settings": {"case_seed": "300"}}',
    "bad gzip": b"\x1f\x8bnot gzip",
    "gzip that is cut": gzip.compress(b'{"cases": [{}]}')[:-9],
}


@pytest.mark.parametrize("content", CONTENT.values(), ids=CONTENT.keys())
def test_what_is_no_facts_file_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "facts.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="facts|no case"):
        parity.read(path)


def test_a_facts_file_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(parity, "MAX_FACTS_BYTES", 100)
    for content in (b" " * 101, gzip.compress(b" " * 101)):
        (tmp_path / "facts").write_bytes(content)
        with pytest.raises(UsageError, match="larger than 100"):
            parity.read(tmp_path / "facts")


CASES = {
    "no object": 5,
    "no script": {"panel": "airline/0", "expect": {"requests": []}},
    "a script without the judge": {"panel": "airline/0", "script": {"learner": [], "customer": []}, "expect": {"requests": []}},
    "no requests": {"panel": "airline/0", "script": {"learner": [], "customer": [], "judge": []}, "expect": {}},
    "a reply that is a number": {"panel": "airline/0", "script": {"learner": [5], "customer": [], "judge": []}, "expect": {"requests": []}},
    "a panel that is not there": {"panel": "airline/99", "script": {"learner": [], "customer": [], "judge": []}, "expect": {"requests": []}},
    "a script that is empty": {"panel": "airline/0", "script": {"learner": [], "customer": [], "judge": []}, "expect": {"requests": []}},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_case_of_another_form_is_refused(runtime, case):
    with pytest.raises(UsageError):
        parity.run({"cases": [case]}, runtime)


def test_the_limits_of_a_facts_file_hold(runtime, facts):
    case = next(c for c in facts["cases"] if c["panel"] == "airline/0" and c["kind"] == "reference")
    changed = {**facts, "cases": [case], "settings": {"case_seed": 300, "max_steps": 2, "max_errors": 10}}
    found = {d["what"]: d["actual"] for d in parity.run(changed, runtime)[0].differences}
    assert found["termination_reason"] == "max_steps" and found["steps"] == 2


def test_upstream_has_no_caps_so_a_text_cut_at_one_is_a_turn(runtime, facts):
    case = copy.deepcopy(next(c for c in facts["cases"] if c["panel"] == "airline/0" and c["kind"] == "reference"))
    for reply in case["script"]["learner"]:
        reply["finish_reason"] = "length"
    assert parity.run({**facts, "cases": [case]}, runtime)[0].differences == []


def test_expectations_that_are_not_known_are_named(facts):
    case = {**facts["cases"][0], "expect": {"requests": [], "mood": "good"}}
    assert parity.not_compared({"cases": [case]}) == ["mood"] and parity.not_compared(facts) == []


SUGGESTED = "Error: f() got an unexpected keyword argument 'itemid'. Did you mean 'item_id'?"


def misspelling(facts) -> dict:
    """A case in which the learner misspells an argument."""
    case = copy.deepcopy(next(c for c in facts["cases"] if c["panel"] == "airline/0" and c["kind"] == "reference"))
    call = {"id": "c", "name": "get_user_details", "arguments": '{"userid": "x"}'}
    case["script"]["learner"].insert(0, {"content": None, "tool_calls": [call]})
    return case


def test_a_suggestion_of_python_3_13_alone_is_the_environment_s(runtime, facts, monkeypatch):
    case = misspelling(facts)
    result, native = parity._played(runtime, ("airline", "0"), {s: parity.Script(r) for s, r in case["script"].items()}, 626729, (200, 10))
    older = parity._without_suggestions(result, native)
    case["expect"] = {"requests": [parity._request_fact(r) for r in older[1]], "final_db_hash": result.final_db_hash}
    newer = result, [replace(r, messages=[suggesting(m) for m in r.messages]) for r in older[1]]
    monkeypatch.setattr(parity, "_played", lambda *_: newer)
    (found,) = parity.run({"cases": [case]}, runtime)
    assert found.differences and "Python 3.13" in found.environment
    case["expect"]["final_db_hash"] = "0" * 64
    assert parity.run({"cases": [case]}, runtime)[0].environment is None


def suggesting(message: dict) -> dict:
    marked = message["role"] == "tool" and "unexpected keyword" in message["content"]
    return {**message, "content": message["content"] + ". Did you mean 'user_id'?"} if marked else message


def test_only_the_suggestion_is_taken_out_of_a_text():
    assert without_suggestion(SUGGESTED) == "Error: f() got an unexpected keyword argument 'itemid'"
    assert without_suggestion("Did you mean 'x'?") == "Did you mean 'x'?"
