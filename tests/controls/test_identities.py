"""The controls: what they say, when, and under which label."""

from __future__ import annotations

import json

import pytest

from replaykit.controls import Action, Call, Identity, Reply, Scenario, one_exchange, reference, scripted
from replaykit.controls.identities import GREETING

SYSTEM = {"role": "system", "content": "policy"}
GREETED = {"role": "assistant", "content": GREETING}
OPENED = {"role": "user", "content": "Hello, I need help with a request."}
SCENARIO = Scenario(
    (Action("find_user", {"zip": "19122", "name": "Zoë"}), Action("get_order", {"n": 1.0})),
    ("42", "gate 7"),
    ("Agent asks first.",),
)


def test_the_customer_opens_then_stops_and_keeps_stopping():
    customer = one_exchange()["customer"]
    history = [SYSTEM, {"role": "user", "content": GREETING}]
    said = []
    for _ in range(3):
        said.append(customer.reply(history).content)
        history += [{"role": "assistant", "content": said[-1]}, {"role": "user", "content": "I can help."}]
    assert said == ["Hello, I need help with a request.", "Thank you. ###STOP###", "Thank you. ###STOP###"]


def test_the_judge_of_the_one_exchange_set_returns_no_results():
    assert json.loads(one_exchange()["judge"].reply([SYSTEM, OPENED]).content) == {"results": []}


def test_the_reference_learner_plays_one_call_a_turn_and_then_reports():
    learner = reference(SCENARIO)["learner"]
    history, replies = [SYSTEM, GREETED, OPENED], []
    for i in range(4):
        replies.append(learner.reply(history))
        result = {"role": "tool", "content": "{}", "tool_call_id": f"call_{i}"}
        history += [{"role": "assistant", "content": None}, result]
    assert replies[0].tool_calls == (Call("call_0", "find_user", '{"zip": "19122", "name": "Zo\\u00eb"}'),)
    assert replies[1].tool_calls == (Call("call_1", "get_order", '{"n": 1.0}'),)
    assert replies[2].content == replies[3].content == "Here is the outcome: 42, gate 7"


def test_the_reference_learner_without_information_to_report_says_done():
    assert reference(Scenario())["learner"].reply([SYSTEM]).content == "Here is the outcome: done"


def test_the_reference_judge_finds_every_assertion_met():
    results = json.loads(reference(SCENARIO)["judge"].reply([]).content)["results"]
    assert results == [{"expectedOutcome": "Agent asks first.", "reasoning": "scripted", "metExpectation": True}]


@pytest.mark.parametrize(
    ("name", "history", "expected"),
    [
        ("greeting first", [SYSTEM, GREETED, OPENED], "one"),
        ("greeting behind a filler turn", [SYSTEM, {"role": "user", "content": "."}, GREETED, OPENED], "one"),
        ("no greeting", [SYSTEM, OPENED], "one"),
        ("own reply after greeting", [SYSTEM, GREETED, OPENED, {"role": "assistant", "content": "x"}, OPENED], "two"),
        ("own reply without greeting", [SYSTEM, OPENED, {"role": "assistant", "content": "x"}, OPENED], "two"),
    ],
)
def test_the_greeting_is_no_reply_of_the_learner(name, history, expected):
    learner = scripted("learner", [{"content": "one"}, {"content": "two"}])
    assert learner.reply(history).content == expected


def test_a_script_reads_and_writes_plain_data():
    data = {"content": None, "tool_calls": [{"id": "a", "name": "t", "arguments": "{"}], "finish_reason": "length"}
    assert scripted("learner", [data]).replies[0].to_dict() == data


@pytest.mark.parametrize("member", ["tool_call", "text", "finish"])
def test_a_script_with_an_unknown_member_is_refused(member):
    with pytest.raises(TypeError, match=member):
        scripted("learner", [{"content": "x", member: 1}])


def test_a_control_without_replies_is_refused():
    with pytest.raises(ValueError, match="no replies"):
        scripted("judge", [])


def test_a_control_at_an_unknown_seat_is_refused():
    with pytest.raises(ValueError, match="no seat 'referee'"):
        Identity("x", "x", "referee", (Reply("x"),))


@pytest.mark.parametrize("seat", ["learner", "customer", "judge"])
def test_every_control_says_that_it_is_one(seat):
    told = one_exchange()[seat].to_dict()
    assert told["control"] is True
    assert told["label"].startswith(f"control:one-exchange/{seat}/")


def test_the_digest_follows_the_replies():
    assert scripted("judge", [{"content": "a"}]).digest == scripted("judge", [{"content": "a"}]).digest
    assert scripted("judge", [{"content": "a"}]).digest != scripted("judge", [{"content": "b"}]).digest
