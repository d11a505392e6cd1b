"""What copy-on-write views of a database cost, beside tau2's own database: loading, touching, hashing.

    python benchmarks/snapshot.py [--json]

The peer is tau2's own code in the same process: its database model parses the file for every environment, and its
toolkit hashes a database by dumping it whole. Each pair of figures is measured in turns, so that a busy machine
disturbs both alike; figures are medians. Every hash is compared before it is timed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from replaykit import engine
from replaykit.engine.databases import Databases

ROUNDS = 7
TOUCHED = 8


def measure() -> list[dict[str, Any]]:
    """One row a domain and operation: native and view milliseconds, and their ratio."""
    runtime = engine.load()
    return [row for domain in ("airline", "retail") for row in _domain(domain, runtime.domain(domain).databases)]


def _domain(domain: str, databases: Databases) -> list[dict[str, Any]]:
    began = time.perf_counter()
    base_hash = databases.base.hash
    build_ms = 1000 * (time.perf_counter() - began)
    native_class, text = type(databases.view()), databases._text
    native = native_class.model_validate(json.loads(text))
    read, changed = _touching(databases, native, change=False), _touching(databases, native, change=True)
    cases = [
        ("a database for one environment", lambda: native_class.model_validate(json.loads(text)), databases.view),
        ("hash, nothing touched", native.get_hash, lambda: databases.hash(databases.view())),
        (f"hash, {3 * TOUCHED} rows read", native.get_hash, lambda: databases.hash(read)),
        (f"hash, {3 * TOUCHED} rows changed", native.get_hash, lambda: _fresh_hash(databases, changed)),
        ("the same state hashed again", native.get_hash, lambda: databases.hash(changed)),
    ]
    if native.get_hash() != databases.hash(changed) or databases.hash(read) != base_hash:
        raise SystemExit(f"the hashes of the {domain} database differ: nothing was measured")
    rows = [_compared(domain, *case) for case in cases]
    once = {"domain": domain, "what": "the base, once a process", "native_ms": None, "view_ms": build_ms, "ratio": None}
    return [once, *rows]


def _touching(databases: Databases, native: Any, change: bool) -> Any:
    """A view of which some rows of every table were read, or changed in the same way as in the native database."""
    view, chance = databases.view(), random.Random(1)
    for table in view.__dict__:
        for key in chance.sample(sorted(getattr(native, table)), TOUCHED):
            row = getattr(view, table)[key]
            if change:
                field = next(iter(type(row).model_fields))
                setattr(row, field, "changed")
                setattr(getattr(native, table)[key], field, "changed")
    return view


def _fresh_hash(databases: Databases, view: Any) -> str:
    """The hash of a state never seen before."""
    databases.base.forget()
    return databases.hash(view)


def _compared(domain: str, what: str, native: Callable[[], Any], view: Callable[[], Any]) -> dict[str, Any]:
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for run, times in zip((native, view), spent, strict=True):
            began = time.perf_counter()
            run()
            times.append(1000 * (time.perf_counter() - began))
    native_ms, view_ms = (statistics.median(times) for times in spent)
    return {"domain": domain, "what": what, "native_ms": native_ms, "view_ms": view_ms, "ratio": native_ms / view_ms}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    as_json = parser.parse_args().json
    rows = measure()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print("domain   operation                        native ms     view ms      ratio")
    for row in rows:
        native = "-" if row["native_ms"] is None else f"{row['native_ms']:.1f}"
        ratio = "-" if row["ratio"] is None else f"1/{row['ratio']:,.0f}"
        print(f"{row['domain']:8} {row['what']:32} {native:>9} {row['view_ms']:11.3f} {ratio:>10}")


if __name__ == "__main__":
    main()
