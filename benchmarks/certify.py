"""Figures of certification: the self-test's matrix, the time for all panels, repeatability, refused byte changes.

    python benchmarks/certify.py [--panels all] [--changes 200]

Prints one figure a line. Exit 1 when one is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from replaykit import certificate, difference, engine
from replaykit.certify import run, self_test, subject, verify
from replaykit.store import certificate_file, fleet_file
from replaykit.store.certificate_file import Evidence

SECONDS_FOR_ALL = 60.0


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", default="all")
    parser.add_argument("--changes", type=int, default=200)
    arguments = parser.parse_args()
    began = time.monotonic()
    report = self_test.run()
    print(f"{self_test.summary(report)} ({time.monotonic() - began:.0f} s)")
    for part in ("alarms", "survivors", "idle_checks", "universal_passes"):
        for entry in report[part]:
            print(f"  {part}: {entry}")
    with tempfile.TemporaryDirectory() as name:
        figures = [self_test.holds(report), *_certified(Path(name), report, arguments.panels, arguments.changes)]
    return 0 if all(figures) else 1


def _certified(folder: Path, report: dict, panels: str, changes: int) -> list[bool]:
    fleet = fleet_file.read()
    chosen = fleet.select([panels])
    order = run.Order(subject.load("openai-chat", {}), fleet, chosen, "fast", engine.load(), report)
    began = time.monotonic()
    first = _write(order, folder / "first")
    took = time.monotonic() - began
    passed = first["predicate"]["panels"]["counts"]["PASS"]
    print(f"openai-chat, fast profile: {passed} of {len(chosen)} panels passed in {took:.1f} s")
    few = replace(order, panels=chosen[:2])
    statements = [_write(few, folder / part) for part in ("a", "b")]
    parted = difference.first(*map(certificate.without_run_specifics, statements))
    print(f"two runs, beside what is run-specific: {'equal' if parted is None else 'differ at ' + parted.pointer}")
    refused = _refused(folder / "a", fleet, changes)
    print(f"{refused} of {changes} single-byte changes refused")
    return [passed == len(chosen), took < SECONDS_FOR_ALL, parted is None, refused == changes]


def _write(order: run.Order, folder: Path) -> dict:
    path = folder / "certificate.json"
    statement = run.run(order, Evidence(certificate_file.own_folder(path)), run.Watch())
    certificate_file.write(path, statement)
    return statement


def _refused(folder: Path, fleet: object, changes: int) -> int:
    chance, refused = random.Random(300), 0
    moment = certificate_file.read(folder / "certificate.json")[0]["predicate"]["certificate"]["issued_at"]
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    for number in range(changes):
        path = folder / "certificate.json" if number % 2 else chance.choice(files)
        before = path.read_bytes()
        at = chance.randrange(len(before))
        path.write_bytes(before[:at] + bytes([before[at] ^ (1 << chance.randrange(8))]) + before[at + 1 :])
        request = verify.Request(folder / "certificate.json", moment, fleet=fleet)
        refused += any(line.found == verify.WRONG for line in verify.steps(request))
        path.write_bytes(before)
    return refused


if __name__ == "__main__":
    sys.exit(main())
