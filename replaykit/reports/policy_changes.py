"""What a message changed in the policy state, as short statements, each with a tone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replaykit.policy import PolicyState

TONES = ("good", "plain", "care", "bad")


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        kind: ``authenticated``, ``confirmation``, ``write``, ``transfer``, ``violation`` or ``format_error``.
        tone: One of `TONES`.
        text: A few words for a person.
    """

    kind: str
    tone: str
    text: str

    def to_dict(self) -> dict:
        """Plain data."""
        return {"kind": self.kind, "tone": self.tone, "text": self.text}


def changes(before: PolicyState | None, after: PolicyState) -> Iterator[Change]:
    """What the message between two states changed."""
    if after.authenticated_user is not None and after.authenticated_user != (before and before.authenticated_user):
        yield Change("authenticated", "good", f"authenticated: {after.authenticated_user}")
    yield from _confirmation(before, after)
    yield from _writes(before, after)
    yield from _transfer(before, after)
    for found in after.violations[len(before.violations) if before else 0 :]:
        yield Change("violation", "bad", f"violation: {found.rule}")
    for error in after.format_errors[len(before.format_errors) if before else 0 :]:
        yield Change("format_error", "bad", f"format error: {error.kind}")


def _confirmation(before: PolicyState | None, after: PolicyState) -> Iterator[Change]:
    verdict = after.confirmation
    if verdict.reason == "no_message" or (before is not None and before.confirmation == verdict):
        return
    if verdict.confirmed:
        yield Change("confirmation", "good", f"confirmed: “{verdict.word}”")
    elif verdict.reason != "no_affirmative" or (before is not None and before.confirmation.confirmed):
        yield Change("confirmation", "plain", f"not confirmed: {verdict.reason.replace('_', ' ')}")


def _writes(before: PolicyState | None, after: PolicyState) -> Iterator[Change]:
    known = {(w.turn, w.call) for w in before.pending_writes} if before else set()
    for write in after.pending_writes:
        if (write.turn, write.call) not in known:
            yield Change("write", "plain", f"write pending: {write.tool}")
    for write in after.done_writes[len(before.done_writes) if before else 0 :]:
        if write.succeeded is None:
            yield Change("write", "care", f"write without result: {write.tool}")
        elif not write.succeeded:
            yield Change("write", "care", f"write failed: {write.tool}")
        else:
            yield Change("write", "good", f"write done: {write.tool}{'' if write.on_reference else ' (off reference)'}")


def _transfer(before: PolicyState | None, after: PolicyState) -> Iterator[Change]:
    if after.transfer_succeeded and not (before and before.transfer_succeeded):
        yield Change("transfer", "care", "transferred to a human")
    elif after.transfer_attempted and not (before and before.transfer_attempted):
        yield Change("transfer", "plain", "transfer attempted")


def compact(state: PolicyState, authenticates: bool) -> dict:
    """The state in few members, for the side of a turn.

    Args:
        authenticates: The domain's policy asks for authentication.
    """
    return {
        "authenticates": authenticates,
        "user": state.authenticated_user,
        "confirmed": state.confirmation.confirmed,
        "confirmation": state.confirmation.reason,
        "pending_writes": len(state.pending_writes),
        "done_writes": len(state.done_writes),
        "transfer": "succeeded" if state.transfer_succeeded else "attempted" if state.transfer_attempted else None,
        "violations": len(state.violations),
        "format_errors": len(state.format_errors),
        "digest": state.digest,
    }
