"""Packing: stores a value that repeats once, and a growing document as what it gained. Undone by `replaykit.pages`."""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any

from replaykit import canonical
from replaykit.pages import leaves

SHARE_FROM = 20  # characters; below, a reference and the shared value cost more than the text itself
DEEP = 32  # what is nested deeper is written as text, so that no record is nested deeper than a reader allows
_REF = "$"


class Packer:
    """Numbers the shared values of one cassette; ``new`` holds those no record carries yet."""

    __slots__ = ("_count", "_items", "_texts", "new")

    def __init__(self) -> None:
        self.new: list[Any] = []
        self._count = 0
        self._texts: dict[str, int] = {}
        self._items: dict[bytes, int] = {}

    def take_new(self) -> list[Any]:
        """The shared values since the last call, in number order."""
        taken, self.new = self.new, []
        return taken

    def know(self, value: Any) -> None:
        """Take in the next shared value of a cassette that is being resumed."""
        if isinstance(value, str):
            self._texts.setdefault(value, self._count)
        else:
            self._items.setdefault(canonical.ordered(value), self._count)
        self._count += 1

    def text(self, value: str) -> Any:
        """The text itself when short, else a reference."""
        if len(value) < SHARE_FROM:
            return value
        number = self._texts.get(value)
        if number is None:
            number = self._texts[value] = self._store(value)
        return {_REF: number}

    def item(self, value: Any) -> dict:
        """A reference to a container (a message, a tool, a set of headers)."""
        key = canonical.ordered(value)
        number = self._items.get(key)
        if number is None:
            packed = self.inline(value)
            number = self._items[key] = self._store(packed)
        return {_REF: number}

    def inline(self, value: Any, depth: int = 0) -> Any:
        """The value with its long texts shared."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind not in (dict, list, tuple):
            return value
        if depth == DEEP:
            return {_REF: {"json": canonical.ordered(value).decode("utf-8", "surrogatepass")}}
        if kind is dict:
            return _escaped({key: self.inline(part, depth + 1) for key, part in value.items()})
        return [self.inline(part, depth + 1) for part in value]

    def tree(self, value: Any, depth: int = 0) -> Any:
        """The value with its long texts shared, and the dictionaries in its lists."""
        kind = type(value)
        if kind is dict and depth < DEEP:
            return _escaped({key: self.tree(part, depth + 1) for key, part in value.items()})
        if kind in (list, tuple) and depth < DEEP:
            return [self.item(p) if type(p) is dict and p else self.tree(p, depth + 1) for p in value]
        return self.inline(value, depth)

    def _store(self, packed: Any) -> int:
        self.new.append(packed)
        self._count += 1
        return self._count - 1


def _escaped(packed: dict) -> dict:
    return {_REF: [packed[_REF]]} if len(packed) == 1 and _REF in packed else packed


class Lane:
    """The growing documents of one seat, each packed as a change to the one before.

    Items of lists are recognised by identity first, so an item must not be changed after it was given in.
    """

    __slots__ = ("_kept", "_rows", "document", "number")

    def __init__(self) -> None:
        self.number = 0
        self.document: dict[str, Any] = {}
        self._rows: dict[str, list[dict]] = {}
        self._kept: dict[str, int] = {}

    def pack(self, number: int, document: dict, packer: Packer) -> dict:
        """Pack a document and remember it as the one that the next is like."""
        rows = {key: self._references(key, value, packer) for key, value in document.items() if _is_rows(value)}
        if self.number and list(document) == list(self.document) and rows.keys() == self._rows.keys():
            packed = self._change(document, rows, packer)
        else:
            packed = {"is": _escaped({key: rows.get(key) or packer.tree(value) for key, value in document.items()})}
        self.number, self.document, self._rows = number, document, rows
        return packed

    def _references(self, key: str, value: list[dict], packer: Packer) -> list[dict]:
        known = self._rows.get(key, [])
        kept = self._kept[key] = common_start(self.document[key], value) if known else 0
        return known[:kept] + [packer.item(item) for item in value[kept:]]

    def _change(self, document: dict, rows: dict[str, list[dict]], packer: Packer) -> dict:
        grown = {key: self._growth(key, references) for key, references in rows.items()}
        grown = {key: growth for key, growth in grown.items() if growth}
        members = [key for key in document if key not in rows]
        before, after = ({key: value[key] for key in members} for value in (self.document, document))
        changed = {place: packer.tree(value) for place, value in differences(before, after)}
        return {"like": self.number, **({"grow": grown} if grown else {}), **({"at": changed} if changed else {})}

    def _growth(self, key: str, references: list[dict]) -> list | None:
        before, kept = self._rows[key], self._kept[key]
        while kept < min(len(before), len(references)) and before[kept] == references[kept]:
            kept += 1
        unchanged = kept == len(before) == len(references)
        return None if unchanged else [kept, *(reference[_REF] for reference in references[kept:])]


class ShapeLane:
    """Small documents, each packed as a change to the last one of the same shape: the same members, other leaves."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[Any, tuple[int, list]] = {}

    def pack(self, number: int, document: Any, packer: Packer, form: str = "") -> dict:
        """Pack a document and remember it for its shape and the form it was written in."""
        try:
            shape = (form, _shape(document))
        except RecursionError:
            return {"is": packer.inline(document)}
        after = list(leaves(document))
        before, self._last[shape] = self._last.get(shape), (number, after)
        if before is None:
            return {"is": packer.inline(document)}
        pairs = enumerate(zip(before[1], after, strict=True))
        changed = [part for i, (old, new) in pairs if not _same(old, new) for part in (i, packer.inline(new))]
        return {"like": before[0], **({"leaves": changed} if changed else {})}


def differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Where two values differ: JSON pointers below ``place`` and the new values there."""
    if type(before) is type(after) is dict and list(before) == list(after):
        for key in after:
            yield from differences(before[key], after[key], place + canonical.pointer(key))
    elif type(before) is type(after) is list and len(before) == len(after):
        for i, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place}/{i}")
    elif not _same(before, after):
        yield place, after


def _same(before: Any, after: Any) -> bool:
    """Equality that tells 1, 1.0 and True apart; the cheap cases first."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    return before == after if type(before) in (str, int, bool) else canonical.same(before, after)


def _shape(value: Any) -> Any:
    kind = type(value)
    if kind is dict and value:
        return tuple((key, _shape(part)) for key, part in value.items())
    return tuple(map(_shape, value)) if kind is list and value else None


def _is_rows(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(item) is dict and item for item in value)


def common_start(before: list, value: list) -> int:
    """How many items at the start are the very same objects."""
    if len(before) <= len(value) and all(map(is_, before, value)):
        return len(before)
    pairs = enumerate(zip(before, value, strict=False))
    return next((i for i, (a, b) in pairs if a is not b), min(len(before), len(value)))
