"""What an episode ended in, as plain values.

The *normalised trajectory* is tau2's message list as dictionaries with a fixed set of keys, free of clocks and
random ids, so that two runs of the same episode give the same bytes. One message is

* assistant: ``{"role": "assistant", "content": str|None, "tool_calls": [CALL, ...]|None}``
* user:      ``{"role": "user", "content": str|None, "tool_calls": [CALL, ...]|None}``
* tool:      ``{"role": "tool", "id": str, "content": str|None, "requestor": "assistant"|"user", "error": bool}``

with ``CALL = {"id": str, "name": str, "arguments": dict, "requestor": "assistant"|"user"}``. The first message is
tau2's own greeting. Usage and cost are kept beside the replies, not in the trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Termination reasons, tau2 1.0.1's own names.
TERMINATIONS = (
    "user_stop",
    "agent_stop",
    "max_steps",
    "too_many_errors",
    "timeout",
    "agent_error",
    "user_error",
    "infrastructure_error",
    "context_window_exceeded",
    "unexpected_error",
)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A named, non-fatal finding kept beside a result.

    Attributes:
        name: Dotted and stable, e.g. ``judge.all_true_default``.
        detail: What a person needs to know, one sentence, or structured data.
    """

    name: str
    detail: Any = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {"name": self.name} if self.detail is None else {"name": self.name, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class LostTurn:
    """A turn that tau2 could not use, so that it never entered the trajectory.

    Attributes:
        seat: Whose turn it was.
        number: The request number.
        reason: ``truncated``, ``context_overflow``, ``empty``, ``invalid_arguments``, ``malformed_call``,
            ``unreachable``, ``budget_<limit>``, ``tool_name_mismatch``.
        termination: The termination reason the episode ends with; None when it stays as tau2 had it (a judge reply).
        detail: The raw text that was lost, or what the seat's failure said.
    """

    seat: str
    number: int
    reason: str
    termination: str | None
    detail: str = ""

    def to_dict(self) -> dict:
        """Plain data."""
        return {
            "seat": self.seat,
            "number": self.number,
            "reason": self.reason,
            "termination": self.termination,
            "detail": self.detail,
        }


class TurnLost(Exception):
    """Raised by the gateway into the engine: the turn cannot be used; the episode ends here."""

    def __init__(self, turn: LostTurn) -> None:
        super().__init__(turn.reason)
        self.turn = turn


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """How an episode ended.

    Attributes:
        trajectory: The normalised trajectory (see the module's text).
        termination: One of `TERMINATIONS`.
        steps: tau2's step count.
        errors: Tool messages with an error, tau2's own count.
        initial_db_hash, final_db_hash: tau2's database hashes, hex SHA-256.
        reward: tau2's reward, or None: unknown (the judge could not be parsed, the episode did not run).
        reward_info: tau2's reward information as plain data (checks, breakdown, basis), or None.
        learner_state, customer_state: The conversation states tau2 holds, as normalised messages.
        reference_actions: ``{"name", "arguments", "requestor", "outcome": "ok"|"raised", "error": str|None}`` each.
        lost_turn: The turn that ended the episode from outside tau2, if one did.
        diagnostics: Findings, in the order they arose.
        seed: The trial seed.
        db_changes: Database rows that differ from the untouched database, as `replaykit.database_rows` has them:
            table -> key -> ``{"before": row|None, "after": row|None}`` with the members that differ. None: not
            recorded (cassettes written before it was).
    """

    trajectory: list[dict]
    termination: str
    steps: int
    errors: int
    initial_db_hash: str
    final_db_hash: str
    reward: float | None
    reward_info: dict | None
    learner_state: list[dict]
    customer_state: list[dict]
    reference_actions: list[dict]
    lost_turn: LostTurn | None
    seed: int
    diagnostics: list[Diagnostic] = field(default_factory=list)
    db_changes: dict[str, dict[str, dict]] | None = None

    def to_dict(self) -> dict:
        """Plain data in a fixed key order, JSON-ready after `canonical.encode`."""
        return {
            "trajectory": self.trajectory,
            "termination": self.termination,
            "steps": self.steps,
            "errors": self.errors,
            "initial_db_hash": self.initial_db_hash,
            "final_db_hash": self.final_db_hash,
            "reward": self.reward,
            "reward_info": self.reward_info,
            "learner_state": self.learner_state,
            "customer_state": self.customer_state,
            "reference_actions": self.reference_actions,
            "lost_turn": self.lost_turn.to_dict() if self.lost_turn else None,
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            "seed": self.seed,
            "db_changes": self.db_changes,
        }
