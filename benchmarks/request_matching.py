"""Comparing one request of a long episode: by digest, and as vcrpy's body matching finds it.

    python benchmarks/request_matching.py [--json]

Both look up the last request of an episode among those recorded: replaykit by position and running digest, vcrpy with
its matchers for method, address and body over the cassette in memory, in the order of the list. A naive cassette, which
keeps whole bodies as text and compares them in turn, stands beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from cassette_size import Talk

from replaykit.request_digest import RequestDigests

REQUESTS = (30, 120)
ROUNDS = 7


def measure() -> list[dict[str, Any]]:
    """All rows."""
    return [row for count in REQUESTS for row in _rows(count)]


def _rows(count: int) -> list[dict[str, Any]]:
    turns = list(Talk().turns(count))
    ours = _digest_ms(turns)
    rows = [{"requests": count, "how": "replaykit: position and digest", "ms": ours, "ratio": 1.0}]
    for how, peer in (("naive: whole bodies in turn", _naive), ("vcrpy: method, uri, body", _vcr)):
        try:
            spent = peer(turns)
        except ImportError as error:
            rows.append({"requests": count, "how": how, "skipped": f"not installed: {error.name}"})
        else:
            rows.append({"requests": count, "how": how, "ms": spent, "ratio": spent / ours})
    return rows


def _digest_ms(turns: list[Any]) -> float:
    """The last request of its seat, when those before it have been compared."""
    spent = []
    for _ in range(ROUNDS):
        digests = RequestDigests()
        for turn in turns[:-1]:
            digests.of(turn.request)
        began = time.perf_counter()
        digests.of(turns[-1].request)
        spent.append(1000 * (time.perf_counter() - began))
    return statistics.median(spent)


def _vcr(turns: list[Any]) -> float:
    from vcr.cassette import Cassette
    from vcr.matchers import body, method, uri
    from vcr.request import Request

    cassette = Cassette("unused", match_on=(method, uri, body))
    requests = [
        Request(
            e.request["method"], e.request["uri"], e.request["body"], {k: v[0] for k, v in e.request["headers"].items()}
        )
        for e in _exchanges(turns)
    ]
    for request, exchange in zip(requests, _exchanges(turns), strict=True):
        cassette.append(request, {"status": exchange.response["status"], "headers": {}, "body": {"string": b""}})
    cassette.rewound = True
    return _median_ms(lambda: cassette.can_play_response_for(requests[-1]))


def _naive(turns: list[Any]) -> float:
    bodies = [json.dumps(turn.request.to_dict(), sort_keys=True) for turn in turns]
    return _median_ms(lambda: bodies.index(json.dumps(turns[-1].request.to_dict(), sort_keys=True)))


def _exchanges(turns: list[Any]) -> list[Any]:
    return [turn.exchange for turn in turns]


def _median_ms(action: Callable[[], Any]) -> float:
    spent = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        if action() is False:
            raise SystemExit("the peer did not find the request")
        spent.append(1000 * (time.perf_counter() - began))
    return statistics.median(spent)


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
            f"{row['requests']:4} requests  {row['how']:34}",
            row.get("skipped") or f"{row['ms']:10.4f} ms  {row['ratio']:8,.0f}x",
        )


if __name__ == "__main__":
    main()
