"""Whatever a request holds, a wire reads it or refuses it in its own words; nothing else escapes."""

from __future__ import annotations

import copy
import json

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is a test dependency")
from hypothesis import given, settings
from hypothesis import strategies as st

from replaykit.controls.wires import WIRES, WireRefusal

from .test_wires import GOOD, parse

_SIMPLE = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "user", "text", "x"])
_NAMES = st.sampled_from(["type", "text", "role", "name"])
_JSON = st.recursive(
    _SIMPLE, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2), max_leaves=4
)


def _places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


def _with(body, path, value):
    if not path:
        return value
    body = copy.deepcopy(body)
    at = body
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return body


@pytest.mark.parametrize("wire", GOOD)
@settings(max_examples=100, deadline=None, database=None)
@given(data=st.data())
def test_a_changed_request_is_read_or_refused(wire, data):
    path = data.draw(st.sampled_from(list(_places(GOOD[wire][1]))))
    body = _with(GOOD[wire][1], path, data.draw(_JSON))
    for strict in (True, False):
        try:
            asked = parse(wire, body, strict)
        except WireRefusal as refusal:
            json.dumps(WIRES[wire].error(refusal, "x"))
        else:
            assert {m["role"] for m in asked.messages} <= {"system", "user", "assistant", "tool"}
