"""Align two lists: which items are the same, which changed in place, which are on one side only.

Items are compared by their canonical bytes, so 2, 2.0 and true are three items. What lies between equal items is
paired by kin (the same role, the same id, the same keys), then by order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from replaykit import canonical

Pairs = list[tuple[int | None, int | None]]
"""Positions on the left and on the right, in order; None: on the other side only."""
EXACT_UP_TO = 1_000_000
"""Items left times items right beyond which what is not at the ends is paired by order alone."""
_NAMES = ("role", "id", "tool_call_id", "item_id", "name", "kind", "payment_id", "flight_number", "date")


class Tokens:
    """Canonical bytes of values, each object encoded once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}

    def of(self, value: Any) -> bytes:
        """The ordered bytes of a value; containers are recognised by identity and must not change."""
        if not isinstance(value, (dict, list)):
            return canonical.ordered(value)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, canonical.ordered(value))
        return known[1]


def align(left: Sequence[Any], right: Sequence[Any], kin: Callable[[Any], Any] | None = None) -> Pairs:
    """Pair the items of two lists of hashable tokens.

    Args:
        kin: What items that differ have in common when they belong together; None: nothing.
    """
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    ends = len(left) - tail, len(right) - tail
    pairs: Pairs = [(i, i) for i in range(head)]
    pairs += _middle(left, right, (head, ends[0]), (head, ends[1]), kin or (lambda token: None))
    return pairs + [(ends[0] + i, ends[1] + i) for i in range(tail)]


def kin_of(value: Any) -> Any:
    """What tells that two items that differ are the same item changed: role, id and name, or the kind of value."""
    if not isinstance(value, dict):
        return type(value).__name__
    named = tuple((key, value[key]) for key in _NAMES if isinstance(value.get(key), str))
    function = value.get("function")
    if isinstance(function, dict):
        named += (("function", str(function.get("name"))),)
    return named or tuple(value)


def _common(left: Sequence[Any], right: Sequence[Any]) -> int:
    count = min(len(left), len(right))
    return next((i for i in range(count) if left[i] != right[i]), count)


def _middle(left: Sequence, right: Sequence, a: tuple[int, int], b: tuple[int, int], kin: Callable) -> Iterator:
    if (a[1] - a[0]) * (b[1] - b[0]) > EXACT_UP_TO:
        yield from _in_order(range(*a), range(*b))
        return
    matcher = SequenceMatcher(None, left[slice(*a)], right[slice(*b)], autojunk=False)
    for word, i1, i2, j1, j2 in matcher.get_opcodes():
        rows, columns = range(a[0] + i1, a[0] + i2), range(b[0] + j1, b[0] + j2)
        if word == "equal" or len(rows) == len(columns) == 1:
            yield from zip(rows, columns, strict=True)
        else:
            yield from _by_kin(rows, columns, left, right, kin)


def _by_kin(rows: range, columns: range, left: Sequence, right: Sequence, kin: Callable) -> Iterator:
    """Items between equal ones: kin pairs with kin, the rest by order."""
    if len(rows) == len(columns) and all(kin(left[i]) == kin(right[j]) for i, j in zip(rows, columns, strict=True)):
        yield from zip(rows, columns, strict=True)
        return
    ours, theirs = [kin(left[i]) for i in rows], [kin(right[j]) for j in columns]
    for word, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if word == "equal":
            yield from zip(rows[i1:i2], columns[j1:j2], strict=True)
        else:
            yield from _in_order(rows[i1:i2], columns[j1:j2])


def _in_order(rows: range, columns: range) -> Iterator:
    shared = min(len(rows), len(columns))
    yield from zip(rows[:shared], columns[:shared], strict=True)
    yield from ((i, None) for i in rows[shared:])
    yield from ((None, j) for j in columns[shared:])
