"""Whatever is packed unfolds to the very same value, in whatever order it comes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaykit import canonical
from replaykit.pages import Documents, Shared
from replaykit.store.packing import Lane, Packer, ShapeLane

TEXTS = st.one_of(st.sampled_from(["", "$", "json", "a text of more than twenty characters"]), st.text(max_size=30))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
ROWS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), max_size=5)
GROWING = st.fixed_dictionaries({"model": TEXTS, "messages": ROWS, "tools": st.one_of(st.none(), ROWS), "more": VALUES})
MANY = settings(
    max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def unfolded(packer: Packer, packed: list[dict]) -> list:
    """What documents unfold to, numbered from 1."""
    shared = Shared()
    for value in packer.take_new():
        shared.add(value)
    documents = Documents(shared)
    for number, document in enumerate(packed, 1):
        documents.add(number, document)
    return [documents.value(number) for number in range(1, len(packed) + 1)]


@given(VALUES)
@MANY
def test_a_value_unfolds_to_itself(value):
    packer = Packer()
    assert canonical.same(unfolded(packer, [{"is": packer.tree(value)}, {"is": packer.inline(value)}]), [value, value])


@given(st.lists(GROWING, max_size=6))
@MANY
def test_growing_documents_unfold_to_themselves(values):
    packer, lane = Packer(), Lane()
    packed = [lane.pack(number, value, packer) for number, value in enumerate(values, 1)]
    assert canonical.same(unfolded(packer, packed), values)


@given(st.lists(st.one_of(VALUES, st.fixed_dictionaries({"id": TEXTS, "n": LEAVES, "deep": VALUES})), max_size=8))
@MANY
def test_documents_of_any_shape_unfold_to_themselves(values):
    packer, lane = Packer(), ShapeLane()
    packed = [lane.pack(number, value, packer) for number, value in enumerate(values, 1)]
    assert canonical.same(unfolded(packer, packed), values)


@given(st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), max_size=6))
@MANY
def test_a_packer_that_learnt_what_a_file_holds_stores_nothing_again(values):
    first, shared = Packer(), Shared()
    for value in values:
        first.item(value)
    for value in first.take_new():
        shared.add(value)
    again = Packer()
    for value in shared.values():
        again.know(value)
    for value in values:
        again.item(value)
    assert again.take_new() == []
