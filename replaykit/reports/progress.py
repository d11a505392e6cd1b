"""Progress on standard error: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

_PATIENCE_S = 2.0


class Progress:
    """Counts done work, requests and errors; draws a bar after two seconds when standard error is a terminal.

    Safe to step from several threads.

    Args:
        unit: What is counted, e.g. ``episodes``.
        total: How many there are.
    """

    def __init__(self, unit: str, total: int) -> None:
        self._unit, self._total = unit, total
        self._lock = threading.Lock()
        self._bar: Any = None
        self._task: Any = None
        self._due_s: float | None = None  # drawn from then on; its thread must not run before workers are forked
        self.done = self.requests = self.errors = 0

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
            self._due_s = time.monotonic() + _PATIENCE_S
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, errors: bool = False) -> None:
        """One more is done."""
        with self._lock:
            self.done += 1
            self.errors += errors
            self._draw()

    def request(self) -> None:
        """One more request was asked."""
        with self._lock:
            self.requests += 1
            self._draw()

    def _draw(self) -> None:
        if self._bar is None and self._due_s is not None and time.monotonic() >= self._due_s:
            self._bar = self._new_bar()
            self._bar.start()
            self._task = self._bar.add_task(self._unit, total=self._total, requests=0, errors=0)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, requests=self.requests, errors=self.errors)

    def _new_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[requests]} requests, {task.fields[errors]} errors"),
            TimeElapsedColumn(),
        ]
        return Bar(*columns, console=Console(stderr=True), transient=True)
