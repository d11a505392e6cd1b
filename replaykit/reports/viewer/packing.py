"""Data for the page, small: long texts and repeated containers once, growing documents as what they add.

``{"$": 7}`` anywhere stands for pool value 7; a dictionary whose only key is ``"$"`` is written ``{"$": [VALUE]}``. A
number that a browser would write otherwise (``1.0``, an integer above 2**53) is ``{"#": "1.0"}``, escaped likewise.

A document is ``{"is": VALUE}``, or ``{"like": PLACE, "grow": {key: [KEPT, item, ...]}, "set": {key: VALUE}}``: equal to
the document at PLACE of the same list but for the named members.
"""

from __future__ import annotations

from typing import Any

from replaykit import canonical

_LONG = 120  # characters from which a text is worth a place in the pool
_EXACT = 2**53  # from here on, a browser's integers have gaps
_MARKS = ("$", "#")


class Pool:
    """Shared values of the page."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def pack(self, value: Any) -> Any:
        """The value with its long texts in the pool."""
        kind = type(value)
        if kind is str:
            return {"$": self._place(value, value)} if len(value) >= _LONG else value
        if kind is dict:
            packed = {key: self.pack(part) for key, part in value.items()}
            mark = next(iter(packed)) if len(packed) == 1 else None
            return {mark: [packed[mark]]} if mark in _MARKS else packed
        if kind is list or kind is tuple:
            return [self.pack(part) for part in value]
        return _number(value) if kind is float or kind is int else value

    def share(self, value: Any) -> Any:
        """A container that will come again, as a whole."""
        if not value:
            return value
        key = canonical.ordered(value)
        if key not in self._places:
            return {"$": self._place(key, self.pack(value))}
        return {"$": self._places[key]}

    def _place(self, key: Any, value: Any) -> int:
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _number(value: float) -> Any:
    """The number, or its spelling where a browser would spell it otherwise."""
    if isinstance(value, int):
        return value if -_EXACT < value < _EXACT else {"#": str(value)}
    plain = not value.is_integer() and 1e-4 <= abs(value) < 1e15
    return value if plain else {"#": canonical.ordered(value).decode()}


class Documents:
    """Documents of one kind, each as what it adds to an earlier one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._last: dict[Any, tuple[int, dict]] = {}
        self.packed: list[dict] = []

    def add(self, series: Any, document: Any) -> int:
        """Take a document; those of one series are alike.

        Returns:
            Its place.
        """
        base = self._last.get(series)
        if base is not None and isinstance(document, dict) and list(base[1]) == list(document):
            packed = self._change(base[0], base[1], document)
        else:
            packed = {"is": self._whole(document)}
        self.packed.append(packed)
        if isinstance(document, dict):
            self._last[series] = (len(self.packed) - 1, document)
        return len(self.packed) - 1

    def _whole(self, document: Any) -> Any:
        if not isinstance(document, dict):
            return self._pool.pack(document)
        return {key: self._member(key, value) for key, value in document.items()}

    def _member(self, key: str, value: Any) -> Any:
        return self._pool.share(value) if key == "tools" else self._pool.pack(value)

    def _change(self, place: int, base: dict, document: dict) -> dict:
        packed: dict[str, Any] = {"like": place, "grow": {}, "set": {}}
        for key, value in document.items():
            old = base[key]
            kept = _common(old, value) if type(value) is list and type(old) is list else 0
            if old is value or (kept and kept == len(value) == len(old)) or (not kept and _same(old, value)):
                continue
            if kept:
                packed["grow"][key] = [kept, *self._pool.pack(value[kept:])]
            else:
                packed["set"][key] = self._member(key, value)
        return packed


def _same(left: Any, right: Any) -> bool:
    return left is right or (left == right and canonical.same(left, right))


def _common(left: list, right: list) -> int:
    """How many items two lists begin with in common.

    Items that are the same objects cost nothing; the others are first compared as Python does, and what that takes for
    equal (1 and 1.0) is then told apart for all at once.
    """
    count, shared = 0, True
    for a, b in zip(left, right, strict=False):
        if a is not b:
            if a != b:
                break
            shared = False
        count += 1
    if shared or canonical.same(left[:count], right[:count]):
        return count
    return next(i for i in range(count) if not canonical.same(left[i], right[i]))
