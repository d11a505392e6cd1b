"""Calls and results find their partners by place; made ids are the same in every run."""

from __future__ import annotations

import pytest

from replaykit.seats import SeatFailure
from replaykit.transports import history, pairing
from replaykit.transports.history import ANTHROPIC_ID

from .examples import call, result


def turn(*ids: str) -> list[dict]:
    calls = [call(i, arguments=f'{{"n":{n}}}') for n, i in enumerate(ids)]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *(result(i) for i in ids)]


PAIRED = {
    "none": [],
    "one": turn("a"),
    "two": turn("a", "b"),
    "same id twice in a turn": turn("a", "a"),
    "in two turns": turn("a") + turn("a"),
}


@pytest.mark.parametrize("messages", PAIRED.values(), ids=PAIRED.keys())
def test_results_in_call_order_are_accepted(messages):
    pairing.check([{"role": "user", "content": "x"}, *messages])


one, two = turn("a"), turn("a", "b")
UNPAIRED = {
    "missing at the end": (one[:1], "/messages/1 should be the result for the call 'a' but is not"),
    "one of two missing": (two[:2], "/messages/2"),
    "swapped": ([two[0], two[2], two[1]], "/messages/1 should be the result for the call 'a' but is one for 'b'"),
    "user in between": ([one[0], {"role": "user", "content": "x"}, one[1]], "/messages/1"),
    "orphan": ([result("a")], "/messages/0 is a result for the call 'a', which is not open"),
    "answered twice": ([*one, result("a")], "/messages/2"),
}


@pytest.mark.parametrize(("messages", "place"), UNPAIRED.values(), ids=UNPAIRED.keys())
def test_anything_else_is_refused_with_its_place(messages, place):
    with pytest.raises(SeatFailure) as caught:
        pairing.check(messages)
    assert caught.value.kind == "pairing" and place in str(caught.value)


RESTARTING = turn("get_order:0") + turn("get_order:0", "get_order:0") + turn("get_order_0_2", "")


def test_ids_become_unique_and_stay_with_their_calls():
    steps = history.steps(RESTARTING, ANTHROPIC_ID)
    ids = [c.wire_id for s in steps for c in s.calls]
    assert ids == ["get_order_0", "get_order_0_2", "get_order_0_3", "get_order_0_2_2", "call"]
    assert [s.answers.wire_id for s in steps if s.answers] == ids
    assert [s.answers.arguments for s in steps if s.answers] == ['{"n":0}', '{"n":0}', '{"n":1}', '{"n":0}', '{"n":1}']


def test_ids_of_a_longer_history_begin_with_those_of_the_shorter():
    short = [c.wire_id for s in history.steps(RESTARTING[:2], ANTHROPIC_ID) for c in s.calls]
    long = [c.wire_id for s in history.steps(RESTARTING, ANTHROPIC_ID) for c in s.calls]
    assert long[: len(short)] == short


def test_valid_ids_are_left_alone():
    (step, _) = history.steps(turn("toolu_01-x"), ANTHROPIC_ID)
    assert step.calls[0].wire_id == "toolu_01-x"


def test_arguments_that_are_no_object_cannot_go_on_an_object_wire():
    messages = [{"role": "assistant", "content": None, "tool_calls": [call("a", arguments="[1]")]}, result("a")]
    with pytest.raises(SeatFailure, match="/messages/0/tool_calls/0") as caught:
        history.steps(messages, ANTHROPIC_ID)[0].calls[0].arguments_object()
    assert caught.value.kind == "unsendable"


def test_a_late_system_message_is_refused_where_it_has_no_place():
    steps = history.steps([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], ANTHROPIC_ID)
    with pytest.raises(SeatFailure, match="/messages/1") as caught:
        history.split_system(steps)
    assert caught.value.kind == "capability"
