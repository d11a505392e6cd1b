"""The six kinds of format error over whole episodes."""

import pytest

from replaykit.episode import LostTurn
from replaykit.policy import KINDS

MISSING = "error: AirlineTools.get_user_details() missing 1 required positional argument: 'user_id'"

EPISODES = {
    "a text without markup is fine": (["user: hi", "agent: What is your user id?"], []),
    "markup left in a message is an unparsed call": (
        ["user: hi", 'agent: <tool_call>{"name": "get_user_details"}</tool_call>'],
        ["unparsed_tool_call"],
    ),
    "markup in two messages is two errors": (
        ["user: hi", "agent: <|python_tag|>x", "user: what?", "agent: [TOOL_CALLS] x"],
        ["unparsed_tool_call", "unparsed_tool_call"],
    ),
    "markup beside a call counts": (
        ["user: hi", 'call get_user_details {"user_id": "m"} | <tool_call>', "ok: {}"],
        ["unparsed_tool_call"],
    ),
    "the user's markup is not the learner's": (["user: <tool_call>", "agent: Hello"], []),
    "markup in a tool's result is not the learner's": (
        ["user: hi", 'call get_user_details {"user_id": "m"}', "ok: <tool_call>"],
        [],
    ),
    "a call to a tool the domain lacks": (
        ["user: hi", 'call lookup {"a": 1}', "error: Tool 'lookup' not found."],
        ["unknown_tool"],
    ),
    "a retail tool in the airline domain": (
        ["user: hi", 'call get_order_details {"order_id": "1"}', "error: Tool 'get_order_details' not found."],
        ["unknown_tool"],
    ),
    "an unknown tool without a result": (["user: hi", "call lookup {}"], ["unknown_tool"]),
    "a tool that the environment lacks although it was offered": (
        ["user: hi", 'call get_user_details {"user_id": "m"}', "error: Tool 'get_user_details' not found."],
        ["unknown_tool"],
    ),
    "an argument is missing": (["user: hi", "call get_user_details {}", MISSING], ["invalid_arguments"]),
    "an argument is unexpected": (
        [
            "user: hi",
            'call get_user_details {"user_id": "m", "x": 1}',
            "error: AirlineTools.get_user_details() got an unexpected keyword argument 'x'",
        ],
        ["invalid_arguments"],
    ),
    "an argument is of the wrong type": (
        ["user: hi", 'call get_user_details {"user_id": []}', "error: unhashable type: 'list'"],
        ["invalid_arguments"],
    ),
    "the second call of a turn is rejected": (
        ["user: hi", 'call get_user_details {"user_id": "m"} + get_user_details {}', "ok: {}", MISSING],
        ["invalid_arguments"],
    ),
    "a business error is no format error": (
        ["user: hi", 'call get_reservation_details {"reservation_id": "Z"}', "error: Reservation Z not found"],
        [],
    ),
    "a result that only looks like an error is fine": (
        ["user: hi", 'call get_user_details {"user_id": "m"}', f"ok: Error: {MISSING[7:]}"],
        [],
    ),
    "an unknown tool and a rejected argument": (
        ["user: hi", "call lookup {}", "error: Tool 'lookup' not found.", "call get_user_details {}", MISSING],
        ["unknown_tool", "invalid_arguments"],
    ),
}


@pytest.mark.parametrize("sentence", EPISODES)
def test_an_episode_has_its_format_errors(sentence, judged):
    lines, expected = EPISODES[sentence]
    assert [error.kind for error in judged(lines, termination="user_stop").format_errors] == expected


def lost(reason, termination, seat="learner"):
    return LostTurn(seat, 3, reason, termination, "raw text")


ENDINGS = {
    "arguments that are no JSON object lose the turn": (
        lost("invalid_arguments", "agent_error"),
        "agent_error",
        ["invalid_arguments"],
    ),
    "an empty reply loses the turn": (lost("empty", "agent_error"), "agent_error", ["empty_message"]),
    "a reply cut at the token limit": (
        lost("truncated", "context_window_exceeded"),
        "context_window_exceeded",
        ["truncated_generation"],
    ),
    "a prompt too long is no truncated generation": (
        lost("context_overflow", "context_window_exceeded"),
        "context_window_exceeded",
        [],
    ),
    "a call without a name": (lost("malformed_call", "agent_error"), "agent_error", ["protocol_error"]),
    "tau2 itself said agent_error": (None, "agent_error", ["protocol_error"]),
    "the customer's empty reply is not the learner's": (lost("empty", "user_error", "customer"), "user_error", []),
    "the customer's truncated reply is not the learner's": (
        lost("truncated", "user_error", "customer"),
        "user_error",
        [],
    ),
    "a learner that cannot be reached": (lost("unreachable", "infrastructure_error"), "infrastructure_error", []),
    "a spent budget": (lost("budget_requests", "timeout"), "timeout", []),
    "a user's stop": (None, "user_stop", []),
    "too many steps": (None, "max_steps", []),
    "too many tool errors": (None, "too_many_errors", []),
    "an unfinished episode": (None, None, []),
}


@pytest.mark.parametrize("sentence", ENDINGS)
def test_an_ending_shows_its_format_error(sentence, judged):
    lost_turn, termination, expected = ENDINGS[sentence]
    state = judged(["user: hi", "agent: hello", "user: go on"], termination=termination, lost_turn=lost_turn)
    assert [error.kind for error in state.format_errors] == expected


def test_a_lost_turn_stands_one_past_the_trajectory(judged):
    state = judged(["user: hi"], termination="agent_error", lost_turn=lost("empty", "agent_error"))
    assert [(error.kind, error.turn) for error in state.format_errors] == [("empty_message", 2)]


def test_an_empty_message_inside_a_trajectory_explains_agent_error(judged):
    state = judged(["user: hi", "agent: "], termination="agent_error")
    assert [error.kind for error in state.format_errors] == ["empty_message"]


def test_an_earlier_rejected_argument_does_not_explain_agent_error(judged):
    lines = ["user: hi", "call get_user_details {}", MISSING, "agent: sorry"]
    kinds = [error.kind for error in judged(lines, termination="agent_error").format_errors]
    assert kinds == ["invalid_arguments", "protocol_error"]


def test_results_are_paired_by_place_when_ids_repeat(play, context):
    from replaykit.policy import final_state

    trajectory = play("user: hi", 'call get_user_details {"user_id": "m"} + get_user_details {}', "ok: {}", MISSING)
    for call in trajectory[2]["tool_calls"]:
        call["id"] = "same"
    trajectory[3]["id"] = trajectory[4]["id"] = "same"
    (error,) = final_state(trajectory, context()).format_errors
    assert (error.kind, error.turn, error.call) == ("invalid_arguments", 2, 1)


def test_the_kinds_are_the_six_of_the_rules():
    assert len(KINDS) == len(set(KINDS)) == 6
