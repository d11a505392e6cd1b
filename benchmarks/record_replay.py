"""Record all 164 panels with the reference controls over loopback HTTP, replay them, and replay them elsewhere.

    python benchmarks/record_replay.py

The second replay runs in another process with another hash seed, time zone and locale; its report has to be the same
bytes. Seconds are of one run on one machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ELSEWHERE = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}


def measure() -> list[dict[str, Any]]:
    """One row a command, and one that compares the two reports."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [_run("record", "all", "--controls", "reference", "-j", "2", "--out", str(place / "c"), cwd=place)]
        for name, environment in (("here", {"PYTHONHASHSEED": "1", "TZ": "UTC"}), ("elsewhere", ELSEWHERE)):
            rows.append(_run("replay", "c", "--json", f"{name}.json", cwd=place, **environment))
        here, elsewhere = ((place / f"{n}.json").read_bytes() for n in ("here", "elsewhere"))
        counts = json.loads(here)["counts"]
        return [*rows, {"claim": "replay is deterministic", "what": "reports", "counts": counts, "byte-identical": here == elsewhere}]


def _run(*arguments: str, cwd: Path, **environment: str) -> dict[str, Any]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "replaykit", *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
    return {"claim": "record and replay", "what": arguments[0], "seconds": round(seconds, 2), "exit": done.returncode, "said": last}


if __name__ == "__main__":
    for row in measure():
        print(" ".join(f"{k}: {v}" for k, v in row.items() if k != "claim"))
