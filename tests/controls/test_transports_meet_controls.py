"""The built-in transports against the control provider at its strictest, both written without the other."""

from __future__ import annotations

import pytest

from replaykit import transports
from replaykit.controls import Action, Scenario, reference
from replaykit.seats import SeatFailure, TransportRequest

sender = pytest.importorskip("replaykit.transports.sender")

WIRES = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate")
WITH_STATE = {
    "openai-responses": {"reasoning": "encrypted"},
    "anthropic-messages": {},
    "gemini-generate": {},
}
SCENARIO = Scenario((Action("find_user", {"zip": "19122"}), Action("get_order", {"id": "#W1"})), ("42",))
NOTHING = {"type": "object", "properties": {}}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "d", "parameters": NOTHING}}
    for name in ("find_user", "get_order")
]
SETTINGS = {"temperature": 0.0, "top_p": 1.0, "max_output_tokens": 4096, "seed": 626729}
OPENING = [
    {"role": "system", "content": "The policy."},
    {"role": "assistant", "content": "Hi! How can I help you today?"},
    {"role": "user", "content": "Hello, I need help with a request."},
]


@pytest.fixture
def transport(provider):
    opened = sender.Sender()

    def make(wire, **options):
        url = provider.base_url("case", "learner", wire)
        return transports.load(wire)(base_url=url, model="m-1", key="key-1", sender=opened, **options)

    yield make
    opened.close()


def episode(transport, keep_state=True):
    """Plays the learner to its last reply, as the gateway would; gives the replies."""
    history, side, replies = list(OPENING), {}, []
    for number in range(1, 4):
        request = TransportRequest("learner", number, "m-1", list(history), TOOLS, "auto", SETTINGS, 17.0, side)
        reply = transport.ask(request, lambda exchange: None)
        replies.append(reply)
        if keep_state:
            side.update(reply.side)
        history += heard(reply)
    return replies


def heard(reply):
    """A reply and the results of its calls as the next request's messages."""
    named = [(c.id, {"name": c.name, "arguments": c.arguments}) for c in reply.tool_calls]
    calls = [{"id": id_, "type": "function", "function": function} for id_, function in named]
    own = {"role": "assistant", "content": reply.content} | ({"tool_calls": calls} if calls else {})
    return [own, *({"role": "tool", "tool_call_id": c["id"], "content": "{}"} for c in calls)]


@pytest.mark.parametrize("wire", WIRES)
def test_a_reference_episode_passes_the_strict_wire(case, transport, provider, wire):
    case(identities=reference(SCENARIO))
    replies = episode(transport(wire))
    assert [[c.name for c in r.tool_calls] for r in replies] == [["find_user"], ["get_order"], []]
    assert replies[2].content == "Here is the outcome: 42"
    assert [e.problem for e in provider.journal] == [None] * 3


@pytest.mark.parametrize("wire", WITH_STATE)
def test_state_that_the_provider_issued_comes_back(case, transport, provider, wire):
    case(identities=reference(SCENARIO), continuation=True)
    replies = episode(transport(wire, dialect=WITH_STATE[wire]))
    assert replies[2].content == "Here is the outcome: 42"
    assert [e.problem for e in provider.journal] == [None] * 3


@pytest.mark.parametrize("wire", WITH_STATE)
def test_state_that_does_not_come_back_is_refused(case, transport, wire):
    case(identities=reference(SCENARIO), continuation=True)
    with pytest.raises(SeatFailure) as caught:
        episode(transport(wire, dialect=WITH_STATE[wire]), keep_state=False)
    assert caught.value.status == 400
