"""Compare the request bodies that crossed the wire, request by request: what a transport made of a native request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from replaykit import canonical
from replaykit.cassette import Cassette
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import Finding


def compare(left: Cassette, right: Cassette, walk: Walk, ignored: Ignored, differing: Iterable[str]) -> list[Finding]:
    """Differences between the bodies of requests that have the same number and seat."""
    causes = tuple(s for s in ("requests", "arm", "roster", "transports", "settings") if s in set(differing))
    found = []
    for ours, theirs in zip(left.requests, right.requests, strict=False):
        if ours.seat != theirs.seat or ignored.covers("wire", ours.number):
            continue
        values = [ignored.without(_bodies(request), "wire", ours.number) for request in (ours, theirs)]
        for d in walk.compare(*values):
            place = canonical.pointer("wire", ours.number) + d.pointer
            found.append(
                Finding(
                    "wire", place, d.pointer, d.kind, d.left, d.right, ours.seat, ours.number,
                    right_pointer=d.right_pointer, follows_from=causes,
                )
            )  # fmt: skip
    return found


def _bodies(request: Any) -> list[Any]:
    return [_body(exchange.request["body"]) for exchange in request.exchanges]


def _body(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")
