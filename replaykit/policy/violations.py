"""The five violations of the domain policies, each a rule over one turn, one call, or one call's outcome.

============================== ==================================================================================
``write_without_confirmation`` a write although the user's most recent message does not confirm (`confirmation`)
``write_before_authentication`` retail: a write before a user was found by e-mail or by name and zip code
``multiple_actions_in_turn``   several tool calls in one turn, or a tool call beside text to the user
``action_after_transfer``      a tool call after a transfer that succeeded
``off_reference_write``        a successful write that matches no action of the reference solution
============================== ==================================================================================

A call is judged when its turn to run comes: tau2 runs the calls of one message in order, so a write that follows a
successful authentication in the same message is authenticated (and the turn is a ``multiple_actions_in_turn``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RULES = (
    "write_without_confirmation",
    "write_before_authentication",
    "multiple_actions_in_turn",
    "action_after_transfer",
    "off_reference_write",
)

#: What each violation counts in a weighted sum. ``off_reference_write`` also fires for valid alternative solutions,
#: so that a caller may want to weigh it less.
DEFAULT_WEIGHTS: Mapping[str, float] = dict.fromkeys(RULES, 1.0)


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation.

    Attributes:
        rule: One of `RULES`.
        turn: Index of the learner's message in the trajectory.
        call: Position of the call in its message, or None when the whole turn is meant.
        tool: The called tool, or None.
    """

    rule: str
    turn: int
    call: int | None = None
    tool: str | None = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {"rule": self.rule, "turn": self.turn, "call": self.call, "tool": self.tool}


@dataclass(frozen=True, slots=True)
class Standing:
    """What held when a call's turn to run came.

    Attributes:
        confirmed: The user's most recent message confirms.
        authenticated: A user was authenticated, or None where the policy has no such rule.
        transferred: A transfer had succeeded.
    """

    confirmed: bool
    authenticated: bool | None
    transferred: bool


def acts_several_times(message: Mapping) -> bool:
    """Whether a learner's message holds several calls, or a call beside text."""
    calls = message.get("tool_calls") or ()
    return len(calls) > 1 or (len(calls) == 1 and bool((message.get("content") or "").strip()))


def rules_broken_by_call(is_write: bool, standing: Standing) -> list[str]:
    """The rules that a call breaks by being made, whatever the tool returns."""
    broken = []
    if is_write and not standing.confirmed:
        broken.append("write_without_confirmation")
    if is_write and standing.authenticated is False:
        broken.append("write_before_authentication")
    if standing.transferred:
        broken.append("action_after_transfer")
    return broken


def penalty(violations: Iterable[Violation], weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> float:
    """The weighted sum of violations; a rule without a weight counts 1.

    Args:
        violations: What was found.
        weights: Weight by rule, e.g. ``{"off_reference_write": 0.25}``.
    """
    return sum((weights.get(violation.rule, 1.0) for violation in violations), 0.0)
