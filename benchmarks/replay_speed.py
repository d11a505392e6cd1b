"""Replaying with every check, beside tau2's own run and evaluation of the same episodes.

    python benchmarks/replay_speed.py [--json] [--all]

Reading and verifying a cassette is shown apart from replaying it; tau2 reads nothing. Ratios are of CPU seconds in one
run; the peer runs in a process of its own, without anything of replaykit in it. ``--all`` takes all 164 panels instead
of a sample of 20 and needs some minutes for the peer.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _episodes

from replaykit import engine, record_many, replay, replay_many
from replaykit.store import fleet_file, reader

ALL = ("all",)
LENGTHS = (30, 60, 100, 170, 200)
LONG_PANELS = ("airline/7", "retail/2")
ROUNDS = 3


def measure(everything: bool) -> list[dict[str, Any]]:
    """All rows."""
    fleet = fleet_file.read()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        short = [_episodes.recorded(folder, fleet, p.id) for p in fleet.select(ALL)]
        sample = {p.id for p in fleet.select(ALL if everything else _episodes.SAMPLE)}
        engine.load().prepare()
        rows = [_against_native("reference episodes", [p for p in short if reader.read(p).panel in sample], fleet)]
        rows += _long(folder, fleet)
        for path in folder.glob("*-[1-9]*.cassette.jsonl"):
            if path not in short:
                path.unlink()
        return [*rows, *_whole_processes(folder, fleet)]


def _against_native(what: str, paths: list[Path], fleet: Any) -> dict[str, Any]:
    rounds = max(ROUNDS, 10 // len(paths))
    spent = [_spent_s(paths, fleet) for _ in range(rounds)]
    peer = _episodes.native([reader.read(p) for p in paths])
    spent += [_spent_s(paths, fleet) for _ in range(rounds)]  # on either side of the peer: clocks of machines drift
    read_ms, replay_ms = (1000 * min(times) / len(paths) for times in zip(*spent, strict=True))
    row = {"what": what, "episodes": len(paths), "read_ms": read_ms, "replay_ms": replay_ms}
    if isinstance(peer, str):
        return row | {"skipped": peer}
    native_ms = 1000 * sum(e["cpu_s"] for e in peer["episodes"]) / len(paths)
    ratios = {"ratio": native_ms / replay_ms, "ratio_with_reading": native_ms / (read_ms + replay_ms)}
    return row | {"native_ms": native_ms, **ratios}


def _spent_s(paths: list[Path], fleet: Any) -> tuple[float, float]:
    """CPU seconds for reading and verifying the cassettes, and for replaying them with every check."""
    runtime, read_s, replay_s = engine.load(), 0.0, 0.0
    with replay_many.seldom_collecting():
        for path in paths:
            began = time.process_time()
            cassette = reader.read(path)
            between = time.process_time()
            report = replay.replay(cassette, runtime, fleet, path.name)
            read_s, replay_s = read_s + between - began, replay_s + time.process_time() - between
            if report.status != "equal":
                raise SystemExit(f"a replay was not equal: {report.to_dict()}")
    return read_s, replay_s


def _long(folder: Path, fleet: Any) -> list[dict[str, Any]]:
    rows = []
    for length in LENGTHS:
        talk = (length - 16) // 2
        paths = [_episodes.recorded(folder, fleet, panel, talk) for panel in LONG_PANELS]
        rows.append(_against_native(f"about {length} messages", paths, fleet) | {"length": length})
    first, last = rows[0], rows[-1]
    total_ms = [row["read_ms"] + row["replay_ms"] for row in (first, last)]
    growth = (total_ms[1] / total_ms[0]) / (last["length"] / first["length"])
    return [
        *rows,
        {"what": f"growth from {first['length']} to {last['length']} messages, linear being 1", "ratio": growth},
    ]


def _whole_processes(folder: Path, fleet: Any) -> list[dict[str, Any]]:
    """The command itself, cold; and what a second process adds where there is enough to do."""
    one = min(_command_s(folder, "1")[0] for _ in range(ROUNDS))
    return [
        {"what": "replay of 164, whole command, cold", "wall_s": one, "peak_mb": _command_s(folder, "1")[1]},
        _second_process(sorted(folder.glob("*.cassette.jsonl")) * 6, fleet),
    ]


def _second_process(files: list[Path], fleet: Any) -> dict[str, Any]:
    """Throughput of two workers against one process, turn by turn, once the engine is loaded."""
    alone, two = [], []
    for _ in range(ROUNDS):
        alone.append(_run_s(files, fleet, 1))
        two.append(_run_s(files, fleet, 2))
    what = f"replay of {len(files)}, two processes against one, after the start"
    return {"what": what, "episodes_s": len(files) / min(two), "wall_s": min(two), "ratio": min(alone) / min(two)}


def _run_s(files: list[Path], fleet: Any, jobs: int) -> float:
    began = time.perf_counter()
    outcomes = replay_many.run(files, fleet, jobs, record_many.Watch())
    spent = time.perf_counter() - began
    if replay_many.exit_code(outcomes):
        raise SystemExit("a replay was not equal")
    return spent


def _command_s(folder: Path, jobs: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "replaykit", "replay", str(folder), "-j", jobs]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    spent, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    count = len(list(folder.glob("*.cassette.jsonl")))
    if f"{count}/{count} equal" not in done.stdout:
        raise SystemExit(f"not all {count} replays were equal: {done.stdout.strip().splitlines()[-1:]}")
    return spent, (peak if peak > before else _own_peak_kb(folder, jobs)) / 1024


_ASK = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def _own_peak_kb(folder: Path, jobs: str) -> int:
    """Peak of the command alone: the peer's would hide it, so a fresh interpreter asks for its only child's."""
    command = [sys.executable, "-c", _ASK, sys.executable, "-m", "replaykit", "replay", str(folder), "-j", jobs]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--all", action="store_true", help="all 164 panels for the first row")
    options = parser.parse_args()
    rows = measure(options.all)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(
            f"{row['what']:52}",
            *(
                f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}"
                for k, v in row.items()
                if k not in ("what", "length")
            ),
        )


if __name__ == "__main__":
    main()
