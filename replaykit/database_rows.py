"""Changed database rows as plain data: what of a row differs from the untouched database, before and after.

A change is ``{"before": ROW|None, "after": ROW|None}``; None: there was, or is, no such row. Of a row that is on both
sides, both forms hold only the members that differ, objects within objects included, so that a flight whose seats
changed on one day does not carry its other thirty days. What neither form holds is as in the untouched database.
"""

from __future__ import annotations

from typing import Any

from replaykit import canonical

Changes = dict[str, dict[str, dict[str, Any]]]
"""Table -> key -> change."""
_ABSENT = object()


def change(before: Any, after: Any) -> dict[str, Any]:
    """The change between two rows as JSON data."""
    if isinstance(before, dict) and isinstance(after, dict):
        before, after = _trimmed(before, after)
    return {"before": before, "after": after}


def _trimmed(before: dict, after: dict) -> tuple[dict, dict]:
    left, right = {}, {}
    for key in (*before, *(k for k in after if k not in before)):
        old, new = before.get(key, _ABSENT), after.get(key, _ABSENT)
        if old is not _ABSENT and new is not _ABSENT and canonical.same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            old, new = _trimmed(old, new)
        left |= {} if old is _ABSENT else {key: old}
        right |= {} if new is _ABSENT else {key: new}
    return left, right


def finals(left: dict | None, right: dict | None) -> tuple[Any, Any]:
    """How one row ends in two runs that began on the same database, as far as one of them changed it.

    Args:
        left, right: Each run's change of the row, or None when it did not change it.
    """
    if left is None or right is None:
        one = left or right or {"before": None, "after": None}
        return (one["before"], one["after"]) if left is None else (one["after"], one["before"])
    base = _union(left["before"], right["before"])
    return _applied(base, left["before"], left["after"]), _applied(base, right["before"], right["after"])


def _union(left: Any, right: Any) -> Any:
    """What both say of the untouched row; where one says less, the other's word stands."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return left if right is None else right
    merged = {key: _union(value, right[key]) if key in right else value for key, value in left.items()}
    return merged | {key: value for key, value in right.items() if key not in left}


def _applied(base: Any, before: Any, after: Any) -> Any:
    """The untouched row with one run's change made to it."""
    if not isinstance(base, dict) or not isinstance(before, dict) or not isinstance(after, dict):
        return after
    kept = {key: value for key, value in base.items() if key in after or key not in before}
    changed = {key: _applied(base.get(key), before.get(key), value) for key, value in after.items()}
    return {key: changed.get(key, value) for key, value in kept.items()} | changed
