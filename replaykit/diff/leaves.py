"""All differences between two JSON values, strict about types and key order, within a limit of work.

Unlike `difference.first` this aligns lists, so that an inserted message is one difference and not a hundred. The limit
never ends in silence: when it is reached, `Walk.unfinished` says so, and what was found until then is kept.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from replaykit import canonical
from replaykit.diff import moved
from replaykit.diff.align import Pairs, Tokens, align, kin_of
from replaykit.difference import MISSING, Difference

Path = tuple[object, ...]
WORK_LIMIT = 1_000_000
_CONTAINERS = (dict, list, tuple)


class Walk:
    """One comparison: differences found so far, and how much was looked at.

    Args:
        limit: How many values may be looked at.
    """

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.limit, self.spent = limit, 0
        self.is_too_deep = False
        self.tokens = Tokens()

    @property
    def unfinished(self) -> bool:
        """The limit was reached, or a value is nested too deeply: what was not found may still be there."""
        return self.spent > self.limit or self.is_too_deep

    def compare(self, left: Any, right: Any, path: Path = (), right_path: Path | None = None) -> list[Difference]:
        """Differences between two values, in document order of the left one."""
        found: list[Difference] = []
        try:
            self._walk(left, right, path, path if right_path is None else right_path, found)
        except RecursionError:
            self.is_too_deep = True
        return found

    def compare_tails(self, left: list, right: list, starts: tuple[int, int], path: Path) -> list[Difference]:
        """Differences between two lists behind their first items, which were compared before."""
        found: list[Difference] = []
        try:
            self._lists(left[starts[0] :], right[starts[1] :], path, path, found, starts)
        except RecursionError:
            self.is_too_deep = True
        return found

    def _walk(self, left: Any, right: Any, path: Path, other: Path, found: list[Difference]) -> None:
        self.spent += 1
        if left is right or self.spent > self.limit:
            return
        kind = type(left)
        if kind is str and type(right) is str:
            if left != right:
                found.append(_difference(path, other, "value", left, right))
        elif kind is not type(right) or kind not in _CONTAINERS:
            if not canonical.same(left, right):
                found.append(_difference(path, other, kind_of(left, right), left, right))
        elif kind is dict:
            self._objects(left, right, path, other, found)
        else:
            self._lists(left, right, path, other, found, (0, 0))

    def _objects(self, left: dict, right: dict, path: Path, other: Path, found: list[Difference]) -> None:
        before = len(found)
        for key, value in left.items():
            if key in right:
                self._walk(value, right[key], (*path, key), (*other, key), found)
            else:
                found.append(_at(path, key, "missing", value, MISSING))
        found += [_at(other, key, "extra", MISSING, right[key]) for key in right if key not in left]
        if len(found) == before and list(left) != list(right):
            found.append(_difference(path, other, "order", list(left), list(right)))

    def _lists(
        self, left: list, right: list, path: Path, other: Path, found: list[Difference], starts: tuple[int, int]
    ) -> None:
        ours, theirs = [self.tokens.of(v) for v in left], [self.tokens.of(v) for v in right]
        self.spent += len(ours) + len(theirs)
        if ours == theirs or self.unfinished:
            return
        if len(ours) == len(theirs) > 1 and Counter(ours) == Counter(theirs):
            found.append(_difference(path, other, "order", left, right))
            return
        values = {**dict(zip(theirs, right, strict=True)), **dict(zip(ours, left, strict=True))}
        aligned = align(ours, theirs, lambda token: kin_of(values[token]))
        pairs, has_moved = _with_moved(left, right, aligned)
        if has_moved:
            found.append(_difference(path, other, "order", *_places(pairs)))
        for i, j in pairs:
            if i is None:
                found.append(_at(other, starts[1] + j, "extra", MISSING, right[j]))
            elif j is None:
                found.append(_at(path, starts[0] + i, "missing", left[i], MISSING))
            else:
                self._walk(left[i], right[j], (*path, starts[0] + i), (*other, starts[1] + j), found)


def _with_moved(left: list, right: list, aligned: Pairs) -> tuple[Pairs, bool]:
    """The aligned items, with those paired that were left over on both sides because they moved and changed.

    Messages never move: theirs is the order in which they were said.
    """
    gone = [i for i, j in aligned if j is None]
    come = [j for i, j in aligned if i is None]
    if not gone or not come or any(isinstance(v, dict) and "role" in v for v in (*left, *right)):
        return aligned, False
    near = moved.pairs([left[i] for i in gone], [right[j] for j in come])
    place = {gone[a]: come[b] for a, b in near}
    known = set(place.values())
    kept = [(i, j) for i, j in aligned if j is not None or i not in place]
    pairs = [(i, j) for i, j in kept if i is not None or j not in known] + list(place.items())
    return sorted(pairs, key=lambda pair: (pair[0] if pair[0] is not None else pair[1], pair[0] is None)), bool(place)


def _places(pairs: Pairs) -> tuple[list[int], list[int]]:
    """Where the members that are on both sides stand on each."""
    both = [(i, j) for i, j in pairs if i is not None and j is not None]
    return [i for i, _ in both], [j for _, j in both]


def kind_of(left: Any, right: Any) -> str:
    """The kind of difference between two leaves (see `difference.Difference`)."""
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (left, right))
    if numbers and left == right:
        return "number"
    return "value" if type(left) is type(right) else "type"


def _at(path: Path, key: object, kind: str, left: Any, right: Any) -> Difference:
    return Difference(canonical.pointer(*path, key), kind, left, right)


def _difference(path: Path, other: Path, kind: str, left: Any, right: Any) -> Difference:
    elsewhere = None if path == other else canonical.pointer(*other)
    return Difference(canonical.pointer(*path), kind, left, right, elsewhere)
