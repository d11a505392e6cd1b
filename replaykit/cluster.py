"""Work on the workers of a Dask scheduler, with the same results as here.

A piece of work is named by a panel or a cassette's digest. Workers must have the same engine and the same fleet as this
process; any other is refused, and told apart in a sentence. Results come as they finish. A worker that is lost costs
its unfinished pieces only, which the scheduler gives to another; workers that come later are let in.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from replaykit import engine
from replaykit._version import __version__
from replaykit.errors import ClusterUnavailable, EngineNotReady, Incomplete, ReplaykitError, UsageError
from replaykit.fleet import Fleet
from replaykit.store import fleet_file

CONNECT_S = 15.0
GRACE_S = 60.0
_LOOK_S = 1.0
_AHEAD = 8  # pieces in flight for each thread of the workers: enough to keep them busy, few enough to hold in memory


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work.

    Attributes:
        name: Panel id or cassette digest; what the scheduler's own pages show.
        arguments: What the function is called with; plain values.
    """

    name: str
    arguments: tuple


@dataclass(frozen=True, slots=True)
class Terms:
    """What a worker must agree on.

    Attributes:
        engine: `EngineIdentity.digest`, or None where no episode is run.
        fleet: `Fleet.digest`.
    """

    version: str
    engine: str | None
    fleet: str

    @classmethod
    def of(cls, fleet_digest: str, with_engine: bool = True) -> Terms:
        """This process's terms.

        Raises:
            EngineNotReady: there is no engine.
        """
        return cls(__version__, engine.load().identity.digest if with_engine else None, fleet_digest)

    def parting(self, other: Terms) -> str | None:
        """What differs, in words, or None."""
        parts = [("version of replaykit", "version"), ("engine", "engine"), ("fleet", "fleet")]
        names = [word for word, name in parts if getattr(self, name) != getattr(other, name)]
        return f"another {' and another '.join(names)}" if names else None


@dataclass(frozen=True, slots=True)
class Failed:
    """A piece without a result.

    Attributes:
        sentence: Why.
        exit_code: What its kind of error ends a command with.
    """

    sentence: str
    exit_code: int


def each(
    address: str,
    function: Callable[..., Any],
    pieces: Iterable[Piece],
    terms: Terms,
    tell: Callable[[str], None] = lambda sentence: None,
    at_end: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Position and result of every piece, as they finish; the result is `Failed` where there is none.

    Args:
        address: The scheduler's, such as ``tcp://127.0.0.1:8786``.
        function: Called on a worker with a piece's arguments; importable there by name.
        tell: Given a sentence for every worker that is refused.
        at_end: Called on every worker when all is done; what it raises is raised here.

    Raises:
        UsageError: the extra ``cluster`` is not installed.
        ClusterUnavailable: no scheduler answers, or it is lost.
        EngineNotReady: every worker was refused, or there is none.
        Incomplete: all workers were lost and none came back.
    """
    with _connected(address) as client:
        run = _Run(client, function, pieces, terms, tell)
        yield from run.results()
        if at_end is not None:
            run.close(at_end)


def meet(address: str, terms: Terms) -> int:
    """How many workers there are that may be given work; see `each`.

    Raises:
        UsageError, ClusterUnavailable, EngineNotReady: as `each` does.
    """
    with _connected(address) as client:
        return _Run(client, len, (), terms, lambda sentence: None).meet()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--cluster needs Dask: pip install 'replaykit[cluster]'") from error
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterUnavailable(
            f"no Dask scheduler answers at {address}: start one with 'dask scheduler', or correct the address"
        ) from error
    try:
        yield client
    except (OSError, TimeoutError) as error:
        raise ClusterUnavailable(f"the Dask scheduler at {address} was lost: {type(error).__name__}") from error
    finally:
        client.close(timeout=CONNECT_S)


class _Run:
    """One use of a cluster."""

    def __init__(
        self,
        client: Any,
        function: Callable[..., Any],
        pieces: Iterable[Piece],
        terms: Terms,
        tell: Callable[[str], None],
    ) -> None:
        self._client, self._function, self._terms, self._tell = client, function, terms, tell
        self._waiting = enumerate(pieces)
        self._flying: dict[Any, tuple[int, Piece]] = {}
        self._admitted: dict[str, int] = {}  # address -> threads
        self._refused: set[str] = set()
        self._id = uuid.uuid4().hex[:8]
        self._tries = itertools.count()
        self._seen_s = time.monotonic()

    def meet(self) -> int:
        """Let the workers in that are there, and count them.

        Raises:
            EngineNotReady: none can be used.
        """
        self._look_around()
        if not self._admitted:
            raise EngineNotReady(
                f"no worker of the cluster can be used: {len(self._refused)} refused; start one with 'dask worker'"
            )
        return len(self._admitted)

    def results(self) -> Iterator[tuple[int, Any]]:
        """See `each`."""
        self.meet()
        self._top_up()
        try:
            while self._flying:
                for future in self._finished():
                    position, piece = self._flying.pop(future)
                    result = self._result(future, position, piece)
                    if result is not _AGAIN:
                        yield position, result
                self._top_up()
        finally:
            self._client.cancel(list(self._flying), force=True)

    def close(self, at_end: Callable[[], None]) -> None:
        """Call a function on every worker that is still there."""
        there = self._client.nthreads()
        self._client.run(at_end, workers=[a for a in self._admitted if a in there])

    def _top_up(self) -> None:
        room = max(_AHEAD * sum(self._admitted.values()), 1) - len(self._flying)
        for position, piece in itertools.islice(self._waiting, max(0, room)):
            self._send(position, piece)

    def _send(self, position: int, piece: Piece) -> None:
        future = self._client.submit(
            _work,
            self._function,
            self._terms,
            piece.arguments,
            key=f"replaykit-{piece.name}-{self._id}-{next(self._tries)}",
            workers=list(self._admitted),
            allow_other_workers=False,
            pure=False,
        )
        self._flying[future] = position, piece

    def _finished(self) -> list[Any]:
        from distributed import wait

        try:
            with self._client.as_current():
                return list(wait(list(self._flying), timeout=_LOOK_S, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            self._look_around()
            return []

    def _result(self, future: Any, position: int, piece: Piece) -> Any:
        if future.status == "finished":
            return future.result()
        error = future.exception()
        if isinstance(error, WrongWorker):  # it came under an address that was admitted before
            self._admitted.clear()
            self._look_around()
            self._send(position, piece)
            return _AGAIN
        if isinstance(error, ReplaykitError):
            return Failed(str(error), error.exit_code)
        return Failed(f"its worker was lost or failed: {type(error).__name__}: {str(error)[:300]}", 6)

    def _look_around(self) -> None:
        """Let new workers in, forget lost ones, and give up when there has been none for a while."""
        there = self._client.nthreads()
        had_some = bool(self._admitted)
        self._admitted = {a: n for a, n in self._admitted.items() if a in there}
        strangers = [a for a in there if a not in self._admitted and a not in self._refused]
        for address, answer in self._asked(strangers).items():
            self._meet(address, there[address], answer)
        if self._admitted:
            self._seen_s = time.monotonic()
            if not had_some:
                self._send_again()
        elif self._flying and time.monotonic() - self._seen_s > GRACE_S:
            raise Incomplete(
                f"all workers of the cluster were lost, with {len(self._flying)} pieces of work unfinished"
            )

    def _asked(self, strangers: list[str]) -> dict[str, Any]:
        return (
            self._client.run(own_terms, self._terms.engine is not None, workers=strangers, on_error="return")
            if strangers
            else {}
        )

    def _meet(self, address: str, threads: int, answer: Any) -> None:
        parting = self._terms.parting(answer) if isinstance(answer, Terms) else f"no usable replaykit ({answer})"
        if parting is None:
            self._admitted[address] = threads
        else:
            self._refused.add(address)
            self._tell(f"the worker {address} is refused, since it has {parting}")

    def _send_again(self) -> None:
        """Pieces that may only go where nobody is any more."""
        stranded, self._flying = dict(self._flying), {}
        for future, (position, piece) in stranded.items():
            if future.status == "pending":
                self._client.cancel([future], force=True)
                self._send(position, piece)
            else:
                self._flying[future] = position, piece


_AGAIN = object()


class WrongWorker(Exception):
    """The worker has other terms than the piece of work."""


def own_terms(with_engine: bool) -> Terms:
    """A worker's own terms.

    Raises:
        ReplaykitError: it has no engine or no fleet.
    """
    return _own_terms(with_engine)


@cache
def _own_terms(with_engine: bool) -> Terms:
    return Terms.of(own_fleet().digest, with_engine)


@cache
def own_fleet() -> Fleet:
    """A worker's own fleet, read once.

    Raises:
        UsageError: there is none.
    """
    return fleet_file.read()


def _work(function: Callable[..., Any], terms: Terms, arguments: tuple) -> Any:
    """One piece of work, on a worker."""
    parting = terms.parting(own_terms(terms.engine is not None))
    if parting is not None:
        raise WrongWorker(parting)
    return function(*arguments)
