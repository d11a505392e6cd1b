"""Changed rows keep what differs, and two runs' final rows are rebuilt from their changes alone."""

from __future__ import annotations

import copy
import random

import pytest

from replaykit import canonical, database_rows

BASE = {
    "id": "r1",
    "seats": {"d1": {"economy": 3, "business": 1}, "d2": {"economy": 5}},
    "items": [{"n": 1}],
    "note": None,
}


def edited(**members: object) -> dict:
    return {**copy.deepcopy(BASE), **members}


def test_a_change_holds_only_the_members_that_differ() -> None:
    after = edited(seats={"d1": {"economy": 2, "business": 1}, "d2": {"economy": 5}})
    change = database_rows.change(BASE, after)
    assert change == {"before": {"seats": {"d1": {"economy": 3}}}, "after": {"seats": {"d1": {"economy": 2}}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [({"a": 2}, {"a": 2.0}), ({"a": True}, {"a": 1}), ({"a": 0.0}, {"a": -0.0}), ({"a": [2]}, {"a": [2.0]})],
)
def test_a_change_of_number_type_is_a_change(before: dict, after: dict) -> None:
    assert canonical.same(database_rows.change(before, after), {"before": before, "after": after})


def test_a_row_that_one_run_did_not_touch_ends_as_it_began() -> None:
    change = database_rows.change(BASE, edited(note="x"))
    assert database_rows.finals(None, change) == ({"note": None}, {"note": "x"})


def test_a_removed_and_an_added_row_are_whole() -> None:
    assert database_rows.change(BASE, None) == {"before": BASE, "after": None}
    assert database_rows.finals(database_rows.change(BASE, None), database_rows.change(BASE, edited(note="x"))) == (
        None,
        edited(note="x"),
    )


def test_final_rows_rebuilt_from_two_changes_differ_where_the_whole_rows_differ() -> None:
    rng = random.Random(5)
    for _ in range(300):
        one, two = _mutated(rng), _mutated(rng)
        left, right = database_rows.finals(
            *(None if canonical.same(r, BASE) else database_rows.change(BASE, r) for r in (one, two))
        )
        assert database_rows.change(left or {}, right or {}) == database_rows.change(one, two)


def _mutated(rng: random.Random) -> dict:
    row = copy.deepcopy(BASE)
    for _ in range(rng.randrange(3)):
        place = rng.choice(
            [row, row["seats"], row["seats"]["d1"]]
            if isinstance(row.get("seats"), dict) and "d1" in row["seats"]
            else [row]
        )
        key = rng.choice([*place, "new"])
        if rng.random() < 0.3:
            place.pop(key, None)
        else:
            place[key] = rng.choice([7, 7.0, None, {"economy": 3}, [1], "t"])
        if not isinstance(row.get("seats"), dict) or not isinstance(row["seats"].get("d1"), dict):
            break
    return row
