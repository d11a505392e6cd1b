"""What a comparison costs: two episodes of sixty messages, and two databases with three changed rows.

    python benchmarks/diff.py [--json]

Episodes are made up in the shape of an airline episode (see cassette_size.py). Reading and verifying a cassette is
measured apart from comparing two. Figures are medians in milliseconds, by wall and by CPU. The rows are changed on the
engine's own airline database, so that part needs an engine. The result of every comparison is checked before it is
timed.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cassette_size import Talk, header

from replaykit import database_rows
from replaykit.cassette import Cassette
from replaykit.diff import episodes
from replaykit.diff.leaves import Walk
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

MESSAGES = 60
ROUNDS = 15


def measure() -> list[dict[str, Any]]:
    """One row a case."""
    with tempfile.TemporaryDirectory() as folder:
        source = _recorded(Path(folder, "source.cassette.jsonl"), None)
        cases = {
            "the same episode": (_recorded(Path(folder, "same.cassette.jsonl"), None), 0),
            "one message changed": (_recorded(Path(folder, "one.cassette.jsonl"), _one_message), 1),
            "every text from the middle on changed": (_recorded(Path(folder, "half.cassette.jsonl"), _half), 20),
        }
        rows = [_timed("reading and verifying one cassette", lambda: reader.read(source.path))]
        for name, (other, least) in cases.items():
            found = episodes.compare(source, other)
            if len(found.findings) < least or bool(least) is not (found.status == "different"):
                raise SystemExit(f"{name}: {found.status} with {len(found.findings)} differences: nothing was measured")
            rows.append(_timed(f"comparing: {name}", lambda other=other: episodes.compare(source, other)))
    return [*rows, *_databases()]


def _recorded(path: Path, change: Callable[[int, dict], dict] | None) -> Cassette:
    talk = Talk()
    journal = Journal.create(path, header(), Redactor())
    for count, turn in enumerate(talk.turns(10_000), 1):
        if len(talk.trajectory) >= MESSAGES:
            break
        native = turn.request.to_dict()
        if change is not None:
            native = {**native, "messages": [change(i, m) for i, m in enumerate(native["messages"])]}
        journal.request(type(turn.request).from_dict(native, count))
        journal.exchange(count, turn.exchange)
        journal.reply(count, turn.reply)
    result = copy.deepcopy(talk.result())
    if change is not None:
        result["trajectory"] = [change(i, m) for i, m in enumerate(result["trajectory"])]
    journal.close({"result": result})
    return reader.read(path)


def _one_message(index: int, message: dict) -> dict:
    is_it = index == MESSAGES // 4 and message.get("content")
    return {**message, "content": message["content"] + " And one word more."} if is_it else message


def _half(index: int, message: dict) -> dict:
    is_it = index >= MESSAGES // 4 and message.get("content")
    return {**message, "content": message["content"].replace("e", "E")} if is_it else message


def _databases() -> list[dict[str, Any]]:
    from replaykit import engine

    databases = engine.load().domain("airline").databases
    views = [_changed(databases.view(), n) for n in (1, 2)]
    touched = [
        {t: {k: database_rows.change(*pair) for k, pair in rows.items()} for t, rows in databases.touched(v).items()}
        for v in views
    ]
    found = _rows_compared(*touched)
    if len(found) != 3:
        raise SystemExit(f"three rows were changed and {len(found)} differ: nothing was measured")
    return [
        _timed("finding the touched rows of one database", lambda: databases.touched(views[0])),
        _timed("comparing two databases with three changed rows", lambda: _rows_compared(*touched)),
    ]


def _changed(database: Any, salt: int) -> Any:
    for key in sorted(database.reservations)[:3]:
        database.reservations[key].status = f"changed {salt}"
    return database


def _rows_compared(left: dict, right: dict) -> list:
    walk, found = Walk(), []
    for table in left.keys() | right.keys():
        for key in left.get(table, {}).keys() | right.get(table, {}).keys():
            found += walk.compare(*database_rows.finals(left.get(table, {}).get(key), right.get(table, {}).get(key)))
    return found


def _timed(what: str, action: Callable[[], Any]) -> dict[str, Any]:
    walls, cpus = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - began[0])
        cpus.append(time.process_time() - began[1])
    return {"what": what, "wall_ms": 1000 * statistics.median(walls), "cpu_ms": 1000 * statistics.median(cpus)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    rows = measure()
    if parser.parse_args().json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['what']:<50} {row['wall_ms']:8.1f} ms wall {row['cpu_ms']:8.1f} ms CPU")


if __name__ == "__main__":
    main()
