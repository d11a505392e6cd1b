"""Record one episode: the engine plays, the seats answer, the journal writes every step as it happens."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from replaykit import policy, policy_record
from replaykit._version import __version__
from replaykit.budget import Budget, Ledger
from replaykit.engine.protocol import Engine
from replaykit.episode import Diagnostic, EpisodeResult
from replaykit.fleet import Fleet, Panel
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway, Record, guarded
from replaykit.prompts import NONE, Prompts
from replaykit.scoring.tally import Tally
from replaykit.seating import Seating
from replaykit.seats import ReplySource, SeatFailure, SeatReply, SeatRequest, TransportRequest, WireExchange
from replaykit.settings import TAU3_TEXT_1


class Clean(Protocol):
    """Takes known secrets out of plain data (the store's redactor)."""

    def value(self, value: Any) -> Any:
        """The value without secrets."""


class CleanReplies:
    """A reply source whose replies hold no known secret: a provider that echoes a key must not bring it into the
    conversation, because everything that follows would then depend on a value that is in no file."""

    def __init__(
        self, source: ReplySource, clean: Clean, on_secret: Callable[[TransportRequest], None], failures: bool = True
    ) -> None:
        self._source, self._clean, self._on_secret, self._failures = source, clean, on_secret, failures

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The source's reply, cleaned, or its failure."""
        try:
            reply = guarded(self._source, request, on_exchange)
        except SeatFailure as failure:
            if not self._failures:
                raise
            raise SeatFailure.from_dict(self._clean.value(failure.to_dict())) from None
        data = reply.to_dict()
        clean = self._clean.value(data)
        if clean == data:
            return reply
        self._on_secret(request)
        return SeatReply.from_dict(clean)


class Interrupted(BaseException):
    """The run was interrupted. Not an Exception, so that tau2 does not swallow it."""


class Interruptible:
    """A reply source of a run that may be interrupted from another thread.

    An interrupted run closes its connections. The failures that makes are its own and no finding about a provider, so
    they are not kept: the cassette stays interrupted and can be resumed.
    """

    def __init__(self, source: ReplySource, interruption: threading.Event) -> None:
        self._source, self._interruption = source, interruption

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The source's reply.

        Raises:
            Interrupted: the run is interrupted.
        """
        self._check()
        try:
            return self._source.ask(request, lambda exchange: self._keep(exchange, on_exchange))
        except Exception:  # what closed connections make of a transport is its own affair
            self._check()
            raise

    def _keep(self, exchange: WireExchange, on_exchange: Callable[[WireExchange], None]) -> None:
        if exchange.failure is not None:
            self._check()
        on_exchange(exchange)

    def _check(self) -> None:
        if self._interruption.is_set():
            raise Interrupted


class Keeping:
    """A record that also counts: what a journal is told, and what the seats used.

    Args:
        journal: Told everything.
        on_request: Told of each request, for a progress display.
    """

    def __init__(self, journal: Record, on_request: Callable[[], None] = lambda: None) -> None:
        self._journal, self._on_request = journal, on_request
        self.tally = Tally.empty()
        self._seat: dict[int, str] = {}

    def request(self, request: SeatRequest) -> None:
        """A native request."""
        self._seat[request.number] = request.seat
        self.tally.request(request.seat)
        self._journal.request(request)
        self._on_request()

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """A wire exchange."""
        self._journal.exchange(number, exchange)

    def reply(self, number: int, reply: SeatReply) -> None:
        """A reply."""
        self.tally.reply(self._seat[number], reply)
        self._journal.reply(number, reply)

    def failure(self, number: int, failure: SeatFailure) -> None:
        """A failure."""
        self.tally.failure(self._seat[number], failure)
        self._journal.failure(number, failure)

    def end(self, number: int, end: dict[str, Any]) -> None:
        """A request that was not sent."""
        self.tally.end(self._seat[number], end["reason"])
        self._journal.end(number, end)


def created_by() -> dict:
    """Which program writes."""
    return {"tool": "replaykit", "version": __version__, "python": platform.python_version()}


def header(engine: Engine, fleet: Fleet, panel: Panel, seating: Seating, case_seed: int) -> dict:
    """A cassette's header."""
    return {
        "panel": panel.id,
        "fleet_digest": fleet.digest,
        "engine": engine.identity.to_dict(),
        "settings": TAU3_TEXT_1.to_dict(),
        "budget": Budget().to_dict(),
        **seating.header,
        "seeds": {"case": case_seed, "trial": trial_seed(case_seed)},
        "created_by": created_by(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded episode."""

    path: Path
    panel: str
    result: EpisodeResult
    requests: int

    @property
    def trouble(self) -> str | None:
        """Why it was ended from outside, or None: a seat out of reach, a native request that disagrees with itself."""
        lost = self.result.lost_turn
        return lost.detail if lost and lost.termination in ("infrastructure_error", "unexpected_error") else None


def play(
    engine: Engine,
    panel: Panel,
    seating: Seating,
    journal: Any,
    case_seed: int,
    clean: Clean,
    sources: dict[str, ReplySource] | None = None,
    ledger: Ledger | None = None,
    on_request: Callable[[], None] = lambda: None,
    prompts: Prompts = NONE,
) -> EpisodeResult:
    """Play an episode into an open journal and close it.

    Args:
        sources: Used instead of the seating's (a resumed or forked episode answers its prefix from a cassette).
        ledger: Continued instead of a new one.
        prompts: In place of the learner's own.
    """
    secrets: list[Diagnostic] = []

    def note_secret(request: TransportRequest) -> None:
        secrets.append(Diagnostic("reply.secret_redacted", {"seat": request.seat, "number": request.number}))

    keeping = Keeping(journal, on_request)
    asked = {seat: CleanReplies(source, clean, note_secret) for seat, source in (sources or seating.sources).items()}
    gateway = Gateway(asked, keeping, ledger or Ledger(Budget(), time.monotonic))
    ask = prompts.asking(gateway.ask)
    result = engine.run(panel.domain, panel.scenario, trial_seed(case_seed), seating.models, ask)
    result = replace(result, diagnostics=[*result.diagnostics, *gateway.diagnostics, *secrets])
    states = policy_record.final(engine, panel, result)
    for state in states["turns"][:-1]:
        journal.state(state["turn"], state["digest"])
    journal.close(
        {
            "result": result.to_dict(),
            "policy_states": states,
            "policy_counts": policy.counts(states["final"]),
            "usage": keeping.tally.seats,
        }
    )
    return result
