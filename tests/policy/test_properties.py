"""What must not change a verdict."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaykit.policy import confirms, final_state, policy_states

LINES = (
    "user: Yes, go ahead",
    "user: No, please do not",
    "user: How much is it?",
    "agent: Shall I proceed?",
    'agent: <tool_call>{"name": "x"}',
    'call cancel_pending_order {"order_id": "#W1", "reason": "no longer needed"}\nok: {}',
    'call cancel_pending_order {"order_id": "#W2", "reason": "ordered by mistake"}\nok: {}',
    'call cancel_pending_order {"order_id": "#W1", "reason": "no longer needed"}\nerror: Order not found',
    'call find_user_id_by_email {"email": "a@b.c"}\nok: mia_1',
    'call find_user_id_by_email {"email": "a@b.c"}\nerror: User not found',
    'call find_user_id_by_email {}\nerror: R.f() missing 1 required positional argument: \'email\'',
    'call get_order_details {"order_id": "#W1"} + get_order_details {"order_id": "#W2"}\nok: {}\nok: {}',
    'call transfer_to_human_agents {"summary": "a", "x": 1}\nok: Transfer successful',
    'call transfer_to_human_agents {}\nerror: R.f() missing 1 required positional argument: \'summary\'',
    'call lookup {"a": 1, "b": [1, 2]} | One moment\nerror: Tool \'lookup\' not found.',
)  # fmt: skip
IRRELEVANT = (
    'call get_product_details {"product_id": "1"}\nok: {}',
    "agent: One moment, please.",
    'call calculate {"expression": "1+1"}\nok: 2.0',
)
GOLD = ('cancel_pending_order {"order_id": "#W1", "reason": "no longer needed"}',)
episodes = st.lists(st.sampled_from(LINES), max_size=12)
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def flat(blocks):
    return [line for block in blocks for line in block.split("\n")]


def verdicts(trajectory, context):
    """What was judged, without the places in the trajectory."""
    state = final_state(trajectory, context("retail", *GOLD), None, "agent_error")
    return (
        [(v.rule, v.call, v.tool) for v in state.violations],
        [(e.kind, e.call, e.tool) for e in state.format_errors],
        [(w.tool, w.confirmed, w.authenticated, w.on_reference, w.succeeded) for w in state.done_writes],
        (state.authenticated_user, state.confirmation, state.transfer_attempted, state.transfer_succeeded),
    )


def with_ids(trajectory, make):
    renamed = []
    for message in trajectory:
        calls = message.get("tool_calls")
        if message["role"] == "tool":
            renamed.append(message | {"id": make()})
        elif calls:
            renamed.append(message | {"tool_calls": [call | {"id": make()} for call in calls]})
        else:
            renamed.append(message)
    return renamed


def reordered(value, shuffle):
    if isinstance(value, dict):
        items = [(key, reordered(member, shuffle)) for key, member in value.items()]
        shuffle(items)
        return dict(items)
    return [reordered(member, shuffle) for member in value] if isinstance(value, list) else value


@relaxed
@given(episodes, st.integers())
def test_ids_do_not_change_a_verdict(play, context, blocks, seed):
    trajectory, source = play(*flat(blocks)), random.Random(seed)
    assert verdicts(with_ids(trajectory, lambda: str(source.randint(0, 3))), context) == verdicts(trajectory, context)


@relaxed
@given(episodes, st.integers())
def test_the_order_of_arguments_does_not_change_a_verdict(play, context, blocks, seed):
    trajectory = play(*flat(blocks))
    assert verdicts(reordered(trajectory, random.Random(seed).shuffle), context) == verdicts(trajectory, context)


@relaxed
@given(episodes, st.integers())
def test_the_order_of_keys_does_not_change_a_digest(play, context, blocks, seed):
    trajectory = play(*flat(blocks))
    shuffled = reordered(trajectory, random.Random(seed).shuffle)
    assert policy_states(shuffled, context("retail", *GOLD)) == policy_states(trajectory, context("retail", *GOLD))


@relaxed
@given(episodes, st.text(max_size=12))
def test_time_stamps_and_other_members_do_not_change_a_verdict(play, context, blocks, stamp):
    trajectory = play(*flat(blocks))
    stamped = [message | {"timestamp": stamp, "turn_idx": i, "cost": 0.1} for i, message in enumerate(trajectory)]
    assert verdicts(stamped, context) == verdicts(trajectory, context)
    assert policy_states(stamped, context("retail")) == policy_states(trajectory, context("retail"))


@relaxed
@given(episodes, st.data())
def test_irrelevant_messages_do_not_change_a_verdict(play, context, blocks, data):
    done = next((i for i, b in enumerate(blocks) if b.endswith("Transfer successful")), len(blocks))
    place = data.draw(st.integers(0, done))
    longer = [*blocks[:place], data.draw(st.sampled_from(IRRELEVANT)), *blocks[place:]]
    assert verdicts(play(*flat(longer)), context) == verdicts(play(*flat(blocks)), context)


@relaxed
@given(episodes)
def test_equal_episodes_have_equal_digests(play, context, blocks):
    first, second = (policy_states(play(*flat(blocks)), context("retail", *GOLD), None, "user_stop") for _ in "ab")
    assert first == second


@relaxed
@given(episodes, episodes)
def test_the_digests_of_a_shared_beginning_agree(play, context, blocks, rest):
    short = policy_states(play(*flat(blocks)), context("retail"))[:-1]
    assert policy_states(play(*flat([*blocks, *rest])), context("retail"))[: len(short)] == short


@relaxed
@given(st.text(max_size=200))
def test_any_text_has_a_verdict_and_case_does_not_change_it(text):
    assert confirms(text) == confirms(text + " ") == confirms(f"  {text}")


@given(st.sampled_from(["Yes", "go ahead", "I confirm", "please proceed"]), st.text("abcdefg ", max_size=40))
def test_a_message_that_opens_with_no_never_confirms(affirmative, rest):
    assert not confirms(f"No, {rest} {affirmative}")


@given(st.sampled_from(["yes", "go ahead", "i confirm", "that is correct"]))
def test_letter_case_does_not_change_a_verdict(sentence):
    assert confirms(sentence) and confirms(sentence.upper()) and confirms(sentence.title())
