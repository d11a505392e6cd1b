"""The seats sit where tau2 asks a model; a model call from anywhere else is refused."""

from __future__ import annotations

import pytest

from replaykit.budget import Budget, Ledger
from replaykit.engine import pins
from replaykit.engine.protocol import SeatModels
from replaykit.errors import Incomplete, ModelCallRefused
from replaykit.gateway import Gateway
from replaykit.parity import Script, _Requests
from replaykit.seats import SeatReply

MODELS = SeatModels(*[(pins.DEFAULT_MODEL, {"temperature": 0.0}) for _ in range(3)])
STOP = [{"content": "Hello"}, {"content": "###STOP###"}]


def play(runtime, panel, learner, judge='{"results": []}', customer=STOP):
    """One scripted episode: (result, requests)."""
    domain, _, scenario = panel.partition("/")
    requests = _Requests()
    sources = {"learner": Script(learner), "customer": Script(customer), "judge": Script([{"content": judge}])}
    gateway = Gateway(sources, requests, Ledger(Budget(), lambda: 0.0))
    return runtime.run(domain, scenario, 626729, MODELS, gateway.ask), requests.native


def names(result) -> list[str]:
    return [d.name for d in result.diagnostics if d.name.startswith("judge.")]


def test_a_model_call_from_elsewhere_in_tau2_is_refused(runtime):
    module = runtime._native.model_calls
    with pytest.raises(ModelCallRefused, match="only the three seats"):
        module.generate("some-model", [module.UserMessage(role="user", content="hi")])


def test_a_refused_model_call_that_tau2_swallows_ends_the_episode(runtime):
    module = runtime._native.model_calls

    def ask(request):
        try:
            module.generate("some-model", [module.UserMessage(role="user", content="hi")])
        except Exception:  # as tau2's repetition checker does
            return SeatReply("###STOP###")

    with pytest.raises(ModelCallRefused, match="'some-model' from outside the three seats"):
        runtime.run("airline", "0", 1, MODELS, ask)


def test_between_episodes_tau2_asks_its_own_library(runtime):
    before = runtime._native.model_calls.completion
    play(runtime, "airline/0", [{"content": "Done."}])
    assert runtime._native.model_calls.completion is before


def test_the_customer_is_asked_first_and_the_judge_once(runtime):
    _, asked = play(runtime, "retail/2", [{"content": "Done."}])
    assert [r.seat for r in asked] == ["customer", "learner", "customer", "judge"]
    assert "seed" not in asked[3].arguments and asked[0].arguments["seed"] == 626729


def test_the_native_request_carries_both_tool_names(runtime):
    calls = [{"tool_calls": [{"id": "c", "name": "list_all_airports", "arguments": "{}"}]}, {"content": "Done."}]
    _, asked = play(runtime, "airline/0", calls)
    call = asked[2].messages[-2]["tool_calls"][0]
    assert (call["name"], call["function"]["name"]) == ("list_all_airports", "list_all_airports")


JUDGED = {  # reply -> reward, diagnostics; retail/2 has its database untouched here, so only the judge's part is looked at
    "an object without results": ("{}", 1.0, ["judge.all_true_default", "judge.raw_reply"]),
    "an empty list": ('{"results": []}', 1.0, ["judge.all_true_default", "judge.raw_reply"]),
    "no JSON": ("Looks fine to me.", None, ["judge.unparseable", "judge.raw_reply"]),
    "a fenced reply": ('```json\n{"results": []}\n```', None, ["judge.unparseable", "judge.raw_reply"]),
    "null results": ('{"results": null}', None, ["judge.unparseable", "judge.raw_reply"]),
    "null content": (None, None, ["judge.unparseable", "judge.raw_reply"]),
    "a list": ("[]", None, ["judge.unparseable", "judge.raw_reply"]),
}


@pytest.mark.parametrize(("reply", "part", "diagnostics"), JUDGED.values(), ids=JUDGED.keys())
def test_a_judge_reply_is_read_as_tau2_reads_it(runtime, reply, part, diagnostics):
    result, _ = play(runtime, "retail/2", [{"content": "Done."}], judge=reply)
    assert result.termination == "user_stop"
    assert result.reward_info["breakdown"]["NL_ASSERTION"] == part
    assert names(result) == diagnostics
    assert (result.reward is None) == (part is None)


def test_an_error_of_ours_while_the_judge_is_asked_is_not_taken_for_its_reply(runtime):
    def ask(request):
        if request.seat == "judge":
            raise Incomplete("the disk is full")
        return SeatReply("###STOP###" if request.seat == "customer" and len(request.messages) > 3 else "Hello")

    with pytest.raises(Incomplete, match="disk is full"):
        runtime.run("retail", "2", 1, MODELS, ask)


def test_fewer_results_than_assertions_are_named(runtime):
    panel = next(f"retail/{s.id}" for s in runtime.scenarios("retail").values() if s.judge_required and len(s.assertions) > 1)
    one = '{"results": [{"expectedOutcome": "x", "reasoning": "y", "metExpectation": true}]}'
    result, _ = play(runtime, panel, [{"content": "Done."}], judge=one)
    assert names(result) == ["judge.partial_results", "judge.raw_reply"]


def test_reference_actions_that_raise_are_named(runtime):
    result, _ = play(runtime, "retail/2", [{"content": "Done."}])
    raised = [d.detail for d in result.diagnostics if d.name == "reference.action_raised"]
    assert raised and all(r["error"] for r in raised)


def test_the_internal_stop_message_never_appears(runtime):
    result, _ = play(runtime, "airline/0", [{"content": "  "}])
    assert result.termination == "agent_error" and result.reward == 0.0
    said = [m["content"] or "" for m in [*result.trajectory, *result.learner_state, *result.customer_state] if m["role"] != "system"]
    assert not any("###STOP###" in text for text in said)
