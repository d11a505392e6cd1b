"""Cassettes as the data of the viewer's page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.cassette import SUFFIXES, RecordedRequest
from replaykit.errors import ReplaykitError
from replaykit.reports import facts
from replaykit.reports.exchanges import raw_text
from replaykit.reports.shapes import rows, text
from replaykit.reports.transcript import Transcript, Turn
from replaykit.reports.viewer.packing import Documents, Pool
from replaykit.seats import SeatFailure, SeatReply, WireExchange

SCHEMA = "replaykit.viewer/1"


@dataclass(slots=True)
class Collection:
    """What one page shows.

    Attributes:
        unreadable: ``(path, why)`` of cassettes that could not be read.
    """

    pool: Pool = field(default_factory=Pool)
    episodes: list[dict] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, transcript: Transcript) -> None:
        """Take an episode.

        Raises:
            EvidenceError: a request or an exchange does not unfold.
        """
        self.episodes.append(_episode(transcript, self.pool, self._name(transcript)))

    def miss(self, path: Path, error: ReplaykitError) -> None:
        """A cassette that cannot be shown."""
        self.unreadable.append((str(path), str(error)))

    def _name(self, transcript: Transcript) -> str:
        """A short name for links: the panel's domain and the file's stem, numbered when it comes again."""
        path = transcript.cassette.path
        stem = "episode" if path is None else path.name
        for suffix in reversed(SUFFIXES):
            stem = stem.removesuffix(suffix)
        domain = transcript.cassette.panel.partition("/")[0]
        name, count = f"{domain}-{stem}", 1
        while name in self._names:
            count += 1
            name = f"{domain}-{stem}~{count}"
        self._names.add(name)
        return name

    def to_dict(self) -> dict:
        """Plain data for the page."""
        missed = [{"path": path, "why": why} for path, why in self.unreadable]
        data = {"schema": SCHEMA, "pool": self.pool.values, "episodes": self.episodes, "unreadable": missed}
        return canonical.encode(data)


def _episode(transcript: Transcript, pool: Pool, name: str) -> dict:
    cassette, result = transcript.cassette, transcript.result or {}
    reward = result.get("reward")
    return {
        "id": name,
        **facts.title(transcript),
        "path": None if cassette.path is None else str(cassette.path),
        "digest": cassette.digest,
        "interrupted": cassette.interrupted,
        "termination": text(result.get("termination")),
        "reward": reward if isinstance(reward, (int, float)) else None,
        "diagnostics": [str(diagnostic.get("name")) for diagnostic in rows(result.get("diagnostics"))],
        "hashes": [text(result.get("initial_db_hash")), text(result.get("final_db_hash"))],
        "header": list(facts.header(transcript)),
        "verdict": list(facts.interruption(transcript) if cassette.interrupted else facts.verdict(transcript)),
        "turns": [_turn(turn, pool) for turn in transcript.turns],
        "asides": [{**aside.to_dict(), "text": pool.pack(aside.text)} for aside in transcript.asides],
        "rows": pool.pack(result.get("db_changes")),
        **_requests(cassette.requests, pool),
    }


def _turn(turn: Turn, pool: Pool) -> dict:
    data: dict[str, Any] = {"speaker": turn.speaker, "content": pool.pack(turn.message.get("content"))}
    calls = turn.message.get("tool_calls")
    if calls:
        data["calls"] = [{"id": c.get("id"), "name": c["name"], "arguments": pool.pack(c["arguments"])} for c in calls]
    if turn.message.get("error"):
        data["error"] = True
    if turn.request is not None:
        data["request"] = turn.request
    if turn.seam:
        data["seam"] = turn.seam
    if turn.changes:
        data["changes"] = [c.to_dict() for c in turn.changes]
    if turn.agrees is not None:
        data["agrees"] = turn.agrees
    return {**data, "state": turn.state and pool.share(turn.state)}


def _requests(requests: Iterable[RecordedRequest], pool: Pool) -> dict:
    natives, bodies = Documents(pool), Documents(pool)
    asked = []
    for request in requests:
        native = {k: v for k, v in request.native.to_dict().items() if k != "seat"}
        asked.append(
            {
                "number": request.number,
                "seat": request.seat,
                "native": natives.add(request.seat, native),
                "outcome": _outcome(request, pool),
                "wire": [_exchange(exchange, request.seat, bodies, pool) for exchange in request.exchanges],
            }
        )
    return {"requests": asked, "natives": natives.packed, "bodies": bodies.packed}


def _outcome(request: RecordedRequest, pool: Pool) -> dict | None:
    outcome = request.outcome
    if isinstance(outcome, SeatReply):
        return {"reply": pool.pack(outcome.to_dict())}
    if isinstance(outcome, SeatFailure):
        return {"failure": pool.pack(outcome.to_dict())}
    return None if outcome is None else {"end": pool.pack(outcome)}


def _exchange(exchange: WireExchange, seat: str, bodies: Documents, pool: Pool) -> dict:
    answer = exchange.response
    return {
        "attempt": exchange.attempt,
        "request": _side(exchange.request, (seat, "request"), bodies, pool),
        "response": answer and _side(answer, (seat, "response"), bodies, pool),
        "failure": pool.pack(exchange.failure),
        "partial": pool.pack(raw_text(exchange.partial)) if exchange.partial else None,
        "timing": exchange.timing,
    }


def _side(side: Mapping, series: tuple[str, str], bodies: Documents, pool: Pool) -> dict:
    body = side.get("body") or b""
    value, is_json = _parsed(body)
    head = {key: part for key, part in side.items() if key != "body"}
    shown = {"json": bodies.add(series, value)} if is_json else {"text": pool.pack(raw_text(body))}
    return {**pool.pack(head), "size": len(body), **shown}


def _parsed(body: bytes) -> tuple[Any, bool]:
    """A JSON body's value. What JSON's own writer would not give back (repeated keys, odd numbers) stays text."""
    try:
        value = json.loads(body)
        exact = any(canonical.wire(value, form) == body for form in canonical.WIRE_FORMS)
    except (ValueError, RecursionError):
        return None, False
    return value, exact
