"""Domain databases: parsed once a process, given out as views that an episode may change."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from replaykit.engine.snapshot import NotAView, Snapshot, row_text
from replaykit.errors import InternalError

# Table -> key -> (row before, row after); None: there was, or is, no such row.
Touched = dict[str, dict[str, tuple[dict | None, dict | None]]]
VERIFY_VARIABLE = "REPLAYKIT_VERIFY_HASH"


class Databases:
    """The untouched database of one domain. Safe to use from several threads; each view belongs to one episode.

    Args:
        database_class: tau2's own database model.
        text: The verified database file.
        shared_iteration: Views may iterate over the base's own rows; only for tools that `iteration` knows.

    Attributes:
        verify: Compute tau2's own hash beside every short cut and raise on a difference.
    """

    def __init__(self, database_class: Any, text: bytes, shared_iteration: bool = False) -> None:
        self._class, self._text = database_class, text
        self._shared_iteration = shared_iteration
        self._lock = threading.Lock()
        self.verify = os.environ.get(VERIFY_VARIABLE, "") not in ("", "0")

    @property
    def base(self) -> Snapshot:
        """The base, parsed on first use."""
        with self._lock:
            return self._base

    @cached_property
    def _base(self) -> Snapshot:
        with _collector_paused():
            return Snapshot(self._class.model_validate(json.loads(self._text)), self._shared_iteration)

    def prepare(self) -> None:
        """Parse the base now."""
        _ = self.base

    def view(self) -> Any:
        """A database an episode may change; tau2's own class."""
        return self.base.view()

    def hash(self, database: Any) -> str:
        """tau2's hash of a database, by the short cut where it is a view.

        Raises:
            InternalError: with `verify`, if tau2's own hash is another.
        """
        try:
            fast = self.base.hash_of(database)
        except NotAView:
            return database.get_hash()
        if self.verify:
            _compare(fast, database.get_hash(), "a database view hashes")
        return fast

    def check_base(self) -> None:
        """Hash the base with tau2's own function: the proof that no tool wrote through an iterated row.

        Costs 60 to 160 ms; nothing if the base was never needed.

        Raises:
            InternalError: the base has changed, so results since it was loaded are void.
        """
        if "_base" in self.__dict__:
            _compare(
                self._base.hash, self._base.database.get_hash(), "the base of all database views was changed: it hashed"
            )

    def touched(self, database: Any) -> Touched:
        """Rows whose bytes differ from the base, as plain data (see `Touched`)."""
        base = self.base
        try:
            changes = base.changes(database)
        except NotAView:
            return _differing(base.database.model_dump(), database.model_dump(warnings=False))
        result: Touched = {}
        for table, key, text in changes:
            after = None if text is None else getattr(database, table)[key].model_dump(warnings=False)
            result.setdefault(table, {})[key] = (base.row(table, key), after)
        return result

    def hashing(self, toolkit: Any) -> Any:
        """The toolkit class with the short cut for its database hash; names in its error texts stay tau2's.

        Its tool names are looked up once; tau2 collects them anew for every call.
        """
        databases, tool_names = self, tuple(toolkit(None).tools)

        def get_db_hash(toolkit: Any) -> str:
            return databases.hash(toolkit.db)

        names = {name: getattr(toolkit, name) for name in ("__module__", "__qualname__", "__doc__")}
        names["get_db_hash"] = get_db_hash
        names["tools"] = property(lambda toolkit: {name: getattr(toolkit, name) for name in tool_names})
        return type(toolkit)(toolkit.__name__, (toolkit,), names)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the cyclic collector, which would walk the growing base again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _differing(before: dict, after: dict) -> Touched:
    """The slow way, for a database that is no view: whole dumps compared row by row."""
    result: Touched = {}
    for table in sorted(before.keys() | after.keys()):
        old, new = before.get(table, {}), after.get(table, {})
        rows = {k: (old.get(k), new.get(k)) for k in (*old, *(k for k in new if k not in old))}
        rows = {k: pair for k, pair in rows.items() if row_text(pair[0]) != row_text(pair[1])}
        if rows:
            result[table] = rows
    return result


def _compare(ours: str, native: str, what: str) -> None:
    if ours != native:
        raise InternalError(
            f"{what} to {ours} where tau2's own function gives {native}: results of this run cannot be trusted"
        )
