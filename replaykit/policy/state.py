"""The policy state: where the obligations of a domain policy stand at one point of an episode."""

from __future__ import annotations

from dataclasses import dataclass

from replaykit.policy.confirmation import Confirmation
from replaykit.policy.format_errors import FormatError
from replaykit.policy.violations import Violation


@dataclass(frozen=True, slots=True)
class Write:
    """One call of a write tool.

    Attributes:
        turn, call: Index of the message, position in it.
        tool: The tool.
        confirmed, authenticated: What held when its turn to run came (see `violations.Standing`).
        on_reference: It matches an action of the reference solution.
        succeeded: None while there is no result.
    """

    turn: int
    call: int
    tool: str
    confirmed: bool
    authenticated: bool | None
    on_reference: bool
    succeeded: bool | None = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__slots__}

    def verdicts(self) -> str:
        """What was judged before it ran, as a word for digests."""
        return f"{self.confirmed},{self.authenticated},{self.on_reference}"


@dataclass(frozen=True, slots=True)
class PolicyState:
    """Where the policy's obligations stand.

    Attributes:
        messages: Length of the trajectory so far.
        authenticated_user: The user id the last successful authentication gave, or None.
        confirmation: The verdict on the user's most recent message.
        pending_writes: Writes without a result.
        done_writes: Writes with one.
        transfer_attempted: The learner called the transfer tool, whatever it returned.
        transfer_succeeded: A transfer succeeded.
        violations, format_errors: In the order they arose.
        learner_state, customer_state: ``{"messages", "digest", "prompt_digest"}`` of the histories tau2 holds; the
            system prompt is known at the end only.
        termination: How the episode ended, or None before the end.
        digest: Hex SHA-256 over both histories and over every verdict in the order in which it arose.
    """

    messages: int
    authenticated_user: str | None
    confirmation: Confirmation
    pending_writes: tuple[Write, ...]
    done_writes: tuple[Write, ...]
    transfer_attempted: bool
    transfer_succeeded: bool
    violations: tuple[Violation, ...]
    format_errors: tuple[FormatError, ...]
    learner_state: dict
    customer_state: dict
    termination: str | None
    digest: str

    def to_dict(self) -> dict:
        """Plain data, JSON-ready."""
        return {
            "messages": self.messages,
            "authenticated_user": self.authenticated_user,
            "confirmation": self.confirmation.to_dict(),
            "pending_writes": [write.to_dict() for write in self.pending_writes],
            "done_writes": [write.to_dict() for write in self.done_writes],
            "transfer": {"attempted": self.transfer_attempted, "succeeded": self.transfer_succeeded},
            "violations": [violation.to_dict() for violation in self.violations],
            "format_errors": [error.to_dict() for error in self.format_errors],
            "learner_state": self.learner_state,
            "customer_state": self.customer_state,
            "termination": self.termination,
            "digest": self.digest,
        }
