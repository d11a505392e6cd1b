"""A folder of ten thousand cassettes: listing them and their coverage from headers and footers.

    python benchmarks/many_cassettes.py [--json]

Beside it stands what reading and verifying every one of them whole would take, worked out from a hundred.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import _episodes

from replaykit.store import fleet_file, reader, scan

COUNT = 10_000
PANELS = ("airline/7", "retail/2", "retail/37", "airline/0")


def measure() -> list[dict[str, Any]]:
    """All rows."""
    fleet = fleet_file.read()
    with tempfile.TemporaryDirectory() as place:
        sources = [_episodes.recorded(Path(place), fleet, panel) for panel in PANELS]
        folder = Path(place, "many")
        folder.mkdir()
        for number in range(COUNT):
            os.link(sources[number % len(sources)], folder / f"{number}.cassette.jsonl")
        wall, cpu = time.perf_counter(), time.process_time()
        covered = Counter(scan.scan(path).panel for path in reader.find([folder]))
        row = {
            "what": f"{COUNT:,} cassettes: list and coverage",
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "panels": len(covered),
        }
        began = time.process_time()
        for path in reader.find([folder])[:100]:
            reader.read(path)
        whole_s = (time.process_time() - began) * COUNT / 100
    return [row, {"what": "the same, each read whole (worked out)", "cpu_s": whole_s, "ratio": whole_s / row["cpu_s"]}]


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
        print(
            f"{row['what']:44}",
            *(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if k != "what"),
        )


if __name__ == "__main__":
    main()
