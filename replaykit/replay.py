"""Replay one cassette: the episode runs again on the recorded replies, and everything is compared.

The gateway is the one that recorded; what differs is the source of replies (the cassette) and who keeps the record (a
comparison). After a differing request the replay goes on with the recorded reply as long as the same seat asks, so
that a report also says what became of the rest; the first divergence is the one to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from replaykit import canonical, difference, policy, policy_record, settings, wire_replay
from replaykit.budget import BudgetSpent, Ledger
from replaykit.cassette import Cassette, RecordedRequest
from replaykit.divergence import SUGGESTING, Divergence, ReplayReport, without_suggestion
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.errors import EvidenceError
from replaykit.fleet import Fleet
from replaykit.gateway import Gateway
from replaykit.offline import offline
from replaykit.prompts import Prompts
from replaykit.recorded_terms import budget_of, limits, models, trial_seed
from replaykit.request_digest import RequestDigests
from replaykit.seats import SEATS, NotRecorded, SeatFailure, SeatReply, SeatRequest, TransportRequest, WireExchange

CHECKS = (
    "requests",
    "request count",
    "simulation",
    "database hash",
    "learner state",
    "customer state",
    "policy states",
    "reward",
    "termination",
    "diagnostics",
)


class ReplayStopped(BaseException):
    """The replay cannot go on: the cassette has no answer. Not an Exception, so that tau2 does not swallow it."""


class CassetteSource:
    """Answers from a cassette, by seat and position."""

    inert = True  # it does not look at what it is asked

    def __init__(self, requests: tuple[RecordedRequest, ...]) -> None:
        self._requests = requests

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """What was recorded for this request.

        Raises:
            SeatFailure: it failed then, so it fails now.
            BudgetSpent: a budget ended it.
            NotRecorded: an imported run does not hold it.
            ReplayStopped: nothing is recorded for it.
        """
        outcome = self._requests[request.number - 1].outcome
        if isinstance(outcome, SeatReply):
            return outcome
        if isinstance(outcome, SeatFailure):
            raise outcome
        if isinstance(outcome, dict) and outcome.get("reason") == "budget":
            raise BudgetSpent(str(outcome.get("limit")))
        if isinstance(outcome, dict) and outcome.get("reason") == "not_recorded":
            raise NotRecorded(outcome.get("termination"))
        raise ReplayStopped


class Comparison:
    """Keeps the record of a replay by comparing it with the cassette's.

    Args:
        interrupted: The recording did not end: that more is asked than was recorded is no divergence.
    """

    def __init__(self, requests: tuple[RecordedRequest, ...], interrupted: bool = False) -> None:
        self._requests, self._interrupted = requests, interrupted
        self._digests = RequestDigests()
        self.divergences: list[Divergence] = []
        self.asked = 0

    def request(self, request: SeatRequest) -> None:
        """Compare a native request with the recorded one.

        Raises:
            ReplayStopped: no request is recorded here, or another seat's.
        """
        beyond = request.number > len(self._requests)
        if beyond and self._interrupted:
            raise ReplayStopped
        self.asked += 1
        if beyond:
            self.divergences.append(_extra(request, len(self._requests)))
            raise ReplayStopped
        recorded = self._requests[request.number - 1]
        if recorded.seat != request.seat:
            self.divergences.append(_other_seat(request, recorded))
            raise ReplayStopped
        if self._digests.of(request) != recorded.digest:
            self.divergences.append(_request_divergence(request, recorded))

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """A cassette has no wire."""

    def reply(self, number: int, reply: SeatReply) -> None:
        """Replies are the cassette's own."""

    def failure(self, number: int, failure: SeatFailure) -> None:
        """Failures are the cassette's own."""

    def end(self, number: int, end: dict[str, Any]) -> None:
        """A request that was not sent must not have been sent then."""
        recorded = self._requests[number - 1]
        if recorded.outcome == end:
            return
        if isinstance(recorded.outcome, dict) and recorded.outcome.get("reason") == end["reason"]:
            first = difference.first(recorded.outcome, end)
            sentence = f"request {number} is refused now for another reason, first at {first.pointer}"
            found = Divergence("request", first.pointer, first.left, first.right, sentence, recorded.seat, number)
        else:
            sentence = f"request {number} is refused now ({end['reason']}) and was not when it was recorded"
            found = Divergence("request", "", None, end, sentence, recorded.seat, number)
        self.divergences.append(found)


LEVELS = ("seat", "wire")


def replay(cassette: Cassette, engine: Engine, fleet: Fleet, name: str, level: str = "seat") -> ReplayReport:
    """Replay a cassette and report.

    Args:
        name: How the report names it (the path as the user gave it).
        level: ``seat``, or ``wire``: run the transports' own code on the recorded HTTP as well.

    Raises:
        UsageError: its panel is not in the fleet.
        OfflineViolation: something opened a socket.
    """
    panel = fleet.panel(cassette.panel)
    comparison = Comparison(cassette.requests, cassette.interrupted)
    source = CassetteSource(cassette.requests)
    rules = settings.of_header(cassette.header["settings"])
    wire = wire_replay.WireReplay(cassette, source) if level == "wire" else None
    gateway = Gateway(
        dict.fromkeys(SEATS, wire or source), comparison, Ledger(budget_of(cassette), lambda: 0.0), rules, lambda: 0.0
    )
    ask, result = Prompts.of_header(cassette.header).asking(gateway.ask), None
    with offline():
        try:
            result = engine.run(
                panel.domain, panel.scenario, trial_seed(cassette), models(cassette), ask, limits(cassette)
            )
        except ReplayStopped:
            pass
    divergences = comparison.divergences
    if result is None and not divergences and not cassette.interrupted:
        divergences = [_sent_now(cassette.requests[comparison.asked - 1])]
    if result is not None:
        result.diagnostics.extend(gateway.diagnostics)
        divergences = [*divergences, *_after(cassette, comparison, result, engine, panel)]
    report = _report(cassette, name, divergences, comparison.asked, result, engine, fleet)
    return report if wire is None else _with_wire(report, wire)


def _with_wire(report: ReplayReport, wire: wire_replay.WireReplay) -> ReplayReport:
    """The report with what the transports showed; a level on which nothing was run again is not complete."""
    notes = [*report.notes, *wire.notes]
    if not wire.checked:
        notes.append("no wire exchange could be run again, so nothing is known of the wire")
    is_whole = wire.checked and wire.whole
    status = (
        "diverged" if wire.divergences else report.status if is_whole or report.status == "diverged" else "incomplete"
    )
    return replace(
        report,
        status=status,
        checked=(*report.checked, *(wire_replay.CHECKS if wire.checked else ())),
        divergences=(*report.divergences, *wire.divergences),
        notes=tuple(notes),
    )


def _after(
    cassette: Cassette, comparison: Comparison, result: EpisodeResult, engine: Engine, panel: Any
) -> list[Divergence]:
    found = []
    if comparison.asked < len(cassette.requests):
        found.append(_missing(cassette.requests[comparison.asked], comparison.asked))
    recorded = cassette.result
    if recorded is not None:
        found += _results(recorded, result)
        actual = policy_record.final(engine, panel, result)
        found += _policy_states(cassette.footer.get("policy_states"), actual) or _policy_records(cassette, actual)
    return found


def _policy_records(cassette: Cassette, actual: dict) -> list[Divergence]:
    """The states that were written turn by turn say the same as the footer's."""
    recorded = [{"turn": turn, "digest": digest} for turn, digest in cassette.states]
    return _compared("policy_state", recorded, [dict(turn) for turn in actual["turns"][:-1]])


def _policy_states(recorded: Any, actual: dict) -> list[Divergence]:
    """The first turn where the policy states part, then the final state."""
    turns = recorded.get("turns") if isinstance(recorded, dict) else None
    well_formed = isinstance(turns, list) and all(map(_is_turn, turns))
    parting = policy.first_parting(turns, actual["turns"]) if well_formed else None
    if parting is None:
        return _compared("policy_state", recorded, canonical.encode(actual))
    sentence = f"the policy state after message {parting['turn']} of the trajectory differs"
    pointer = canonical.pointer("turns", parting["turn"])
    return [Divergence("policy_state", pointer, parting["recorded"], parting["recomputed"], sentence)]


def _is_turn(entry: Any) -> bool:
    return isinstance(entry, dict) and type(entry.get("turn")) is int and isinstance(entry.get("digest"), str)


# What is compared of a result, in order: divergence kind -> members.
_MEMBERS = (
    ("simulation", ("trajectory", "steps", "errors", "seed")),
    ("initial_db_hash", ("initial_db_hash",)),
    ("final_db_hash", ("final_db_hash",)),
    ("db_changes", ("db_changes",)),
    ("learner_state", ("learner_state",)),
    ("customer_state", ("customer_state",)),
    ("reward", ("reward", "reward_info")),
    ("reference_actions", ("reference_actions",)),
    ("termination", ("termination",)),
    ("lost_turn", ("lost_turn",)),
    ("diagnostics", ("diagnostics",)),
)
# Found while recording or importing only: a provider that echoes a key does so once, and a replay has no results file.
_RECORDING_ONLY = ("reply.secret_redacted", "import.")


def _results(recorded: EpisodeResult, actual: EpisodeResult) -> list[Divergence]:
    left, right = recorded.to_dict(), actual.to_dict()
    left["diagnostics"] = [d for d in left["diagnostics"] if not d["name"].startswith(_RECORDING_ONLY)]
    if recorded.db_changes is None:  # a cassette from before rows were recorded: the hash stands for them
        left["db_changes"] = right["db_changes"]
    if canonical.ordered(left) == canonical.ordered(right):
        return []
    left, right = canonical.encode(left), canonical.encode(right)
    found = []
    for kind, members in _MEMBERS:
        found += _compared(kind, {m: left[m] for m in members}, {m: right[m] for m in members})
    return found


def _compared(kind: str, left: Any, right: Any) -> list[Divergence]:
    if canonical.ordered(left) == canonical.ordered(right):
        return []
    first = difference.first(left, right)
    place, values = first.pointer or "the top", f"{_said(first.left)} was recorded, {_said(first.right)} came now"
    sentence = f"{kind.replace('_', ' ')} differs at {place}: {values}"
    return [Divergence(kind, first.pointer, first.left, first.right, sentence)]


def _request_divergence(request: SeatRequest, recorded: RecordedRequest) -> Divergence:
    first = difference.first(recorded.native.to_dict(), request.to_dict())
    if first is None:
        raise EvidenceError(f"the digest of request {request.number} does not fit its recorded content")
    sentence = f"the {request.seat}'s request {request.number} differs at {first.pointer} ({_KIND_WORDS[first.kind]})"
    return Divergence(
        "request", first.pointer, first.left, first.right, sentence, request.seat, request.number, _environment(first)
    )


_KIND_WORDS = {
    "value": "another value",
    "type": "another type",
    "number": "the same number in another spelling",
    "missing": "recorded, but not asked now",
    "extra": "asked now, but not recorded",
    "order": "the same members in another order",
}


def _environment(first: difference.Difference) -> str | None:
    """Why two texts differ, where it is the two Pythons' doing alone."""
    texts = [without_suggestion(text) for text in (first.left, first.right) if isinstance(text, str)]
    is_alone = len(texts) == 2 and texts[0] == texts[1]
    return f"{SUGGESTING}: record and replay on the same side of 3.13" if is_alone else None


def _extra(request: SeatRequest, count: int) -> Divergence:
    sentence = f"the {request.seat} is asked a request {request.number}, but only {count} were recorded"
    return Divergence(
        "extra_request", "", difference.MISSING, request.to_dict(), sentence, request.seat, request.number
    )


def _other_seat(request: SeatRequest, recorded: RecordedRequest) -> Divergence:
    sentence = (
        f"request {request.number} goes to the {request.seat} now and went to the {recorded.seat} when it was recorded"
    )
    return Divergence("request", "/seat", recorded.seat, request.seat, sentence, request.seat, request.number)


def _sent_now(recorded: RecordedRequest) -> Divergence:
    """A request that is asked now as it was then, when it did not go out: there is no reply to go on with."""
    sentence = f"the {recorded.seat}'s request {recorded.number} goes out now, and did not when it was recorded"
    return Divergence("request", "", recorded.outcome, difference.MISSING, sentence, recorded.seat, recorded.number)


def _missing(recorded: RecordedRequest, asked: int) -> Divergence:
    sentence = (
        f"the {recorded.seat}'s request {recorded.number} was recorded, but the episode ended after {asked} requests"
    )
    return Divergence(
        "missing_request", "", recorded.native.to_dict(), difference.MISSING, sentence, recorded.seat, recorded.number
    )


def _report(
    cassette: Cassette,
    name: str,
    divergences: list[Divergence],
    asked: int,
    result: EpisodeResult | None,
    engine: Engine,
    fleet: Fleet,
) -> ReplayReport:
    status = "diverged" if divergences else "incomplete" if cassette.interrupted else "equal"
    return ReplayReport(
        cassette=name,
        panel=cassette.panel,
        digest=cassette.digest,
        status=status,
        requests=asked,
        checked=CHECKS if result is not None and not cassette.interrupted else CHECKS[:1],
        divergences=tuple(divergences),
        notes=tuple(_notes(cassette, engine, fleet)),
        final_db_hash=result.final_db_hash if result else None,
        reward=result.reward if result else None,
        termination=result.termination if result else None,
        engine=engine.identity.to_dict(),
    )


def _notes(cassette: Cassette, engine: Engine, fleet: Fleet) -> list[str]:
    notes = []
    recorded, actual = cassette.header["engine"], engine.identity.to_dict()
    if recorded != actual:
        parts = [k for k in actual if recorded.get(k) != actual[k]]
        notes.append(f"recorded on another engine ({', '.join(parts)} differ)")
    if cassette.header["fleet_digest"] != fleet.digest:
        notes.append("recorded with another fleet")
    if cassette.interrupted:
        notes.append("the recording is interrupted: only its whole records were replayed")
    return notes


def _said(value: Any) -> str:
    if value == difference.MISSING:
        return "nothing"
    text = canonical.ordered(value).decode("utf-8", "replace")
    return text if len(text) <= 120 else text[:117] + "…"
