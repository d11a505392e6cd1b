"""The labelled controls that stand in for the three seats.

An identity is a script: a list of replies of which the last one repeats. Which reply is due follows from the
conversation in the request alone (how often has this seat spoken already?), so that threads, retries, resumes and
restarts cannot move it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replaykit import canonical
from replaykit.controls.replies import Call, Reply
from replaykit.seats import SEATS

OPENING = "Hello, I need help with a request."
STOP = "Thank you. ###STOP###"
OFFER = "I can help with that."
GREETING = "Hi! How can I help you today?"


@dataclass(frozen=True, slots=True)
class Action:
    """One reference action of a scenario: a tool and its arguments."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the reference controls need to know of a scenario.

    Attributes:
        actions: The reference actions of the learner, in order.
        communicate: The information the learner has to report.
        assertions: The natural-language assertions the judge is asked about.
    """

    actions: tuple[Action, ...] = ()
    communicate: tuple[str, ...] = ()
    assertions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """A labelled control. ``control`` is always true: no reply of it says anything about a model.

    Attributes:
        name: Name of the set it belongs to, e.g. ``one-exchange``.
        kind: What it does, e.g. ``stop-after-one``.
        seat: ``learner``, ``customer`` or ``judge``.
        replies: The script; the last reply repeats.
        nonce_member: If set and the reply's content is a JSON object, the provider adds its nonce under this name.
    """

    name: str
    kind: str
    seat: str
    replies: tuple[Reply, ...]
    nonce_member: str | None = None

    control = True

    def __post_init__(self) -> None:
        if self.seat not in SEATS:
            raise ValueError(f"there is no seat {self.seat!r}; choose from {', '.join(SEATS)}")
        if not self.replies:
            raise ValueError(f"the control {self.name!r} of the {self.seat} has no replies; give at least one")

    @property
    def label(self) -> str:
        """What every artefact shows, e.g. ``control:one-exchange/customer/stop-after-one``."""
        return f"control:{self.name}/{self.seat}/{self.kind}"

    @property
    def digest(self) -> str:
        """Hex SHA-256 over everything that decides the replies."""
        return canonical.digest(self._facts() | {"replies": [r.to_dict() for r in self.replies]})

    def to_dict(self) -> dict:
        """Label and digest as plain data, for cassettes and certificates."""
        return self._facts() | {"label": self.label, "digest": self.digest}

    def reply(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        """The reply that is due after these messages (normal form: role, content, tool_calls, tool_call_id)."""
        return self.replies[min(replies_given(self.seat, messages), len(self.replies) - 1)]

    def _facts(self) -> dict:
        return {
            "name": self.name,
            "kind": self.kind,
            "seat": self.seat,
            "control": True,
            "nonce_member": self.nonce_member,
        }


def replies_given(seat: str, messages: Sequence[Mapping[str, Any]]) -> int:
    """How often the seat has spoken in this conversation. The greeting that opens a learner's history is not its own.

    The greeting is known by its place, before any user turn; where a wire demands a leading user turn, by its text.
    """
    own = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    if seat == "learner" and own and _is_greeting(messages, own[0]):
        return len(own) - 1
    return len(own)


def one_exchange(nonce_member: str | None = None) -> dict[str, Identity]:
    """The certification controls by seat: a scripted learner, a customer that stops after one exchange, a judge that
    returns an empty list (and, if asked, the provider's nonce beside it)."""
    return {
        "learner": Identity("one-exchange", "scripted-learner", "learner", (Reply(OFFER),)),
        "customer": Identity("one-exchange", "stop-after-one", "customer", (Reply(OPENING), Reply(STOP))),
        "judge": Identity("one-exchange", "empty-results", "judge", (Reply('{"results": []}'),), nonce_member),
    }


def reference(scenario: Scenario) -> dict[str, Identity]:
    """The reference controls by seat: the learner plays the scenario's actions one call a turn, then reports."""
    customer = (Reply(OPENING), Reply(STOP))
    return {
        "learner": Identity("reference", "reference-learner", "learner", _reference_replies(scenario)),
        "customer": Identity("reference", "stop-after-one", "customer", customer),
        "judge": Identity("reference", "all-met", "judge", (Reply(_all_met(scenario.assertions)),)),
    }


def scripted(seat: str, replies: Sequence[Reply | Mapping[str, Any]], name: str = "scripted") -> Identity:
    """A control from an explicit list of replies, as `Reply` values or as plain data (see `Reply.from_dict`).

    Raises:
        ValueError, KeyError, TypeError: no such seat, no replies, or data that is no reply.
    """
    script = tuple(r if isinstance(r, Reply) else Reply.from_dict(r) for r in replies)
    return Identity(name, "scripted", seat, script)


def _is_greeting(messages: Sequence[Mapping[str, Any]], first: int) -> bool:
    before = {m["role"] for m in messages[:first]}
    return "user" not in before or messages[first].get("content") == GREETING


def _reference_replies(scenario: Scenario) -> tuple[Reply, ...]:
    turns = [
        Reply(tool_calls=(Call(f"call_{i}", action.name, json.dumps(dict(action.arguments))),))
        for i, action in enumerate(scenario.actions)
    ]
    outcome = ", ".join(scenario.communicate) or "done"
    return (*turns, Reply(f"Here is the outcome: {outcome}"))


def _all_met(assertions: Sequence[str]) -> str:
    results = [{"expectedOutcome": a, "reasoning": "scripted", "metExpectation": True} for a in assertions]
    return json.dumps({"results": results})
