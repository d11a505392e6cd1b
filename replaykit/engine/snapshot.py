"""A database's base state: parsed once, hashed by row, and given out as copy-on-write views.

tau2 hashes a database by dumping it whole and hashing the JSON text with sorted keys. That text is kept here once,
with the place of every row in it and hash states along the way. The hash of a view is then the base's text with the
touched rows put in: a few rows are serialised instead of thousands, and the result is the same to the byte. Rows
count as changed only if their text differs: 2 and 2.0 are equal to Python and different in JSON.

Whatever does not look like a view of this base (a table replaced, a row of an undeclared class, a key that is no
string) has no short cut; the caller falls back to tau2's own hash.
"""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_left
from collections import OrderedDict
from typing import Any, NamedTuple

from replaykit.engine.rows import GuardedRowView, RowView, row_copier

CHECKPOINT_BYTES = 64 * 1024
MEMO_SIZE = 4096
row_text = json.JSONEncoder(sort_keys=True, default=str).encode  # tau2's own choice of options


class NotAView(Exception):
    """The database cannot be compared row by row with this base."""


class Change(NamedTuple):
    """A row whose text differs from the base's; None: there is no such row."""

    table: str
    key: str
    text: str | None


class _Table:
    """One table's place in the base text.

    Attributes:
        rows: The base's own rows by key. Never handed out for writing.
        keys: Sorted, as in the text.
        spans: Key -> (start, end) of ``"key": {...}`` in the text.
        end: Where the closing brace stands.
    """

    def __init__(self, rows: dict, row_class: type) -> None:
        self.rows, self.row_class = rows, row_class
        self.keys = sorted(rows)
        self.spans: dict[str, tuple[int, int]] = {}
        self.start = self.end = 0


class Snapshot:
    """The base of one domain.

    Args:
        database: A freshly parsed database; it belongs to the snapshot from now on.
        shared_iteration: Let views iterate over the base's own rows (see `rows`).
    """

    def __init__(self, database: Any, shared_iteration: bool) -> None:
        self.database = database
        self._class = type(database)
        self._view_class = RowView if shared_iteration else GuardedRowView
        self._copy_row = row_copier(self._view_class)
        self._tables = {name: _Table(rows, _row_class(rows)) for name, rows in sorted(database.__dict__.items())}
        self._text = self._write_text()
        self._checkpoints = _checkpoints(self._text)
        self._memo = _Memo()
        self.hash = hashlib.sha256(self._text).hexdigest()

    def view(self) -> Any:
        """A database of tau2's own class that may be changed."""
        view = self._view_class
        tables = {name: view(self._tables[name].rows, self._copy_row) for name in self.database.__dict__}
        return self._class.model_construct(**tables)

    def hash_of(self, database: Any) -> str:
        """tau2's hash of a view.

        Raises:
            NotAView: it is none, or has become something else.
        """
        changes = self.changes(database)
        return self._memo.get(changes, self._hash_with) if changes else self.hash

    def changes(self, database: Any) -> tuple[Change, ...]:
        """Rows of a view whose text differs from the base's, by table and key.

        Raises:
            NotAView: see `hash_of`.
        """
        fields = database.__dict__ if type(database) is self._class else {}
        if fields.keys() != self._tables.keys() or database.__pydantic_extra__:
            raise NotAView
        return tuple(c for name, table in self._tables.items() for c in self._table_changes(name, table, fields[name]))

    def row(self, table: str, key: str) -> dict | None:
        """A base row as plain data, or None."""
        row = self._tables[table].rows.get(key)
        return None if row is None else row.model_dump()

    def forget(self) -> None:
        """Forget the hashes of states seen so far."""
        self._memo = _Memo()

    def _table_changes(self, name: str, table: _Table, view: Any) -> list[Change]:
        if type(view) is not self._view_class or view.base is not table.rows:
            raise NotAView
        changes, added = [], 0
        for key in view.owned:
            text = self._row_text(table, key, dict.__getitem__(view, key))
            span = table.spans.get(key)
            added += span is None
            if span is None or text.encode("ascii") != self._text[span[0] : span[1]]:
                changes.append(Change(name, key, text))
        if len(view) - added < len(table.rows):
            changes += [Change(name, k, None) for k in table.keys if k not in view]
        return sorted(changes)

    def _row_text(self, table: _Table, key: Any, row: Any) -> str:
        if type(key) is not str or type(row) is not table.row_class:
            raise NotAView
        return f"{row_text(key)}: {row_text(row.model_dump(warnings=False))}"

    def _write_text(self) -> bytes:
        """The text tau2 hashes; notes where each row stands."""
        parts, place = [], 0
        for index, (name, table) in enumerate(self._tables.items()):
            head = f"{', ' if index else '{'}{row_text(name)}: {{"
            table.start = place = place + len(head)
            parts.append(head)
            texts = [self._row_text(table, key, table.rows[key]) for key in table.keys]
            for key, text in zip(table.keys, texts, strict=True):
                table.spans[key] = (place, place + len(text))
                place += len(text) + 2
            table.end = place = place - 2 if texts else place
            parts += [", ".join(texts), "}"]
            place += 1
        return ("".join(parts) + "}").encode("ascii")

    def _hash_with(self, changes: tuple[Change, ...]) -> str:
        """Hash of the base text with changed rows put in."""
        edits = self._edits(changes)
        place, state = self._checkpoints[edits[0][0] // CHECKPOINT_BYTES]
        state, text = state.copy(), memoryview(self._text)
        for start, end, replacement in edits:
            state.update(text[place:start])
            state.update(replacement)
            place = end
        state.update(text[place:])
        return state.hexdigest()

    def _edits(self, changes: tuple[Change, ...]) -> list[tuple[int, int, bytes]]:
        """``(start, end, replacement)`` in the base text, in order."""
        edits = []
        for name, table in self._tables.items():
            texts = {c.key: c.text for c in changes if c.table == name}
            if texts.keys() <= table.spans.keys() and None not in texts.values():
                edits += [(*table.spans[k], t.encode("ascii")) for k, t in texts.items()]
            else:
                edits.append(self._tail(table, texts))
        return edits

    def _tail(self, table: _Table, texts: dict[str, str | None]) -> tuple[int, int, bytes]:
        """One edit from the first row that was changed, added or removed to the end of its table."""
        first = bisect_left(table.keys, min(texts))
        kept = table.keys[first:]
        rows = {k: self._text[slice(*table.spans[k])] for k in kept} | {
            k: t and t.encode("ascii") for k, t in texts.items()
        }
        body = b", ".join(rows[k] for k in sorted(rows) if rows[k] is not None)
        start = table.spans[table.keys[first - 1]][1] if first else table.start
        return start, table.end, b", " + body if first and body else body


class _Memo:
    """Hashes of states already seen, by a digest of their changes; the oldest are forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, changes: tuple[Change, ...], compute: Any) -> str:
        key = hashlib.sha256(json.dumps(changes).encode("ascii")).digest()
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = compute(changes)
            with self._lock:
                self._known[key] = known
                if len(self._known) > MEMO_SIZE:
                    self._known.popitem(last=False)
        return known


def _row_class(rows: dict) -> type:
    """The one class of a table's rows."""
    classes = {type(row) for row in rows.values()}
    return classes.pop() if len(classes) == 1 else type(None)


def _checkpoints(text: bytes) -> list[tuple[int, Any]]:
    """``(bytes hashed, hash state)`` every `CHECKPOINT_BYTES`."""
    state, result = hashlib.sha256(), []
    for place in range(0, len(text), CHECKPOINT_BYTES):
        result.append((place, state.copy()))
        state.update(text[place : place + CHECKPOINT_BYTES])
    return result
