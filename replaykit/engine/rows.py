"""Copy-on-write tables: a dictionary of rows that an episode may change while its base stays untouched.

A `RowView` is a real dictionary filled with the base's own row objects, so whatever reads a dictionary's storage
directly (pydantic's serialiser, ``==``, ``len``, ``in``, key order) is right without a special case. Every way to a
row that goes through a method replaces the row by a private copy first. A row's large dictionary of records (a
flight's dates, a product's variants) is a view of its own, so copying such a row costs microseconds.

Iterating over ``values()`` and ``items()`` is the one way that can do without copies: in *shared* views it yields the
base's own rows, which is a tenfold saving for a search and is safe only for tools known not to write through an
iterated row (see `iteration`). In *guarded* views it copies every row first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

# A dictionary of records in a row becomes a view of its own from this size on; below it a plain copy is cheaper.
NESTED_FROM = 6
_ATOMS = frozenset((str, int, float, bool, type(None)))
_set = object.__setattr__


class RowView(dict):
    """A table of which rows are copied when they are first reached.

    Attributes:
        base: The base's rows.
        owned: Keys of rows that are this view's own: copied on first access, or put there.
    """

    __slots__ = ("_copy_row", "base", "owned")

    def __init__(self, rows: dict, copy_row: Callable[[Any], Any]) -> None:
        super().__init__(rows)
        self.base, self._copy_row = rows, copy_row
        self.owned: set = set()

    def _own(self, key: Any, row: Any) -> Any:
        if key not in self.owned:
            row = self._copy_row(row)
            dict.__setitem__(self, key, row)
            self.owned.add(key)
        return row

    def own_all(self) -> None:
        """Make every row this view's own."""
        for key, row in dict.items(self):
            self._own(key, row)

    def __getitem__(self, key: Any) -> Any:
        return self._own(key, dict.__getitem__(self, key))

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self:
            return self[key]
        return default

    def __setitem__(self, key: Any, row: Any) -> None:
        dict.__setitem__(self, key, row)
        self.owned.add(key)

    def __delitem__(self, key: Any) -> None:
        dict.__delitem__(self, key)
        self.owned.discard(key)

    def pop(self, key: Any, *default: Any) -> Any:
        if key not in self:
            return dict.pop(self, key, *default)
        row = self[key]
        del self[key]
        return row

    def popitem(self) -> tuple[Any, Any]:
        key, row = dict.popitem(self)
        if key not in self.owned:
            row = self._copy_row(row)
        self.owned.discard(key)
        return key, row

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Any) -> None:
        for key, row in dict(*others, **named).items():
            self[key] = row

    def clear(self) -> None:
        dict.clear(self)
        self.owned.clear()

    def __iter__(self) -> Iterator:
        # Defined so that dict(view) and {**view} go through __getitem__ instead of copying base rows in C.
        return dict.__iter__(self)

    def copy(self) -> dict:
        """A plain dictionary of the same rows, as ``dict.copy`` gives."""
        return dict(self)

    __copy__ = copy

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __ior__(self, other: Any) -> RowView:
        self.update(other)
        return self

    def __deepcopy__(self, memo: dict) -> dict:
        copy: dict = {}
        memo[id(self)] = copy
        for key, row in dict.items(self):
            copy[deepcopy(key, memo)] = deepcopy(row, memo)
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return dict, (dict(self),)


class GuardedRowView(RowView):
    """A view that copies every row before it is iterated."""

    __slots__ = ()

    def values(self) -> Any:
        self.own_all()
        return dict.values(self)

    def items(self) -> Any:
        self.own_all()
        return dict.items(self)


def row_copier(view_class: type[RowView]) -> Callable[[Any], Any]:
    """A function that makes a private copy of a base row; its large dictionaries of records become views."""

    def copy_row(row: Any) -> Any:
        kind = type(row)
        if not _is_model(kind):
            return _copy(row)
        return _model(row, {name: _field(value) for name, value in row.__dict__.items()}, kind)

    def _field(value: Any) -> Any:
        if type(value) is dict and len(value) >= NESTED_FROM and _all_models(value.values()):
            return view_class(value, _copy)
        return value if type(value) in _ATOMS else _copy(value)

    return copy_row


def _all_models(values: Iterable) -> bool:
    return all(_is_model(type(v)) for v in values)


def _is_model(kind: type) -> bool:
    """Whether this is a pydantic model class; ``isinstance`` on those is many times slower."""
    return hasattr(kind, "__pydantic_validator__")


def _model(source: Any, fields: dict, kind: type) -> Any:
    copy = kind.__new__(kind)
    _set(copy, "__dict__", fields)
    _set(copy, "__pydantic_fields_set__", set(source.__pydantic_fields_set__))
    extra, private = source.__pydantic_extra__, source.__pydantic_private__
    _set(copy, "__pydantic_extra__", None if extra is None else deepcopy(extra))
    _set(copy, "__pydantic_private__", None if private is None else deepcopy(private))
    return copy


def _copy(value: Any) -> Any:
    """A deep copy of what JSON validated into models can hold; anything else is copied the general way."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list:
        return [v if type(v) in _ATOMS else _copy(v) for v in value]
    if kind is dict:
        return {k: v if type(v) in _ATOMS else _copy(v) for k, v in value.items()}
    if _is_model(kind):
        return _model(value, {k: v if type(v) in _ATOMS else _copy(v) for k, v in value.__dict__.items()}, kind)
    return deepcopy(value)
