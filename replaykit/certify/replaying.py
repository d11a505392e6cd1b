"""C46: replays in other processes, each with another hash seed, time zone, locale, folder and concurrency.

Run as a module it is such a process: it reads a job on standard input and writes what every replay said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from replaykit.certify.subject import Subject
from replaykit.errors import ReplaykitError

ENVIRONMENTS = (
    {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "jobs": "1"},
    {"PYTHONHASHSEED": "271828", "TZ": "America/Adak", "LC_ALL": "C.UTF-8", "jobs": "2"},
)
_SPELT = "replaykit.certify.replaying"


def elsewhere(folder: Path, subject: Subject, fleet: dict, script: str | None) -> list[dict[str, dict]]:
    """Replay every cassette of a folder in each of `ENVIRONMENTS`.

    Args:
        fleet: The fleet as plain data.
        script: Name of a scripted engine, or None: tau2.

    Returns:
        For each environment, what each cassette's replay said, by file name.
    """
    job = {
        "reference": subject.reference,
        "options": dict(subject.options),
        "folder": str(folder),
        "fleet": fleet,
        "script": script,
    }
    running = [_start(job, environment) for environment in ENVIRONMENTS]
    return [_answer(process) for process in running]


def _start(job: dict, environment: dict[str, str]) -> subprocess.Popen:
    variables = os.environ | {k: v for k, v in environment.items() if k != "jobs"}
    variables["PYTHONPATH"] = os.pathsep.join(p or os.getcwd() for p in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", _SPELT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        cwd=tempfile.gettempdir(),
    )
    process.stdin.write(json.dumps(job | {"jobs": int(environment["jobs"])}).encode())  # type: ignore[union-attr]
    process.stdin.close()  # type: ignore[union-attr]
    process.stdin = None
    return process


def _answer(process: subprocess.Popen) -> dict[str, dict]:
    out, err = process.communicate(timeout=600)
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RuntimeError(f"a replaying process ended with {process.returncode}: {''.join(last)}")
    return json.loads(out)


def _said(path: Path, subject: Subject, engine: Any, fleet: Any) -> dict:
    began = time.monotonic()
    try:
        report = subject.layer.replay(subject.layer.read(path), engine, fleet, path.name)
    except ReplaykitError as error:
        return {"status": type(error).__name__, "why": str(error)}
    return {
        "status": report.status,
        "requests": report.requests,
        "termination": report.termination,
        "final_db_hash": report.final_db_hash,
        "first": report.divergences[0].sentence if report.divergences else None,
        "took_us": round((time.monotonic() - began) * 1e6),
    }


def _main() -> None:
    from replaykit import engine, fleet
    from replaykit.certify import known_panels, references

    job = json.load(sys.stdin)
    subject = references.subject(job["reference"], job["options"])
    runtime = known_panels.engine(subject) if job["script"] else engine.load()
    document = fleet.parse(job["fleet"])
    paths = sorted(Path(job["folder"]).glob("*.cassette.jsonl"))
    with ThreadPoolExecutor(job["jobs"]) as pool:
        said = pool.map(lambda path: _said(path, subject, runtime, document), paths)
        answers = {path.name: answer for path, answer in zip(paths, said, strict=True)}
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    _main()
