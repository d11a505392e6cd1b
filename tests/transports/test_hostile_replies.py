"""Replies are untrusted: whatever comes, there is a reply or a failure, never another error."""

from __future__ import annotations

import copy

import pytest

from replaykit.seats import SeatFailure, SeatReply
from replaykit.transports import load

from .conftest import ask_for
from .examples import REPLIES, encoded

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
ANYTHING = st.recursive(
    SCALARS, lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=8), c, max_size=3), max_leaves=6
)


def places(value: object, path: tuple = ()) -> list[tuple]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [p for key, item in items for p in places(item, (*path, key))]


def replaced(value: object, path: tuple, new: object) -> object:
    changed = copy.deepcopy(value)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return changed


@pytest.mark.parametrize("name", REPLIES)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=80, deadline=None, database=None, derandomize=True)
def test_any_change_to_a_reply_gives_a_reply_or_a_failure(name, data):
    path = data.draw(st.sampled_from(places(REPLIES[name])))
    body = encoded(replaced(REPLIES[name], path, data.draw(ANYTHING)))
    try:
        reply = load(name)(base_url="http://h").from_wire(200, {}, body, ask_for())
    except SeatFailure:
        return
    assert isinstance(reply, SeatReply)
    assert reply.content is None or isinstance(reply.content, str)
    assert SeatReply.from_dict(reply.to_dict()) == reply
    assert all(isinstance(t, str) for c in reply.tool_calls for t in (c.id, c.name, c.arguments))
    assert reply.finish_reason is None or isinstance(reply.finish_reason, str)


@pytest.mark.parametrize("name", REPLIES)
@hypothesis.given(status=st.integers(200, 599), body=st.binary(max_size=60))
@hypothesis.settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_any_bytes_give_a_failure(name, status, body):
    with pytest.raises(SeatFailure):
        load(name)(base_url="http://h").from_wire(status, {"content-encoding": "gzip"}, body, ask_for())
