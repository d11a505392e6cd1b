"""Named engines: replay under another interpreter, which has another tau2, with this very replaykit.

The other interpreter gets this package through a folder that holds nothing else, so that its own libraries and its own
tau2 are the ones it uses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.divergence import ReplayReport
from replaykit.errors import EngineNotReady, EvidenceError, InternalError, OfflineViolation, ReplaykitError, UsageError
from replaykit.replay_many import Outcome
from replaykit.store import engines_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROBE = "import sys, click, pydantic, httpx; print('%d.%d.%d' % sys.version_info[:3])"
_PROBE_S = 60.0
_OLDEST = (3, 11)
_ERRORS: dict[int, type[ReplaykitError]] = {2: UsageError, 4: OfflineViolation, 5: EvidenceError}
_DROPPED = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def add(name: str, python: Path, file: Path | None = None) -> str:
    """Give an interpreter a name, after trying it. Returns its Python version.

    Args:
        file: The file of engines; by default the user's.

    Raises:
        UsageError: the name cannot be used, or the interpreter cannot run replaykit.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name an engine: use letters, digits, '.', '_' and '-'")
    path = Path(os.path.abspath(python.expanduser()))  # not resolved: a virtual environment's link is its identity
    version = _probed(path)
    place = file or engines_file.locate()
    engines_file.write(place, engines_file.read(place) | {name: str(path)})
    return version


def remove(name: str, file: Path | None = None) -> None:
    """Forget a name.

    Raises:
        UsageError: there is no such engine.
    """
    place = file or engines_file.locate()
    engines = engines_file.read(place)
    _known(name, engines)
    engines_file.write(place, {key: python for key, python in engines.items() if key != name})


def named(file: Path | None = None) -> dict[str, str]:
    """All named interpreters."""
    return engines_file.read(file or engines_file.locate())


def replay(
    name: str, paths: Sequence[Path], fleet_path: Path, jobs: int, level: str, file: Path | None = None
) -> list[Outcome]:
    """Replay under a named interpreter.

    Args:
        paths: Cassettes and folders of cassettes.
        fleet_path: The fleet's file.

    Raises:
        UsageError: there is no such engine, or the replay there refused its input.
        EngineNotReady: the interpreter or its tau2 is not ready.
        InternalError: it gave no report.
    """
    python = _known(name, named(file))
    options = ["-j", str(jobs), "--level", level, "--fleet", str(fleet_path), "--json", "-"]
    done = _run(name, python, ["-m", "replaykit", "replay", *map(str, paths), *options])
    return outcomes(done, name)


def outcomes(done: subprocess.CompletedProcess, name: str) -> list[Outcome]:
    """What the other interpreter's report says.

    Raises:
        ReplaykitError: it wrote none, and said why.
    """
    try:
        document = canonical.decode(json.loads(done.stdout))
        return [_outcome(entry) for entry in document["cassettes"]]
    except (ValueError, KeyError, TypeError) as error:
        raise _failed(done, name) from error


def _outcome(entry: dict) -> Outcome:
    if entry["status"] == "error":
        return Outcome(entry["cassette"], None, entry["error"], entry["exit_code"])
    return Outcome(entry["cassette"], ReplayReport.from_dict(entry))


def _failed(done: subprocess.CompletedProcess, name: str) -> ReplaykitError:
    said = [line for line in done.stderr.splitlines() if line.strip()]
    sentence = f"engine {name}: {said[-1].removeprefix('replaykit: ') if said else f'it ended with {done.returncode}'}"
    if done.returncode == EngineNotReady.exit_code:
        return EngineNotReady(sentence)
    return _ERRORS.get(done.returncode, InternalError)(sentence)


def _known(name: str, engines: dict[str, str]) -> str:
    if name not in engines:
        there = ", ".join(engines) or "none yet"
        raise UsageError(
            f"there is no engine {name!r} ({there}): add it with 'replaykit engines add {name} --python PATH'"
        )
    return engines[name]


def _probed(python: Path) -> str:
    if not python.is_file():
        raise UsageError(f"{python} is not a Python interpreter: give the path of one, e.g. venv/bin/python")
    try:
        done = subprocess.run(
            [str(python), "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            env=_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{python} cannot be run: {error}") from error
    said = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
    if done.returncode:
        raise UsageError(f"{python} cannot run replaykit ({said}): install replaykit's dependencies there")
    version = done.stdout.strip()
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        raise UsageError(f"{python} is Python {version}, and replaykit needs {'.'.join(map(str, _OLDEST))} or later")
    return version


def _run(name: str, python: str, arguments: list[str]) -> subprocess.CompletedProcess:
    with _package_alone() as folder:
        environment = _environment() | {"PYTHONPATH": str(folder)}
        try:
            return subprocess.run([python, *arguments], capture_output=True, text=True, env=environment, check=False)
        except OSError as error:
            raise EngineNotReady(f"engine {name}: {python} cannot be run ({error.strerror}): add it again") from error


@contextmanager
def _package_alone() -> Iterator[Path]:
    """A folder whose only content is this package."""
    package = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix="replaykit-") as folder:
        (Path(folder) / package.name).symlink_to(package, target_is_directory=True)
        yield Path(folder)


def _environment() -> dict[str, Any]:
    kept = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    return kept | {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
