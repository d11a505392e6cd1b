"""Two values are compared by type, in any list, within a limit that never ends in silence."""

from __future__ import annotations

import json
import random

import pytest

from replaykit import canonical
from replaykit.diff import text
from replaykit.diff.align import align
from replaykit.diff.leaves import Walk
from replaykit.difference import MISSING


def found(left, right):
    """Kinds and pointers of all differences."""
    return [(d.kind, d.pointer) for d in Walk().compare(left, right)]


@pytest.mark.parametrize(
    ("left", "right", "kind", "pointer"),
    [
        ("[2]", "[2.0]", "number", "/0"),
        ("[true]", "[1]", "type", "/0"),
        ('{"a": 2}', '{"a": 2.0}', "number", "/a"),
        ('{"a": 0.0}', '{"a": -0.0}', "number", "/a"),
        ('{"a": 0.30000000000000004}', '{"a": 0.3}', "value", "/a"),
        ('{"a": [1, 1, 2]}', '{"a": [1, 2]}', "missing", "/a/1"),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', "order", "/a"),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', "order", ""),
        ('{"a": null}', "{}", "missing", "/a"),
        ('{"a": null}', '{"a": ""}', "type", "/a"),
        ('{"a": [{"b": [1]}]}', '{"a": [{"b": [1.0]}]}', "number", "/a/0/b/0"),
        ('{"a/b": {"c~d": 1}}', '{"a/b": {"c~d": 2}}', "value", "/a~1b/c~0d"),
        ('"\\u00e9"', '"e\\u0301"', "value", ""),
        ('{"a": "\\ud800"}', '{"a": "\\ud801"}', "value", "/a"),
    ],
)
def test_what_json_tells_apart_is_told_apart(left, right, kind, pointer):
    assert found(json.loads(left), json.loads(right)) == [(kind, pointer)]


@pytest.mark.parametrize(
    ("left", "right", "kind", "inner"),
    [
        ('{"amount": 33}', '{"amount": 33.00}', "number", 1),
        ('{"amount": 33}', '{"amount": "33"}', "type", 1),
        ('{"amount": 33}', '{"amount": true}', "type", 1),
        ('{"amount": 33.00}', '{"amount": 3.3e1}', None, 0),
    ],
)
def test_differences_of_argument_texts_are_told_inside_the_json(left, right, kind, inner):
    differences = text.in_json(left, right)
    assert len(differences) == inner
    assert [d.kind for d in differences] == [kind] * inner


@pytest.mark.parametrize(("left", "right"), [("", "{}"), ("{", "{}"), ("3", "4"), (None, "{}")])
def test_an_argument_text_that_is_no_object_stays_a_text(left, right):
    assert text.in_json(left, right) is None


def test_nan_equals_itself_and_nothing_else():
    assert found([float("nan")], [float("nan")]) == []
    assert found([float("nan")], [float("inf")]) == [("value", "/0")]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_limit_that_is_reached_is_said_and_never_reads_as_same(limit):
    walk = Walk(limit)
    differences = walk.compare({"a": 1, "b": [3, 2, 1]}, {"a": 9999, "b": [1, 2, 3]})
    assert walk.unfinished
    assert len(differences) == (limit > 1)


def test_an_inserted_message_is_one_difference():
    messages = [{"role": "user", "content": f"text {i}"} for i in range(60)]
    longer = [*messages[:20], {"role": "user", "content": "new"}, *messages[20:]]
    assert found({"m": messages}, {"m": longer}) == [("extra", "/m/20")]


def test_a_message_inserted_beside_changed_ones_is_found_by_its_role():
    left = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    right = [
        {"role": "user", "content": "a2"},
        {"role": "tool", "content": "t"},
        {"role": "assistant", "content": "b2"},
    ]
    assert found(left, right) == [("value", "/0/content"), ("extra", "/1"), ("value", "/1/content")]


def test_items_that_moved_behind_an_insertion_are_named_on_both_sides():
    left, right = [{"id": "x", "n": 1}], [{"id": "w"}, {"id": "x", "n": 2}]
    (_, changed) = Walk().compare(left, right)
    assert (changed.pointer, changed.right_pointer) == ("/0/n", "/1/n")


def test_the_differences_made_to_the_left_value_give_the_right_one():
    rng = random.Random(11)
    for _ in range(400):
        left, right = _value(rng, 3), _value(rng, 3)
        assert bool(Walk().compare(left, right)) is not canonical.same(left, right)


def _value(rng: random.Random, depth: int):
    kind = rng.randrange(6 if depth else 4)
    if kind == 4:
        return [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {rng.choice("abc"): _value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return rng.choice([0, 0.0, -0.0, 1, True, 1.0, None, "", "a"])


def test_alignment_uses_every_item_once_and_in_order():
    rng = random.Random(3)
    for _ in range(300):
        left, right = ([rng.randrange(6) for _ in range(rng.randrange(9))] for _ in range(2))
        pairs = align(left, right, lambda token: token % 2)
        assert [i for i, _ in pairs if i is not None] == list(range(len(left)))
        assert [j for _, j in pairs if j is not None] == list(range(len(right)))


def test_two_long_lists_without_a_common_item_are_aligned_quickly_by_order():
    pairs = align([f"a{i}" for i in range(3_000)], [f"b{i}" for i in range(3_001)])
    assert pairs[-1] == (None, 3_000)


def test_text_differences_are_shown_within_the_line_with_context():
    left = "The quick brown fox. " * 20 + "It costs 25 dollars." + " The end of it." * 20
    (before, gone, come, after) = text.segments(left, left.replace("25", "30"))
    assert (gone, come) == (("-", "25"), ("+", "30"))
    assert before[1].startswith("…") and before[1].endswith("It costs ")
    assert after[1].startswith(" dollars.") and after[1].endswith("…")


def test_a_megabyte_of_other_text_is_compared_at_once():
    rng = random.Random(1)
    left, right = (" ".join(str(rng.random()) for _ in range(50_000)) for _ in range(2))
    segments = text.segments(left, right)
    assert {word for word, _ in segments} <= {"=", "-", "+"}
    assert "".join(t for w, t in segments if w == "-") in left


def test_missing_and_null_are_two_things():
    assert Walk().compare({"a": None}, {})[0].right == MISSING


def test_a_member_that_moved_and_changed_is_paired_with_itself():
    left = [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3}]
    right = [{"id": "b", "n": 2.0}, {"id": "c", "n": 3}, {"id": "a", "n": 9}]
    assert found({"rows": left}, {"rows": right})[0] == ("order", "/rows")
    assert {("value", "/rows/0/n"), ("number", "/rows/1/n")} == set(found({"rows": left}, {"rows": right})[1:])


def test_members_that_have_nothing_in_common_are_not_paired():
    left, right = [{"id": "a"}, {"x": 1}], [{"x": 1}, {"far": [1, 2, 3], "away": {"k": "v"}}]
    assert found(left, right) == [("missing", "/0"), ("extra", "/1")]


def test_values_nested_too_deeply_are_unfinished_and_no_error():
    deep = [1]
    for _ in range(5_000):
        deep = [deep]
    walk = Walk()
    assert walk.compare({"a": 1, "b": deep}, {"a": 2, "b": [deep]})[0].pointer == "/a"
    assert walk.unfinished
    assert text.in_json("[" * 900 + "]" * 900, "[" * 901 + "]" * 901) is None
