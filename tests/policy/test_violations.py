"""The five violations, one sentence an episode."""

import pytest

from replaykit.policy import DEFAULT_WEIGHTS, RULES, Violation, matches_action, penalty

ASK = ["user: Please cancel reservation Z", "agent: I will cancel Z. Shall I proceed?"]
CANCEL, GOLD = 'call cancel_reservation {"reservation_id": "Z"}', 'cancel_reservation {"reservation_id": "Z"}'
READ = 'call get_reservation_details {"reservation_id": "Z"}'
TRANSFER = 'call transfer_to_human_agents {"summary": "s"}'
FIND, BY_NAME = 'call find_user_id_by_email {"email": "a@b.c"}', "call find_user_id_by_name_zip {}"
DROP = 'call cancel_pending_order {"order_id": "#W1", "reason": "no longer needed"}'
DROP_GOLD = DROP.removeprefix("call ")
FOUND, MISSED = "ok: mia_li_3668", "error: User not found"

AIRLINE = {
    "a write after a yes is fine": ([*ASK, "user: Yes", CANCEL, "ok: {}"], []),
    "a write without any message of the user": ([CANCEL, "ok: {}"], ["write_without_confirmation"]),
    "a write right after the request": (["user: cancel Z", CANCEL, "ok: {}"], ["write_without_confirmation"]),
    "a write after a refusal": (
        [*ASK, "user: No, please do not proceed", CANCEL, "ok: {}"],
        ["write_without_confirmation"],
    ),
    "a write after a negated affirmative": (
        [*ASK, "user: that is not correct", CANCEL, "ok: {}"],
        ["write_without_confirmation"],
    ),
    "a write after a withdrawn affirmative": (
        [*ASK, "user: I said please do not", CANCEL, "ok: {}"],
        ["write_without_confirmation"],
    ),
    "a write after 'Okay, but actually no' is a known limit": (
        [*ASK, "user: Okay, but actually no", CANCEL, "ok: {}"],
        [],
    ),
    "a failed write without confirmation still counts": (
        ["user: cancel Z", CANCEL, "error: Reservation Z not found"],
        ["write_without_confirmation"],
    ),
    "two writes confirmed by one yes pass": ([*ASK, "user: Yes", CANCEL, "ok: {}", CANCEL, "ok: {}"], []),
    "a read between the yes and the write changes nothing": (
        [*ASK, "user: Yes", READ, "ok: {}", CANCEL, "ok: {}"],
        [],
    ),
    "a question after the yes takes the confirmation back": (
        [*ASK, "user: Yes", "agent: One moment.", "user: How long?", CANCEL, "ok: {}"],
        ["write_without_confirmation"],
    ),
    "a yes to an earlier proposal counts, a known limit": (
        ["user: Yes, I want to cancel Z", CANCEL, "ok: {}"],
        [],
    ),
    "the learner's own yes confirms nothing": (
        ["user: cancel Z", "agent: Yes, go ahead", CANCEL, "ok: {}"],
        ["write_without_confirmation"],
    ),
    "a blank message of the user is passed over": ([*ASK, "user: Yes", "user:  ", CANCEL, "ok: {}"], []),
    "a read needs no confirmation": (["user: hi", READ, "ok: {}"], []),
    "a calculation needs no confirmation": (["user: hi", 'call calculate {"expression": "1+1"}', "ok: 2.0"], []),
    "a transfer needs no confirmation": (["user: hi", TRANSFER, "ok: Transfer successful"], []),
    "an unknown tool is no write": (["user: hi", "call drop_all {}", "error: Tool 'drop_all' not found."], []),
    "the airline policy has no authentication rule": ([*ASK, "user: Yes", CANCEL, "ok: {}"], []),
    "two calls in one turn": (
        ["user: hi", f"{READ} + {READ[5:]}", "ok: {}", "ok: {}"],
        ["multiple_actions_in_turn"],
    ),
    "three calls in one turn are one violation": (
        ["user: hi", f"{READ} + {READ[5:]} + {READ[5:]}", "ok: {}", "ok: {}", "ok: {}"],
        ["multiple_actions_in_turn"],
    ),
    "a call beside text to the user": (["user: hi", f"{READ} | Let me see.", "ok: {}"], ["multiple_actions_in_turn"]),
    "a call beside white space is fine": (["user: hi", f"{READ} |   ", "ok: {}"], []),
    "one call a turn is fine": (["user: hi", READ, "ok: {}", READ, "ok: {}"], []),
    "text alone is fine": (["user: hi", "agent: Hello", "agent: Hello again"], []),
    "a read after a transfer that succeeded": (
        ["user: hi", TRANSFER, "ok: Transfer successful", READ, "ok: {}"],
        ["action_after_transfer"],
    ),
    "a second transfer after one that succeeded": (
        ["user: hi", TRANSFER, "ok: Transfer successful", TRANSFER, "ok: Transfer successful"],
        ["action_after_transfer"],
    ),
    "text after a transfer is fine": (
        ["user: hi", TRANSFER, "ok: Transfer successful", "agent: YOU ARE BEING TRANSFERRED"],
        [],
    ),
    "a read after a transfer that failed is fine": (
        ["user: hi", TRANSFER, "error: f() missing 1 required positional argument: 'summary'", READ, "ok: {}"],
        [],
    ),
    "a write after a transfer breaks two rules": (
        ["user: hi", TRANSFER, "ok: Transfer successful", CANCEL, "ok: {}"],
        ["write_without_confirmation", "action_after_transfer"],
    ),
    "a call behind a transfer in the same turn": (
        ["user: hi", f"{TRANSFER} + {READ[5:]}", "ok: Transfer successful", "ok: {}"],
        ["multiple_actions_in_turn", "action_after_transfer"],
    ),
    "a call before a transfer in the same turn": (
        ["user: hi", f"{READ} + {TRANSFER[5:]}", "ok: {}", "ok: Transfer successful"],
        ["multiple_actions_in_turn"],
    ),
    "a write off the reference solution": (
        [*ASK, "user: Yes", 'call cancel_reservation {"reservation_id": "Q"}', "ok: {}"],
        ["off_reference_write"],
    ),
    "another write tool than the reference": (
        [*ASK, "user: Yes", 'call send_certificate {"user_id": "m", "amount": 1}', "ok: done"],
        ["off_reference_write"],
    ),
    "a write off the reference that failed is none": (
        [*ASK, "user: Yes", 'call cancel_reservation {"reservation_id": "Q"}', "error: Reservation Q not found"],
        [],
    ),
    "a write off the reference without a result is none": (
        [*ASK, "user: Yes", 'call cancel_reservation {"reservation_id": "Q"}'],
        [],
    ),
    "a read off the reference is none": (["user: hi", 'call get_user_details {"user_id": "m"}', "ok: {}"], []),
    "the same reference action twice is a known limit": (
        [*ASK, "user: Yes", CANCEL, "ok: {}", CANCEL, "ok: {}"],
        [],
    ),
}  # fmt: skip

RETAIL = {
    "a write after a user was found by e-mail": (["user: Yes", FIND, FOUND, DROP, "ok: {}"], []),
    "a write after a user was found by name and zip code": (["user: Yes", BY_NAME, FOUND, DROP, "ok: {}"], []),
    "a write before anybody was found": (["user: Yes", DROP, "ok: {}"], ["write_before_authentication"]),
    "a write after a search that found nobody": (
        ["user: Yes", FIND, MISSED, DROP, "ok: {}"],
        ["write_before_authentication"],
    ),
    "a write after a second search that found somebody": (
        ["user: Yes", FIND, MISSED, BY_NAME, FOUND, DROP, "ok: {}"],
        [],
    ),
    "a search that fails later takes nothing back": (["user: Yes", FIND, FOUND, FIND, MISSED, DROP, "ok: {}"], []),
    "a user's profile is no authentication": (
        ["user: Yes", 'call get_user_details {"user_id": "m"}', "ok: {}", DROP, "ok: {}"],
        ["write_before_authentication"],
    ),
    "a failed write before authentication still counts": (
        ["user: Yes", DROP, "error: Order not found"],
        ["write_before_authentication"],
    ),
    "a read before authentication is fine": (["user: hi", 'call get_order_details {"order_id": "#W1"}', "ok: {}"], []),
    "a write neither confirmed nor authenticated": (
        ["user: cancel it", DROP, "ok: {}"],
        ["write_without_confirmation", "write_before_authentication"],
    ),
    "a write behind its authentication in the same turn": (
        ["user: Yes", f"{FIND} + {DROP[5:]}", FOUND, "ok: {}"],
        ["multiple_actions_in_turn"],
    ),
    "a write behind a failed authentication in the same turn": (
        ["user: Yes", f"{FIND} + {DROP[5:]}", MISSED, "ok: {}"],
        ["multiple_actions_in_turn", "write_before_authentication"],
    ),
}


@pytest.mark.parametrize("sentence", AIRLINE)
def test_an_airline_episode_has_its_violations(sentence, judged):
    lines, expected = AIRLINE[sentence]
    assert [violation.rule for violation in judged(lines, actions=(GOLD,)).violations] == expected


@pytest.mark.parametrize("sentence", RETAIL)
def test_a_retail_episode_has_its_violations(sentence, judged):
    lines, expected = RETAIL[sentence]
    assert [violation.rule for violation in judged(lines, "retail", (DROP_GOLD,)).violations] == expected


def action(arguments, compare=None, name="f"):
    return {"name": name, "arguments": arguments, "requestor": "assistant", "compare_args": compare}


# sentence: (reference arguments, compare_args, the call's arguments, whether they match)
COMPARED = {
    "equal arguments match": ({"a": 1}, None, {"a": 1}, True),
    "another value does not": ({"a": 1}, None, {"a": 2}, False),
    "an argument the call leaves out is not missed": ({"a": 1, "b": 2}, None, {"a": 1}, True),
    "no arguments match anything": ({"a": 1}, None, {}, True),
    "an argument the action lacks fails": ({"a": 1}, None, {"a": 1, "b": 2}, False),
    "an empty list of keys matches anything": ({"a": 1}, [], {"b": 5}, True),
    "only the listed keys are compared": ({"a": 1, "b": 2}, ["a"], {"a": 1, "b": 9}, True),
    "a listed key that differs fails": ({"a": 1, "b": 2}, ["b"], {"a": 1, "b": 9}, False),
    "a listed key that the call lacks fails": ({"a": 1}, ["a"], {"b": 1}, False),
    "a listed key that both lack is no difference": ({"a": 1}, ["z"], {"b": 1}, True),
    "1 and 1.0 match": ({"a": 1}, None, {"a": 1.0}, True),
    "1 and true match": ({"a": 1}, None, {"a": True}, True),
    "0 and false match": ({"a": 0}, None, {"a": False}, True),
    "1 and the text 1 do not": ({"a": 1}, None, {"a": "1"}, False),
    "the order of a list matters": ({"a": [1, 2]}, None, {"a": [2, 1]}, False),
    "the order of an object's keys does not": ({"a": {"x": 1, "y": 2}}, None, {"a": {"y": 2, "x": 1}}, True),
    "letter case matters": ({"a": "Z"}, None, {"a": "z"}, False),
    "null is not a missing argument": ({"a": None}, None, {"b": None}, False),
}


@pytest.mark.parametrize("sentence", COMPARED)
def test_arguments_are_compared_as_tau2_does(sentence):
    reference, keys, arguments, expected = COMPARED[sentence]
    assert matches_action(action(reference, keys), "f", arguments) is expected


def test_another_name_never_matches_and_the_requestor_is_not_compared():
    assert not matches_action(action({}, []), "g", {})
    assert matches_action(action({"a": 1}) | {"requestor": "user"}, "f", {"a": 1})


def test_a_violation_names_its_turn_call_and_tool(judged):
    lines = ["user: hi", f"{READ} + {CANCEL[5:]}", "ok: {}", "ok: {}"]
    turn, write = judged(lines, actions=(GOLD,)).violations
    assert turn == Violation("multiple_actions_in_turn", 2)
    assert write == Violation("write_without_confirmation", 2, 1, "cancel_reservation")


def test_weights_can_be_set_by_rule():
    found = [Violation("off_reference_write", 3), Violation("multiple_actions_in_turn", 3)]
    assert penalty(found) == 2.0
    assert penalty(found, {"off_reference_write": 0.25}) == 1.25


def test_every_rule_has_a_weight():
    assert set(DEFAULT_WEIGHTS) == set(RULES)
    assert len(RULES) == 5
