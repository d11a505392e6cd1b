"""Work on many items in worker processes that share what this process has loaded.

Workers are forked where that is safe, so an engine and its databases that are loaded here are theirs without a copy.
They are not forked beside running threads, whose locks a fork would freeze. Items are handed out one by one, so a slow
one holds up nobody. A worker that is lost costs only the item it had, which another worker gets once more.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from replaykit.errors import InternalError, ReplaykitError

_TRIES = 2


class Lost(NamedTuple):
    """The result of an item over which two workers were lost."""

    sentence: str


class Job(NamedTuple):
    """What workers do. Results are pickled; so are the job and its items where workers cannot be forked.

    Attributes:
        work: Makes an item's result.
        begin, end: Called once in each worker, before its first and after its last item.
    """

    work: Callable[[Any], Any]
    begin: Callable[[], None]
    end: Callable[[], None]


def each(job: Job, items: Sequence[Any], count: int) -> Iterator[tuple[int, Any]]:
    """Position and result of every item, as they come about.

    Args:
        count: How many workers.

    Raises:
        ReplaykitError: what a part of the job raised.
    """
    shift = _Shift(job, items)
    try:
        for _ in range(min(count, len(items))):
            shift.call_in()
        yield from shift.results()
    finally:
        shift.send_home()


class _Shift:
    """The workers of one job, by their pipes."""

    def __init__(self, job: Job, items: Sequence[Any]) -> None:
        self._job, self._items = job, items
        self._waiting = deque(range(len(items)))
        self._losses: Counter[int] = Counter()
        self._workers: dict[Connection, Any] = {}
        self._held: dict[Connection, int] = {}
        self._beginning: set[Connection] = set()
        self._ending: set[Connection] = set()
        self._false_starts = 0

    def call_in(self) -> None:
        """Start one more worker."""
        context = multiprocessing.get_context(_method())  # threads may have been started since the last one
        ours, theirs = context.Pipe()
        copied = (*self._workers, ours) if context.get_start_method() == "fork" else ()
        process = context.Process(target=_serve, args=(theirs, self._job, copied), daemon=True)
        process.start()
        theirs.close()
        self._workers[ours] = process
        self._beginning.add(ours)

    def results(self) -> Iterator[tuple[int, Any]]:
        """See `each`."""
        while self._workers:
            for pipe in wait(list(self._workers)):
                try:
                    word, value = pipe.recv()  # type: ignore[union-attr]
                except (EOFError, ConnectionResetError):
                    yield from self._lost(pipe)
                else:
                    yield from self._said(pipe, word, value)

    def send_home(self) -> None:
        """End the workers that still run."""
        for pipe, process in self._workers.items():
            pipe.close()
            process.terminate()
            process.join()

    def _said(self, pipe: Any, word: str, value: Any) -> Iterator[tuple[int, Any]]:
        if word == "raised":
            raise value
        if word == "done":
            yield self._held.pop(pipe), value
        self._beginning.discard(pipe)
        self._false_starts = 0
        if word == "ended":
            self._dismiss(pipe)
        elif self._waiting:
            self._held[pipe] = position = self._waiting.popleft()
            with suppress(ConnectionError):  # lost meanwhile: its pipe says so at the next look
                pipe.send((self._items[position],))
        else:
            self._ending.add(pipe)
            with suppress(ConnectionError):
                pipe.send(None)

    def _lost(self, pipe: Any) -> Iterator[tuple[int, Any]]:
        self._dismiss(pipe)
        if pipe in self._ending:
            raise InternalError("a worker process was lost in its last check, so what it did is not proven: run again")
        if pipe in self._beginning:
            self._start_again()
            return
        position = self._held.pop(pipe)
        self._losses[position] += 1
        if self._losses[position] < _TRIES:
            self._waiting.append(position)
        else:
            yield position, Lost("the worker process was lost over it twice: killed, or out of memory")
        if self._waiting:
            self.call_in()

    def _start_again(self) -> None:
        self._false_starts += 1
        if self._false_starts >= _TRIES:
            raise InternalError("worker processes are lost before they begin: killed, or out of memory; use -j 1")
        if self._waiting:
            self.call_in()

    def _dismiss(self, pipe: Any) -> None:
        self._workers.pop(pipe).join()
        pipe.close()


def _method() -> str:
    can_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return "fork" if can_fork else "spawn"


def _serve(pipe: Connection, job: Job, copied: Sequence[Connection]) -> None:
    """A worker's life.

    Args:
        copied: The parent's ends of pipes that a fork copies. Open here, they would hide that the parent is gone.
    """
    for other in copied:
        other.close()
    with suppress(ConnectionError, KeyboardInterrupt):  # the parent has gone, or is going
        _work(pipe, job)


def _work(pipe: Connection, job: Job) -> None:
    try:
        job.begin()
        pipe.send(("ready", None))
        while (item := pipe.recv()) is not None:
            pipe.send(("done", job.work(item[0])))
        job.end()
        pipe.send(("ended", None))
    except ReplaykitError as error:
        pipe.send(("raised", error if type(error).__init__ is Exception.__init__ else _same_exit(error)))
    except Exception as error:
        pipe.send(("raised", InternalError(f"a worker process failed: {type(error).__name__}: {error}")))


def _same_exit(error: ReplaykitError) -> ReplaykitError:
    """The error without what may not survive the way to another process."""
    plain = ReplaykitError(str(error))
    plain.exit_code = error.exit_code
    return plain
