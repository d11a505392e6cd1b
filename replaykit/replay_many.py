"""Replay many cassettes, in this process or several, each one on its own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from replaykit import cluster, engine, processes
from replaykit.divergence import ReplayReport
from replaykit.engine import pins
from replaykit.errors import EngineNotReady, EvidenceError, ReplaykitError, UsageError
from replaykit.fleet import Fleet
from replaykit.replay import replay
from replaykit.store import reader, remote, scan


@dataclass(frozen=True, slots=True)
class Outcome:
    """One cassette: a report, or why there is none.

    Attributes:
        error: The sentence, or None.
        exit_code: What the error's kind ends a command with.
    """

    cassette: str
    report: ReplayReport | None
    error: str | None = None
    exit_code: int = 0

    def to_dict(self) -> dict:
        """Plain data."""
        if self.report is not None:
            return self.report.to_dict()
        return {"cassette": self.cassette, "status": "error", "error": self.error, "exit_code": self.exit_code}


def find(paths: Iterable[Path]) -> list[Path]:
    """Cassettes below the paths.

    Raises:
        UsageError: a path does not exist, or there is none below them.
    """
    files = reader.find(paths)
    if not files:
        raise UsageError(f"there is no cassette (*.cassette.jsonl) below {', '.join(map(str, paths))}")
    return files


def run(
    files: Sequence[Any], fleet: Fleet, jobs: int, watch: Any, level: str = "seat", verify_hash: bool = False
) -> list[Outcome]:
    """Replay every file; a file that cannot be read does not stop the others.

    Args:
        watch: Told when a cassette is done (`step(errors=bool)`).
        level: See `replay.replay`.
        verify_hash: Compute tau2's own hash beside every short cut.

    Raises:
        InternalError: a tool wrote into a database that episodes share, so the run is void.
    """
    with seldom_collecting():
        runtime = engine.load()
        if verify_hash:
            runtime.verify_hashes()
        if jobs > 1 and len(files) > 1:
            return _in_processes(files, fleet, jobs, watch, level)
        outcomes = [_watched(one(path, fleet, level), watch) for path in files]
        runtime.check_bases()
    return outcomes


def run_on(
    address: str,
    files: Sequence[Any],
    fleet: Fleet,
    watch: Any,
    level: str = "seat",
    verify_hash: bool = False,
    tell: Callable[[str], None] = print,
) -> list[Outcome]:
    """Replay every file on a cluster (see `cluster.each`); workers read the files themselves, by path or URL.

    Args:
        tell: Given a sentence for every worker that is refused.

    Raises:
        UsageError, ClusterUnavailable, EngineNotReady, Incomplete: as `cluster.each` does.
    """
    terms = cluster.Terms.of(fleet.digest)
    outcomes: dict[int, Outcome] = {}
    places: list[int] = []
    pieces = _pieces(files, level, verify_hash, outcomes, places, watch)
    for sent, result in cluster.each(address, replay_there, pieces, terms, tell, _check_bases):
        position = places[sent]
        outcomes[position] = _watched(_here(result, str(files[position])), watch)
    return [outcomes[position] for position in range(len(files))]


def _pieces(
    files: Sequence[Any], level: str, verify_hash: bool, outcomes: dict[int, Outcome], places: list[int], watch: Any
) -> Iterator[cluster.Piece]:
    """What to send, as it is asked for; a file whose ends cannot be read here has its outcome at once."""
    for position, path in enumerate(files):
        try:
            footer = scan.scan(path).footer
        except ReplaykitError as error:
            outcomes[position] = _watched(Outcome(str(path), None, str(error), error.exit_code), watch)
            continue
        places.append(position)
        digest = footer["digest"] if footer else None
        yield cluster.Piece(digest or "interrupted", (remote.url_of(path), digest, level, verify_hash))


def replay_there(url: str, digest: str | None, level: str, verify_hash: bool) -> Outcome:
    """Replay one cassette on a worker."""
    if verify_hash:
        engine.load().verify_hashes()
    with seldom_collecting():
        outcome = one(remote.located(url), cluster.own_fleet(), level)
    if digest is not None and outcome.report is not None and outcome.report.digest != digest:
        return Outcome(url, None, f"{url}: another file is there on the worker than here", EvidenceError.exit_code)
    return outcome


def _here(result: Any, name: str) -> Outcome:
    """A worker's result under the name the file has here."""
    if isinstance(result, cluster.Failed):
        return Outcome(name, None, f"{name}: {result.sentence}", result.exit_code)
    report = result.report
    return replace(result, cassette=name, report=report and replace(report, cassette=name))


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Replay with the cyclic collector called seldom: it would walk the databases again and again.

    Episodes leave little for it, since what they share is made once a process.
    """
    before = gc.get_threshold()
    _collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _collect_seldom() -> None:
    gc.set_threshold(100_000, 50, 100)


def one(path: Path, fleet: Fleet, level: str = "seat") -> Outcome:
    """Replay one file."""
    name = str(path)
    try:
        return Outcome(name, replay(reader.read(path), engine.load(), fleet, name, level))
    except EngineNotReady:
        raise
    except ReplaykitError as error:
        return Outcome(name, None, str(error), error.exit_code)


def exit_code(outcomes: list[Outcome]) -> int:
    """The worst of all: damage, then a socket, wrong use, divergence, incompleteness."""
    codes = {o.exit_code for o in outcomes if o.report is None}
    codes |= {{"equal": 0, "diverged": 1, "incomplete": 3}[o.report.status] for o in outcomes if o.report is not None}
    return next((code for code in (6, 5, 4, 2, 1, 3) if code in codes), 0)


def _watched(outcome: Outcome, watch: Any) -> Outcome:
    watch.step(errors=outcome.report is None or outcome.report.status == "diverged")
    return outcome


def _in_processes(files: Sequence[Any], fleet: Fleet, jobs: int, watch: Any, level: str) -> list[Outcome]:
    """Workers share the engine and its databases, which are loaded before they are forked."""
    engine.load().prepare(_domains(files))
    job = processes.Job(partial(one, fleet=fleet, level=level), _collect_seldom, _check_bases)
    outcomes: dict[int, Outcome] = {}
    try:
        for position, result in processes.each(job, files, jobs):
            name = str(files[position])
            outcome = result if isinstance(result, Outcome) else Outcome(name, None, f"{name}: {result.sentence}", 6)
            outcomes[position] = _watched(outcome, watch)
    finally:
        gc.unfreeze()
    return [outcomes[position] for position in range(len(files))]


def _check_bases() -> None:
    engine.load().check_bases()


def _domains(files: Sequence[Any]) -> list[str]:
    """Domains that the cassettes play in; looks at their headers until all are known."""
    found: set[str] = set()
    for path in files:
        if len(found) == len(pins.DOMAINS):
            break
        try:
            found.add(scan.scan(path).panel.partition("/")[0])
        except ReplaykitError:
            continue  # said where it is read
    return [name for name in pins.DOMAINS if name in found]
