"""The policy state over an episode: what it holds, its digests, and where two runs part."""

import time

import pytest

from replaykit.episode import LostTurn
from replaykit.policy import PolicyContext, PolicyTracker, final_state, first_parting, policy_states, policy_timeline
from replaykit.policy.conversation import history

FIND = 'call find_user_id_by_email {"email": "a@b.c"}'
DROP = 'call cancel_pending_order {"order_id": "#W1"}'
LINES = ["user: Yes", FIND, "ok: mia_li_3668", DROP, "ok: {}", "agent: Done.", "user: Thanks ###STOP###"]
GOLD = ('cancel_pending_order {"order_id": "#W1"}',)


def test_the_state_names_the_authenticated_user(judged):
    assert judged(LINES, "retail", GOLD).authenticated_user == "mia_li_3668"
    assert judged(LINES[:1], "retail", GOLD).authenticated_user is None


def test_the_last_successful_authentication_counts(judged):
    lines = ["user: hi", FIND, "ok: first_1", FIND, "ok: second_2", FIND, "error: User not found"]
    assert judged(lines, "retail").authenticated_user == "second_2"


def test_the_airline_domain_authenticates_nobody(judged):
    state = judged(["user: Yes", 'call cancel_reservation {"reservation_id": "Z"}', "ok: {}"])
    assert state.authenticated_user is None
    assert state.done_writes[0].authenticated is None


def test_the_state_holds_the_verdict_on_the_last_user_message(judged):
    assert judged(LINES[:1], "retail").confirmation.word == "yes"
    assert judged([*LINES, "user: No, stop"], "retail").confirmation.reason == "refused"


def test_a_write_is_pending_until_its_result_arrives(play, context):
    tracker = PolicyTracker(context("retail", *GOLD))
    for message in play(*LINES)[:5]:
        tracker.feed(message)
    (pending,) = tracker.state().pending_writes
    assert (pending.tool, pending.confirmed, pending.authenticated, pending.on_reference, pending.succeeded) == (
        "cancel_pending_order", True, True, True, None,
    )  # fmt: skip
    tracker.feed(play(*LINES)[5])
    assert tracker.state().pending_writes == ()
    assert tracker.state().done_writes[0].succeeded is True


def test_a_failed_write_is_done_and_did_not_succeed(judged):
    state = judged(["user: Yes", FIND, "ok: u", DROP, "error: Order not found"], "retail", GOLD)
    assert [write.succeeded for write in state.done_writes] == [False]


def test_a_write_that_never_ran_has_no_outcome(judged):
    state = judged(["user: Yes", FIND, "ok: u", DROP], "retail", GOLD, termination="max_steps")
    assert [write.succeeded for write in state.done_writes] == [None]
    assert state.pending_writes == ()


@pytest.mark.parametrize(
    ("result", "succeeded"), [("ok: Transfer successful", True), ("error: no", False), (None, False)]
)
def test_a_transfer_is_attempted_whatever_the_tool_returns(judged, result, succeeded):
    lines = ["user: hi", 'call transfer_to_human_agents {"summary": "s"}', *([result] if result else [])]
    state = judged(lines)
    assert (state.transfer_attempted, state.transfer_succeeded) == (True, succeeded)


def test_text_about_a_transfer_is_no_transfer(judged):
    assert not judged(["user: hi", "agent: I will transfer_to_human_agents"]).transfer_attempted


def test_there_is_a_digest_after_every_learner_turn_and_at_the_end(play, context):
    states = policy_states(play(*LINES), context("retail", *GOLD), None, "user_stop")
    assert [state["turn"] for state in states] == [0, 2, 4, 6, 8]
    assert len({state["digest"] for state in states}) == len(states)


def test_the_last_digest_is_the_final_states(play, context):
    states = policy_states(play(*LINES), context("retail", *GOLD), None, "user_stop")
    assert final_state(play(*LINES), context("retail", *GOLD), None, "user_stop").digest == states[-1]["digest"]


def test_the_timeline_has_the_same_digests(play, context):
    states = policy_states(play(*LINES), context("retail", *GOLD), None, "user_stop")
    timeline = policy_timeline(play(*LINES), context("retail", *GOLD))
    assert [{"turn": turn, "digest": state.digest} for turn, state in timeline] == states[:-1]


def test_feeding_step_by_step_gives_the_same_digests(play, context):
    tracker, trajectory = PolicyTracker(context("retail", *GOLD)), play(*LINES)
    digests = []
    for message in trajectory:
        tracker.feed(message)
        if message["role"] == "assistant":
            digests.append(tracker.digest())
            assert tracker.state().digest == digests[-1]
    assert digests == [state["digest"] for state in policy_states(trajectory, context("retail", *GOLD))[:-1]]


CHANGES = {
    "another text of the user": (1, "content", "Yes!"),
    "another result": (5, "content", "{} "),
    "another outcome": (5, "error", True),
    "another text of the learner": (6, "content", "Done!"),
    "another call id": (2, "tool_calls", [{"id": "x", "name": "f", "arguments": {}, "requestor": "assistant"}]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_shows_from_its_turn_on(change, play, context):
    place, key, value = CHANGES[change]
    changed = play(*LINES)
    changed[place][key] = value
    parting = first_parting(
        policy_states(play(*LINES), context("retail", *GOLD)), policy_states(changed, context("retail", *GOLD))
    )
    assert parting["turn"] == next(i for i in (0, 2, 4, 6, 8) if i >= place)
    assert parting["recorded"] != parting["recomputed"]


def test_another_reference_solution_shows_at_the_write(play, context):
    with_gold = policy_states(play(*LINES), context("retail", *GOLD))
    assert first_parting(with_gold, policy_states(play(*LINES), context("retail")))["turn"] == 4


def test_another_termination_shows_at_the_end(play, context):
    stopped = policy_states(play(*LINES), context("retail"), None, "user_stop")
    assert first_parting(stopped, policy_states(play(*LINES), context("retail"), None, "max_steps"))["turn"] == 8


def test_equal_runs_do_not_part(play, context):
    states = policy_states(play(*LINES), context("retail"))
    assert first_parting(states, policy_states(play(*LINES), context("retail"))) is None


def test_a_run_that_breaks_off_parts_where_it_ends():
    whole = [{"turn": 0, "digest": "a"}, {"turn": 2, "digest": "b"}]
    assert first_parting(whole, whole[:1]) == {"turn": 2, "recorded": "b", "recomputed": None}
    assert first_parting(whole[:1], whole) == {"turn": 2, "recorded": None, "recomputed": "b"}


def test_a_turn_that_only_one_run_has_is_named():
    parting = first_parting([{"turn": 2, "digest": "a"}], [{"turn": 4, "digest": "a"}])
    assert parting == {"turn": 2, "recorded": "a", "recomputed": None}


def test_the_learner_holds_its_calls_and_the_customer_does_not(judged, play):
    state = judged(LINES, "retail", GOLD, termination="user_stop")
    trajectory = play(*LINES)
    assert state.learner_state == history(trajectory[:7]).to_dict()
    customers = [m for m in trajectory if m["role"] != "tool" and not m["tool_calls"]]
    assert state.customer_state == history(customers).to_dict()


def test_a_lost_learner_turn_leaves_the_question_in_its_history(judged, play):
    lost = LostTurn("learner", 2, "empty", "agent_error")
    state = judged(["user: hi"], termination="agent_error", lost_turn=lost)
    assert state.learner_state == history(play("user: hi")).to_dict()


def test_the_histories_that_tau2_holds_replace_the_derived_ones(judged, play):
    own = [{"role": "user", "content": "other", "tool_calls": None}]
    state = judged(LINES, "retail", GOLD, termination="user_stop", customer_state=own)
    assert state.customer_state == history(own).to_dict()
    assert state.digest != judged(LINES, "retail", GOLD, termination="user_stop").digest


def test_a_users_own_tool_call_goes_to_neither_the_learner_nor_its_rules(context):
    call = {"id": "u", "name": "cancel_reservation", "arguments": {}, "requestor": "user"}
    trajectory = [
        {"role": "assistant", "content": "Hi", "tool_calls": None},
        {"role": "user", "content": None, "tool_calls": [call]},
        {"role": "tool", "id": "u", "content": "Error: no", "requestor": "user", "error": True},
        {"role": "user", "content": "Hello", "tool_calls": None},
    ]
    state = final_state(trajectory, context())
    assert (state.violations, state.format_errors, state.done_writes) == ((), (), ())
    assert state.customer_state["messages"] == 4


def test_the_context_survives_its_plain_form(context):
    ours = context("retail", *GOLD)
    assert PolicyContext.from_dict(ours.to_dict()) == ours


def test_the_state_is_plain_data(judged):
    import json

    data = json.loads(json.dumps(judged(LINES, "retail", GOLD, termination="user_stop").to_dict()))
    assert data["transfer"] == {"attempted": False, "succeeded": False}
    assert [write["tool"] for write in data["done_writes"]] == ["cancel_pending_order"]


def test_a_lone_surrogate_and_nan_have_a_digest(context):
    call = {"id": "1", "name": "calculate", "arguments": {"x": float("nan"), "y": "\ud800"}, "requestor": "assistant"}
    trajectory = [{"role": "assistant", "content": "\udfff", "tool_calls": [call]}]
    assert policy_states(trajectory, context()) == policy_states(trajectory, context())


def test_the_cost_grows_with_the_episode_and_not_faster(play, context):
    def cost(turns):
        trajectory, start = play(*LINES * turns), time.process_time()
        policy_states(trajectory, context("retail", *GOLD))
        return time.process_time() - start

    cost(100)
    assert cost(4000) < 40 * max(cost(400), 0.01)
