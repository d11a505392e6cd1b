"""Known-bads in the seat layer: budgets, connections, recordings, replays, rows."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from replaykit.budget import Ledger
from replaykit.certify.known_bad.making import KnownBad, LaxSender, asking, lax, layer, retrying
from replaykit.certify.subject import loopback_sender
from replaykit.episode import TurnLost
from replaykit.errors import EvidenceError
from replaykit.gateway import Gateway
from replaykit.replay import replay
from replaykit.seats import SeatFailure, SeatReply, SeatRequest
from replaykit.store import reader
from replaykit.store.journal import Journal


class OneMore(Ledger):
    """Counts to one more."""

    def debit(self) -> None:
        """Begin a request late."""
        if self.requests == self.budget.requests:
            self.requests -= 1
            super().debit()
            self.budget = replace(self.budget, requests=self.budget.requests - 1)
        else:
            super().debit()


class BetweenSteps(Ledger):
    """Looks at the simulation's time every tenth request only."""

    def debit(self) -> None:
        """Mostly look away."""
        if self.requests % 10:
            self.requests += 1
        else:
            super().debit()


class StopsPolitely(Gateway):
    """Ends a spent budget as if the customer had said goodbye."""

    def ask(self, request: SeatRequest) -> SeatReply:
        """Pretend."""
        try:
            return super().ask(request)
        except TurnLost as lost:
            if lost.turn.reason.startswith("budget_"):
                return SeatReply(content="###STOP###")
            raise


class LateJournal:
    """Writes a request only when its outcome is known.

    Args:
        journal: The good one.
    """

    def __init__(self, journal: Journal, keep_failures: bool = True) -> None:
        self._journal, self._waiting, self._keep_failures = journal, {}, keep_failures

    def __enter__(self) -> LateJournal:
        return self

    def __exit__(self, *_error: object) -> None:
        self._journal.abandon()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def request(self, request: SeatRequest) -> None:
        """Wait."""
        self._waiting[request.number] = request

    def exchange(self, number: int, exchange: Any) -> None:
        """Now the request, then the exchange."""
        self._journal.request(self._waiting.pop(number))
        self._journal.exchange(number, exchange)


class SuccessJournal(LateJournal):
    """Keeps what worked: failures leave no record."""

    def request(self, request: SeatRequest) -> None:
        """As the good one."""
        self._journal.request(request)

    def exchange(self, number: int, exchange: Any) -> None:
        """Only whole ones."""
        if exchange.failure is None:
            self._journal.exchange(number, exchange)

    def failure(self, number: int, failure: SeatFailure) -> None:
        """Nothing."""


class Impatient(LaxSender):
    """Sends a POST again when the connection closes without a reply."""

    def post(self, url: str, headers: Any, body: bytes, read: Any, on_exchange: Any, **more: Any) -> SeatReply:
        """Once, or twice."""
        try:
            return super().post(url, headers, body, read, on_exchange, **more)
        except SeatFailure as failure:
            if failure.kind != "unreachable":
                raise
            return super().post(url, headers, body, read, on_exchange, **more)


def _time_in_key(cassette: Any, engine: Any, fleet: Any, name: str) -> Any:
    """Takes the clock for a part of the request."""
    return replay(cassette, _Timed(engine), fleet, name)


class _Timed:
    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, domain: str, scenario: str, seed: int, models: Any, ask: Any, *limits: Any) -> Any:
        """Run with the clock in every request."""
        return self._engine.run(
            domain,
            scenario,
            seed,
            models,
            lambda r: ask(replace(r, arguments=r.arguments | {"at": time.time()})),
            *limits,
        )


def _fall_through(cassette: Any, engine: Any, fleet: Any, name: str) -> Any:
    """Asks the provider when the cassette has no answer."""
    report = replay(cassette, engine, fleet, name)
    if report.divergences:
        address = urlsplit(next(e for r in cassette.requests for e in r.exchanges).request["uri"])
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=2)
        try:
            connection.request("POST", address.path, body=b"{}")
            connection.getresponse().read()
        except OSError:
            pass
        finally:
            connection.close()
    return report


def _fuzzy_match(cassette: Any, engine: Any, fleet: Any, name: str) -> Any:
    """Takes the nearest recorded request for the right one."""
    report = replay(cassette, engine, fleet, name)
    others = tuple(d for d in report.divergences if d.kind != "request")
    return replace(report, divergences=others, status="diverged" if others else "equal")


def _ignore_unused(cassette: Any, engine: Any, fleet: Any, name: str) -> Any:
    """Does not mind what was recorded and not asked."""
    report = replay(cassette, engine, fleet, name)
    return replace(report, divergences=tuple(d for d in report.divergences if d.kind != "missing_request"))


def _no_digest(path: Path) -> Any:
    """Believes every file."""
    try:
        return reader.read(path)
    except EvidenceError:
        return reader.read(path.with_name("a.cassette.jsonl"))


def _splice_ok(path: Path) -> Any:
    """Believes a record that stands in any recording beside it."""
    try:
        return reader.read(path)
    except EvidenceError:
        lines, own = path.read_bytes().splitlines(), path.with_name("a.cassette.jsonl").read_bytes().splitlines()
        beside = path.with_name("b.cassette.jsonl").read_bytes().splitlines()
        new = [line for line in lines if line not in own]
        if not new or any(line not in beside for line in new):
            raise
        return reader.read(path.with_name("a.cassette.jsonl"))


def _no_wall(panels: Sequence[Any], work: Any, wall_s: float) -> list:
    return [(panel, work(panel)) for panel in panels]


def _drop_unfinished(panels: Sequence[Any], work: Any, wall_s: float) -> list:
    from replaykit.certify.engine_less import queue

    return [(panel, result) for panel, result in queue(panels, work, wall_s) if result is not None]


def _scaled_deadline(factor: float) -> type:
    return asking(lambda good, request, on: good(replace(request, deadline_s=request.deadline_s * factor), on))


def _grace(good: Any, request: Any, on_exchange: Any) -> SeatReply:
    return good(
        replace(request, deadline_s=request.deadline_s * (3.0 if "body-at" in json.dumps(request.messages) else 1.0)),
        on_exchange,
    )


def _forever(**given: Any) -> Any:
    return loopback_sender(**given | {"max_connection_age_s": 10_000.0})


def known_bads() -> tuple[KnownBad, ...]:
    """For checks C38 to C50."""
    is_500, is_late = (lambda f: f.status == 500), (lambda f: f.kind == "deadline")
    return (
        KnownBad("kb_off_by_one", "C38", "more_than_201", layer=layer(ledger=OneMore)),
        KnownBad("kb_count_logical", "C38", "more_than_201", retrying(is_500, 1)),
        KnownBad("kb_no_timeout", "C39", "closed_late", _scaled_deadline(1.95)),
        KnownBad("kb_timeout_times_retries", "C39", "told_late", retrying(is_late, 2)),
        KnownBad("kb_read_timeout_only", "C40", "dribbled_on", layer=lax()),
        KnownBad("kb_endless_grace", "C40", "grace_without_end", asking(_grace)),
        KnownBad("kb_eternal_keepalive", "C41", "old_connection", layer=layer(sender=_forever)),
        KnownBad(
            "kb_no_connect_timeout",
            "C41",
            "connect_unbounded",
            layer=lax(connect_factor=3.0, client={"limits": httpx.Limits(max_keepalive_connections=0)}),
        ),
        KnownBad("kb_between_steps_only", "C42", "ran_on", layer=layer(ledger=BetweenSteps)),
        KnownBad("kb_timeout_as_success", "C42", "timeout_as_stop", layer=layer(gateway=StopsPolitely)),
        KnownBad("kb_resend_post", "C43", "resent", layer=layer(sender=lambda **given: Impatient())),
        KnownBad("kb_no_wall", "C44", "started_after_wall", layer=layer(queue=_no_wall)),
        KnownBad("kb_drop_unfinished", "C44", "row_dropped", layer=layer(queue=_drop_unfinished)),
        KnownBad(
            "kb_debit_after_send",
            "C45",
            "debit_lost",
            layer=layer(journal=lambda p, h, r: LateJournal(Journal.create(p, h, r))),
        ),
        KnownBad("kb_reset_on_resume", "C45", "budget_reset", layer=layer(spent=lambda cassette: 0)),
        KnownBad("kb_time_in_key", "C46", "replay_differs", layer=layer(replay=_time_in_key)),
        KnownBad(
            "kb_set_order",
            "C46",
            "replay_differs",
            layer=layer(order=lambda tools: sorted(tools, key=lambda t: hash(t["function"]["name"]))),
        ),
        KnownBad(
            "kb_only_success_recorded",
            "C46",
            "attempts_missing",
            layer=layer(journal=lambda p, h, r: SuccessJournal(Journal.create(p, h, r))),
        ),
        KnownBad("kb_fallthrough", "C47", "fell_through", layer=layer(replay=_fall_through)),
        KnownBad("kb_fuzzy_match", "C47", "miss_unreported", layer=layer(replay=_fuzzy_match)),
        KnownBad("kb_ignore_unused", "C47", "left_over_unreported", layer=layer(replay=_ignore_unused)),
        KnownBad("kb_no_digest", "C48", "tamper_accepted", layer=layer(read=_no_digest)),
        KnownBad("kb_splice_ok", "C48", "splice_accepted", layer=layer(read=_splice_ok)),
        KnownBad(
            "kb_claims_reward",
            "C49",
            "claims_reward",
            layer=layer(rows=lambda rows: [row | {"reward": "1.0"} for row in rows]),
        ),
        KnownBad("kb_drop_panel", "C50", "panel_missing", layer=layer(rows=lambda rows: list(rows)[:-1] or list(rows))),
        KnownBad("kb_duplicate_panel", "C50", "panel_twice", layer=layer(rows=lambda rows: [*rows, rows[0]])),
        KnownBad(
            "kb_empty_denominator",
            "C50",
            "empty_denominator",
            layer=layer(rows=lambda rows: [r for r in rows if r["status"] == "PASS"]),
        ),
    )
