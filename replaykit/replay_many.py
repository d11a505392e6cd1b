"""Replay many cassettes, in this process or several, each one on its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit import engine
from replaykit.divergence import ReplayReport
from replaykit.errors import EngineNotReady, ReplaykitError, UsageError
from replaykit.fleet import Fleet
from replaykit.replay import replay
from replaykit.store import reader


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


def run(files: list[Path], fleet: Fleet, jobs: int, watch: Any, level: str = "seat") -> list[Outcome]:
    """Replay every file; a file that cannot be read does not stop the others.

    Args:
        watch: Told when a cassette is done (`step(errors=bool)`).
        level: See `replay.replay`.
    """
    engine.load()
    if jobs > 1 and len(files) > 1:
        return _in_processes(files, fleet, jobs, watch, level)
    return [_watched(one(path, fleet, level), watch) for path in files]


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


def _in_processes(files: list[Path], fleet: Fleet, jobs: int, watch: Any, level: str) -> list[Outcome]:
    """Forked workers share the engine and its databases, which are already loaded; elsewhere each loads its own."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(min(jobs, len(files)), mp_context=context, initializer=_set_fleet, initargs=(fleet.to_dict(), level)) as pool:
        return [_watched(outcome, watch) for outcome in pool.map(_in_worker, files, chunksize=1)]


_fleet: Fleet | None = None
_level = "seat"


def _set_fleet(document: dict, level: str) -> None:
    global _fleet, _level
    from replaykit import fleet

    _fleet, _level = fleet.parse(document), level


def _in_worker(path: Path) -> Outcome:
    return one(path, _fleet, _level)
