"""What the policy rules cost in a replay, and whether all 164 reference episodes give the same policy states again.

    python benchmarks/policy.py [--json]

Records the reference episode of every panel with labelled controls and replays each recording twice: here, and in a
fresh process with another hash seed, time zone and language. The rules are timed where a replay calls them, in
processor time. Two shares are given: of the fresh process from its start to its end, which is what `replaykit replay
FOLDER` takes, and of reading and replaying alone, once the engine is loaded. A policy state that differs ends with
exit code 1, and so does a share of the fresh process above the goal of 2 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replaykit import canonical, engine, policy_record, record_many
from replaykit.replay import replay
from replaykit.store import fleet_file, reader

GOAL = 0.02


class Clock:
    """Adds up the processor time that calls of one function take.

    Attributes:
        seconds: So far.
        states: What the calls returned, in order.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = 0.0
        self.states: list[Any] = []

    def __call__(self, *arguments: Any) -> Any:
        began = time.process_time()
        found = self._function(*arguments)
        self.seconds += time.process_time() - began
        self.states.append(found)
        return found


@contextmanager
def timed_rules() -> Iterator[Clock]:
    """The rules with a clock, as replays call them."""
    rules = policy_record.final
    policy_record.final = clock = Clock(rules)
    try:
        yield clock
    finally:
        policy_record.final = rules


@dataclass(slots=True)
class Pass:
    """All recordings replayed once.

    Attributes:
        digests: Of each episode's policy states, by the recording's name.
        rules_s, replays_s: Processor seconds in the rules, and in reading and replaying (rules included).
        process_s: Processor seconds of the process from its start.
    """

    digests: dict[str, str]
    rules_s: float
    replays_s: float
    process_s: float


def measure(folder: Path) -> dict[str, Any]:
    """Record, replay, replay elsewhere, compare."""
    paths = _recorded(folder)
    recorded = {_name(p, folder): reader.read(p).footer["policy_states"] for p in paths}
    here, elsewhere = _replayed(folder, paths), _in_another_process(folder)
    count = len(paths)
    return {
        "episodes": count,
        "policy_states": sum(len(states["turns"]) for states in recorded.values()),
        "parted_here": sorted(n for n in recorded if here.digests[n] != _digest(recorded[n])),
        "parted_elsewhere": sorted(n for n in recorded if here.digests[n] != elsewhere.digests.get(n)),
        "rules_ms_per_episode": 1000 * elsewhere.rules_s / count,
        "process_ms_per_episode": 1000 * elsewhere.process_s / count,
        "replay_ms_per_episode": 1000 * elsewhere.replays_s / count,
        "share_of_process": elsewhere.rules_s / elsewhere.process_s,
        "share_of_reading_and_replaying": elsewhere.rules_s / elsewhere.replays_s,
        "goal": GOAL,
    }


def _recorded(folder: Path) -> list[Path]:
    plan = record_many.Plan(fleet_file.read(), ("all",), (300,), folder, False, 2)
    return [outcome.path for outcome in record_many.run(plan, "reference", None, record_many.Watch())]


def _replayed(folder: Path, paths: list[Path]) -> Pass:
    fleet, runtime = fleet_file.read(), engine.load()
    began = time.process_time()
    with timed_rules() as clock:
        for path in paths:
            report = replay(reader.read(path), runtime, fleet, str(path))
            if report.status != "equal":
                raise SystemExit(f"{path} does not replay equal: {report.divergences[0].sentence}")
    now = time.process_time()
    digests = {_name(path, folder): _digest(states) for path, states in zip(paths, clock.states, strict=True)}
    return Pass(digests, clock.seconds, now - began, now)


def _in_another_process(folder: Path) -> Pass:
    environment = os.environ | {"PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    command = [sys.executable, __file__, "--pass", str(folder)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Pass(**json.loads(done.stdout))


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _digest(states: Any) -> str:
    return canonical.sha256(canonical.ordered(canonical.encode(states)))


def _show(found: dict[str, Any]) -> None:
    count = found["episodes"]
    print(f"{count} reference episodes, {found['policy_states']} policy states")
    for words, key in (("recorded and replayed", "parted_here"), ("in another process", "parted_elsewhere")):
        names = found[key]
        print(f"{words}: {count - len(names)} equal, {len(names)} differ {' '.join(names[:5])}".rstrip())
    whole, warm = found["process_ms_per_episode"], found["replay_ms_per_episode"]
    print(f"the rules take {found['rules_ms_per_episode']:.3f} ms an episode, in processor time:")
    print(f"  {found['share_of_process']:.2%} of a process that replays all ({whole:.1f} ms; goal: below {GOAL:.0%})")
    print(f"  {found['share_of_reading_and_replaying']:.2%} of reading and replaying alone ({warm:.1f} ms)")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pass", dest="folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(asdict(_replayed(options.folder, reader.find([options.folder])))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    print(json.dumps(found, indent=1)) if options.json else _show(found)
    differing = found["parted_here"] or found["parted_elsewhere"]
    return int(bool(differing) or found["share_of_process"] >= GOAL)


if __name__ == "__main__":
    raise SystemExit(main())
