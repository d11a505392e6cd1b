"""Starting up: help beside click alone, one cold replay beside importing tau2 alone.

    python benchmarks/start_up.py [--json]

Wall seconds, the median of three runs each, interleaved, with Python's bytecode cached as it is for users.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _episodes

from replaykit.store import fleet_file

ROUNDS = 3
NATIVE = """import contextlib, io, os
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
with contextlib.redirect_stdout(io.StringIO()):
    from tau2 import run"""


def measure() -> list[dict[str, Any]]:
    """All rows."""
    with tempfile.TemporaryDirectory() as place:
        path = str(_episodes.recorded(Path(place), fleet_file.read(), "airline/7"))
        commands = {
            "click": ["-c", "import click"],
            "--help": ["-m", "replaykit", "--help"],
            "tau2": ["-c", NATIVE],
            "replay ONE": ["-m", "replaykit", "replay", path],
            "show ONE": ["-m", "replaykit", "show", path],
        }
        seconds = _interleaved(commands, Path(place, "bytecode"))
    pairs = (("--help", "click"), ("replay ONE", "tau2"), ("show ONE", "tau2"))
    return [_row(ours, peer, seconds) for ours, peer in pairs]


def _interleaved(commands: dict[str, list[str]], bytecode: Path) -> dict[str, float | None]:
    """Median seconds of each command; the first round, which writes the bytecode, does not count. None: it fails."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    rounds = [{name: _seconds(command, environment) for name, command in commands.items()} for _ in range(ROUNDS + 1)][
        1:
    ]
    return {
        name: None if None in (times := [r[name] for r in rounds]) else statistics.median(times) for name in commands
    }


def _row(ours: str, peer: str, seconds: dict[str, float | None]) -> dict[str, Any]:
    what = f"replaykit {ours}, against importing {peer} alone"
    if seconds[ours] is None or seconds[peer] is None:
        return {"what": what, "skipped": f"importing {peer} fails here"}
    return {"what": what, "wall_s": seconds[ours], "peer_wall_s": seconds[peer], "share": seconds[ours] / seconds[peer]}


def _seconds(arguments: list[str], environment: dict[str, str]) -> float | None:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
    return None if done.returncode else time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    as_json = parser.parse_args().json
    rows = measure()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        figures = (
            row.get("skipped")
            or f"{row['wall_s']:7.3f} s  against {row['peer_wall_s']:7.3f} s: {row['share']:.2f} of it"
        )
        print(f"{row['what']:54}", figures)


if __name__ == "__main__":
    main()
