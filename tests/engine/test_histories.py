"""Histories are flipped and converted once a message, with tau2's own results."""

from __future__ import annotations

import pytest

from replaykit.engine import load
from replaykit.engine.histories import Growing, flipping_once
from replaykit.engine.seam import SeatMessages


@pytest.fixture(scope="module")
def tau2():
    return load()._native


def conversation(tau2, count):
    kinds = (tau2.messages.AssistantMessage, "assistant"), (tau2.messages.UserMessage, "user")
    return [kinds[i % 2][0](role=kinds[i % 2][1], content=f"text {i}") for i in range(count)]


def plain(messages):
    return [m.model_dump(exclude={"timestamp"}) for m in messages]


def test_a_growing_list_converts_each_item_once():
    seen = []
    growing = Growing(lambda items: [seen.append(i) or i * 2 for i in items])
    assert [growing([1]), growing([1, 2]), growing([1, 2, 3])] == [[2], [2, 4], [2, 4, 6]]
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    "replaced", [["x", "b", "c"], ["a"], [], ["a", "x"]], ids=["other start", "shorter", "empty", "other end"]
)
def test_a_list_that_did_not_grow_is_converted_from_the_start(replaced):
    growing = Growing(lambda items: [i.upper() for i in items])
    growing(["a", "b"])
    assert growing(replaced) == [i.upper() for i in replaced]


def test_a_changed_answer_does_not_change_what_is_remembered():
    growing = Growing(list)
    growing(["a"]).clear()
    assert growing(["a", "b"]) == ["a", "b"]


def test_the_customers_history_is_flipped_as_tau2_flips_it(tau2):
    native, messages = tau2.user.UserState, conversation(tau2, 9)
    ours = flipping_once(native)(system_messages=[], messages=[])
    for message in messages:
        ours.messages.append(message)
        theirs = native(system_messages=[], messages=list(ours.messages))
        assert plain(ours.flip_roles()) == plain(theirs.flip_roles())


def test_a_message_that_cannot_be_flipped_is_refused_as_tau2_refuses_it(tau2):
    call = tau2.messages.AssistantMessage(
        role="assistant", tool_calls=[tau2.messages.ToolCall(id="1", name="n", arguments={})]
    )
    said = []
    for state_class in (tau2.user.UserState, flipping_once(tau2.user.UserState)):
        with pytest.raises(ValueError, match="Tool calls are not supported") as caught:
            state_class(system_messages=[], messages=[call]).flip_roles()
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_long_history_converts_to_what_a_fresh_conversion_gives(tau2):
    messages, remembered = conversation(tau2, 40), SeatMessages(tau2.messages)
    for count in range(1, 41):
        once = remembered.convert("learner", messages[:count])
        assert once == SeatMessages(tau2.messages).convert("learner", messages[:count])


def test_two_seats_keep_their_own_histories(tau2):
    first, second, remembered = conversation(tau2, 4), conversation(tau2, 4), SeatMessages(tau2.messages)
    assert remembered.convert("learner", first) == remembered.convert("customer", second)
    assert remembered.convert("learner", first)[0] is not remembered.convert("customer", second)[0]
