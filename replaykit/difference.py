"""The first difference between two JSON values, strict about types and key order.

1, 1.0 and true differ; NaN equals itself; members in another order differ (as ``order``), because providers see bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replaykit import canonical

MISSING = {"$missing": True}


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values first differ.

    Attributes:
        pointer: JSON pointer (RFC 6901) into both; ``""`` is the whole value.
        kind: ``value``, ``type``, ``number`` (same number, other spelling: 1 and 1.0), ``missing`` (only on the
            left), ``extra`` (only on the right), ``order`` (members in another order), ``length``.
        left, right: The two values there, or `MISSING`.
        right_pointer: Where the place is in the right value, when that is elsewhere (lists that were aligned).
    """

    pointer: str
    kind: str
    left: Any
    right: Any
    right_pointer: str | None = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {"pointer": self.pointer, "kind": self.kind, "left": self.left, "right": self.right}


def first(left: Any, right: Any, path: tuple[object, ...] = ()) -> Difference | None:
    """The first difference in document order of the left value, or None."""
    if left is right:
        return None
    if type(left) is not type(right):
        return _leaf(path, left, right)
    if isinstance(left, dict):
        return _objects(left, right, path)
    if isinstance(left, (list, tuple)):
        return _lists(left, right, path)
    return None if canonical.same(left, right) else _leaf(path, left, right)


def _objects(left: dict, right: dict, path: tuple[object, ...]) -> Difference | None:
    for key, value in left.items():
        if key not in right:
            return Difference(canonical.pointer(*path, key), "missing", value, MISSING)
        found = first(value, right[key], (*path, key))
        if found is not None:
            return found
    for key, value in right.items():
        if key not in left:
            return Difference(canonical.pointer(*path, key), "extra", MISSING, value)
    if list(left) != list(right):
        return Difference(canonical.pointer(*path), "order", list(left), list(right))
    return None


def _lists(left: list, right: list, path: tuple[object, ...]) -> Difference | None:
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        found = first(a, b, (*path, i))
        if found is not None:
            return found
    if len(left) > len(right):
        return Difference(canonical.pointer(*path, len(right)), "missing", left[len(right)], MISSING)
    if len(right) > len(left):
        return Difference(canonical.pointer(*path, len(left)), "extra", MISSING, right[len(left)])
    return None


def _leaf(path: tuple[object, ...], left: Any, right: Any) -> Difference:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (left, right))
    if numbers and left == right:
        kind = "number"
    else:
        kind = "value" if type(left) is type(right) else "type"
    return Difference(canonical.pointer(*path), kind, left, right)
