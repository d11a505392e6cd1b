"""Hold the engine in use to what upstream tau2 did, case by case.

    python benchmarks/parity.py [FACTS]

The figure is a count, not a time: cases run, cases that differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from replaykit import engine, parity

FACTS = Path(__file__).parent.parent / "tests" / "data" / "facts" / "tau2-1.0.1-open.json.gz"


def measure(path: Path = FACTS) -> list[dict[str, Any]]:
    """One row for each kind of case, and one for all."""
    document, runtime = parity.read(path), engine.load()
    kinds = [case["kind"] for case in document["cases"]]
    results = parity.run(document, runtime)
    rows = [_row(kind, [r for k, r in zip(kinds, results, strict=True) if k == kind]) for kind in dict.fromkeys(kinds)]
    return [*rows, _row(f"all, on {runtime.identity.distribution} {runtime.identity.version}", results)]


def _row(name: str, results: list[parity.CaseResult]) -> dict[str, Any]:
    differ = [r for r in results if r.differences and not r.environment]
    return {
        "claim": "parity with tau2 1.0.1",
        "what": name,
        "cases": len(results),
        "differences": len(differ),
        "environment differs": sum(r.environment is not None for r in results),
    }


if __name__ == "__main__":
    for row in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else FACTS):
        print(f"{row['what']:<34} {row['cases']:>4} cases  {row['differences']:>3} differences  {row['environment differs']:>3} environment")
