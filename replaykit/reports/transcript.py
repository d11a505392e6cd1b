"""A cassette as a conversation: turns with their seats, requests and policy states. No IO, no tau2.

An interrupted recording has no stored trajectory; it is rebuilt from the last native request that shows it and the
replies that followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replaykit.cassette import UNFIT, Cassette, RecordedRequest
from replaykit.errors import EvidenceError
from replaykit.policy import PolicyContext, PolicyState, PolicyTracker
from replaykit.reports.policy_changes import Change, changes, compact
from replaykit.reports.rebuilding import rebuilt
from replaykit.reports.seams import Seam, seams
from replaykit.reports.shapes import members
from replaykit.seats import SeatFailure, SeatReply

SPEAKERS = {"assistant": "learner", "user": "customer", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the trajectory.

    Attributes:
        index: Its place in the trajectory.
        speaker: ``learner``, ``customer`` or ``tool``.
        message: The normalised message.
        request: Number of the request it answers, or None (the greeting, tool results).
        seam: What was done before it (a resume, a fork), or None.
        changes: What it changed in the policy state.
        state: The policy state after it, short; None when the policy rules are unknown.
        agrees: Whether the recomputed digest is the recorded one; None where nothing was recorded, and after the
            first that is not.
    """

    index: int
    speaker: str
    message: dict
    request: int | None
    seam: str | None
    changes: tuple[Change, ...]
    state: dict | None
    agrees: bool | None

    def to_dict(self) -> dict:
        """Plain data."""
        policy = {"changes": [c.to_dict() for c in self.changes], "state": self.state, "as_recorded": self.agrees}
        place = {"index": self.index, "speaker": self.speaker, "request": self.request, "seam": self.seam}
        return {**place, **self.message, "policy": policy}


@dataclass(frozen=True, slots=True)
class Aside:
    """A request that is no turn of the conversation.

    Attributes:
        number, seat: Of the request.
        kind: ``judge``, ``lost`` (a turn that tau2 could not use), ``failure``, ``refused``, ``unanswered``.
        text: What the seat said, or what happened.
    """

    number: int
    seat: str
    kind: str
    text: str

    def to_dict(self) -> dict:
        """Plain data."""
        return {"number": self.number, "seat": self.seat, "kind": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class Transcript:
    """An episode, ready to be shown.

    Attributes:
        cassette: Where it comes from.
        turns: In order.
        asides: Requests that are no turns, in order of their numbers.
        result: The stored result as plain data; None when interrupted.
        policy_note: Why policy states are not shown or not to be trusted, or None.
    """

    cassette: Cassette
    turns: tuple[Turn, ...]
    asides: tuple[Aside, ...]
    result: dict | None
    policy_note: str | None

    def to_dict(self) -> dict:
        """Plain data, in the order in which a person reads it."""
        cassette, footer = self.cassette, self.cassette.footer or {}
        return {
            "schema": "replaykit.transcript/1",
            "interrupted": cassette.interrupted,
            "digest": cassette.digest,
            "header": cassette.header,
            "notes": list(cassette.notes),
            "turns": [t.to_dict() for t in self.turns],
            "asides": [a.to_dict() for a in self.asides],
            "policy_note": self.policy_note,
            "usage": footer.get("usage"),
            "result": self.result and {k: v for k, v in self.result.items() if k not in _TOLD_ELSEWHERE},
        }


_TOLD_ELSEWHERE = ("trajectory", "learner_state", "customer_state")


def transcript(cassette: Cassette, domains: Mapping[str, Any]) -> Transcript:
    """The conversation of a cassette.

    Args:
        cassette: What was recorded.
        domains: Facts by domain (``write_tools``, ``tools``), as in the fleet; a domain may be missing.

    Raises:
        EvidenceError: the stored trajectory is not one.
    """
    result = None if cassette.footer is None else cassette.footer.get("result")
    if result is not None and not isinstance(result, dict):
        raise EvidenceError("the stored result is not an episode's result", cassette.path)
    trajectory = _rebuilt(cassette) if result is None else result.get("trajectory")
    _check(trajectory, cassette)
    lost = members((result or {}).get("lost_turn"))
    numbers = _request_numbers(trajectory, cassette.requests, lost.get("number"))
    rules = _context(cassette, domains, result)
    policies = [_NOTHING_KNOWN] * len(trajectory)
    if rules is not None:
        states = _states(trajectory, rules, result is not None)
        policies = _policies(states, _recorded_digests(cassette), rules.authentication_tools is not None)
    turns = _turns(trajectory, numbers, policies, seams(cassette.notes))
    asides = _asides(cassette.requests, set(numbers), lost)
    return Transcript(cassette, turns, asides, result, _policy_note(rules, turns, cassette))


_NOTHING_KNOWN: tuple = ((), None, None)


def _turns(trajectory: list, numbers: list, policies: list, waiting: list[Seam]) -> tuple[Turn, ...]:
    turns = []
    for index, (message, number, policy) in enumerate(zip(trajectory, numbers, policies, strict=True)):
        turns.append(Turn(index, SPEAKERS[message["role"]], message, number, _crossed(waiting, number), *policy))
    return tuple(turns)


def _policies(states: Iterable[PolicyState], recorded: Mapping[int, str], authenticates: bool) -> list[tuple]:
    """What each message changed, the state after it, and whether its digest is the recorded one."""
    policies, before, parted = [], None, False
    for index, state in enumerate(states):
        agrees = state.digest == recorded[index] if index in recorded and not parted else None
        parted = parted or agrees is False  # what follows a parting follows from it
        policies.append((tuple(changes(before, state)), compact(state, authenticates), agrees))
        before = state
    return policies


def _crossed(waiting: list[Seam], number: int | None) -> str | None:
    """The seams before a request; they leave the list."""
    crossed = []
    while number is not None and waiting and waiting[0].request <= number:
        crossed.append(waiting.pop(0).text)
    return "; ".join(crossed) or None


def _states(trajectory: Iterable[Mapping], rules: PolicyContext, reference_known: bool) -> Iterable[PolicyState]:
    tracker = PolicyTracker(rules)
    for message in trajectory:
        tracker.feed(message)
        yield tracker.state() if reference_known else _without_reference(tracker.state())


def _without_reference(state: PolicyState) -> PolicyState:
    """The state without what only the reference actions can tell."""
    writes = tuple(replace(w, on_reference=True) for w in state.done_writes)
    violations = tuple(v for v in state.violations if v.rule != "off_reference_write")
    return replace(state, done_writes=writes, violations=violations)


def _context(cassette: Cassette, domains: Mapping[str, Any], result: dict | None) -> PolicyContext | None:
    """The policy's rules: write tools from the fleet, tool names from the requests, the reference from the result."""
    domain = cassette.panel.partition("/")[0]
    if domain not in domains:
        return None
    facts = domains[domain]
    asked = next((r.native.tools for r in cassette.requests if r.seat == "learner" and r.native.tools), None)
    names = [t["function"]["name"] for t in asked] if asked else facts.tools
    reference = (result or {}).get("reference_actions") or []
    if not isinstance(reference, list) or not all(map(_is_call, reference)):
        raise EvidenceError("the stored reference actions are not actions", cassette.path)
    return PolicyContext(domain, frozenset(facts.write_tools), frozenset(names), tuple(reference))


def _recorded_digests(cassette: Cassette) -> dict[int, str]:
    if cassette.footer is None:
        return dict(cassette.states)
    states = cassette.footer.get("policy_states")
    turns = states.get("turns") if isinstance(states, dict) else None
    try:
        return {turn["turn"]: turn["digest"] for turn in turns or []}
    except (KeyError, TypeError) as error:
        raise EvidenceError("the stored policy states are not states", cassette.path) from error


def _policy_note(rules: PolicyContext | None, turns: Sequence[Turn], cassette: Cassette) -> str | None:
    if rules is None:
        return f"policy states are not shown: the fleet does not know the domain of {cassette.panel}"
    if cassette.interrupted:
        return "whether a write is off the reference is unknown: an interrupted recording holds no reference actions"
    parted = next((t.index for t in turns if t.agrees is False), None)
    if parted is None:
        return None
    return f"the policy state recomputed after message {parted} is not the recorded one: trust the recorded digests"


def _check(trajectory: Any, cassette: Cassette) -> None:
    if not isinstance(trajectory, list):
        raise EvidenceError("the stored trajectory is not a list of messages", cassette.path)
    for index, message in enumerate(trajectory):
        if not _is_message(message):
            raise EvidenceError(f"message {index} of the stored trajectory is not a message", cassette.path)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in SPEAKERS:
        return False
    calls = message.get("tool_calls") or []
    texts = isinstance(message.get("content"), (str, type(None)))
    return texts and isinstance(calls, list) and all(map(_is_call, calls))


def _is_call(call: Any) -> bool:
    return isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict)


def _request_numbers(trajectory: list, requests: Sequence[RecordedRequest], lost: int | None) -> list[int | None]:
    """The request that each message answers: replies and messages of a seat pair from the end, so that what no
    request made (the greeting) stays without one."""
    numbers: list[int | None] = [None] * len(trajectory)
    for role, seat in (("assistant", "learner"), ("user", "customer")):
        usable = [r for r in requests if r.seat == seat and isinstance(r.outcome, SeatReply)]
        replies = [r.number for r in usable if r.number != lost]
        places = [i for i, message in enumerate(trajectory) if message["role"] == role]
        for place, number in zip(reversed(places), reversed(replies), strict=False):
            numbers[place] = number
    return numbers


def _asides(requests: Sequence[RecordedRequest], turns: set, lost: Mapping) -> tuple[Aside, ...]:
    return tuple(Aside(r.number, r.seat, *_aside(r, lost)) for r in requests if r.number not in turns)


def _aside(request: RecordedRequest, lost: Mapping) -> tuple[str, str]:
    outcome = request.outcome
    if isinstance(outcome, SeatFailure):
        return "failure", f"{outcome.kind}: {outcome.message}"
    if isinstance(outcome, dict):
        return "refused", ", ".join(f"{k} {v}" for k, v in outcome.items())
    if outcome is None:
        return "unanswered", "asked, but no reply was recorded"
    if request.seat == "judge":
        return "judge", outcome.content or ""
    return "lost", _said(outcome) or str(lost.get("detail") or "")


def _said(reply: SeatReply) -> str:
    calls = [f"{call.name}({call.arguments})" for call in reply.tool_calls]
    return "\n".join(part for part in (reply.content or "", *calls) if part)


def _rebuilt(cassette: Cassette) -> list[dict]:
    try:
        return rebuilt(cassette.requests)
    except UNFIT as error:
        raise EvidenceError("a recorded request holds no messages of tau2's form", cassette.path) from error
