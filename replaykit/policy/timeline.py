"""The policy state over a whole episode: after every learner turn, at the end, and where two runs part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replaykit.episode import LostTurn
from replaykit.policy.context import PolicyContext
from replaykit.policy.state import PolicyState
from replaykit.policy.tracker import PolicyTracker


def follow_episode(
    trajectory: Sequence[Mapping],
    context: PolicyContext,
    lost_turn: LostTurn | None = None,
    termination: str | None = None,
    learner_state: Iterable[Mapping] | None = None,
    customer_state: Iterable[Mapping] | None = None,
) -> tuple[list[dict], PolicyState]:
    """The state's digest after every learner turn and at the end, and the final state, in one linear pass.

    Args:
        trajectory: The normalised trajectory.
        context: The domain's tools and the reference solution.
        lost_turn: The turn that ended the episode from outside, if one did.
        termination: How the episode ended.
        learner_state, customer_state: The histories tau2 holds at the end; without them they are derived.

    Returns:
        ``{"turn": int, "digest": str}`` each: the index of the learner's message, and last the trajectory's length.
        A turn's digest is taken when the learner has spoken and before its calls run, so its writes are pending.
    """
    tracker, states = PolicyTracker(context), []
    for turn, message in enumerate(trajectory):
        tracker.feed(message)
        if message["role"] == "assistant":
            states.append({"turn": turn, "digest": tracker.digest()})
    tracker.finish(termination, lost_turn, learner_state, customer_state)
    final = tracker.state()
    return [*states, {"turn": len(trajectory), "digest": final.digest}], final


def policy_states(trajectory: Sequence[Mapping], context: PolicyContext, *ending: Any, **named: Any) -> list[dict]:
    """The digests of `follow_episode`, which has the arguments."""
    return follow_episode(trajectory, context, *ending, **named)[0]


def final_state(trajectory: Sequence[Mapping], context: PolicyContext, *ending: Any, **named: Any) -> PolicyState:
    """The final state of `follow_episode`, which has the arguments."""
    return follow_episode(trajectory, context, *ending, **named)[1]


def policy_timeline(trajectory: Sequence[Mapping], context: PolicyContext) -> list[tuple[int, PolicyState]]:
    """The state after every learner turn, for display; costs more than `follow_episode`."""
    tracker, timeline = PolicyTracker(context), []
    for turn, message in enumerate(trajectory):
        tracker.feed(message)
        if message["role"] == "assistant":
            timeline.append((turn, tracker.state()))
    return timeline


def first_parting(recorded: Sequence[Mapping], recomputed: Sequence[Mapping]) -> dict | None:
    """The first turn where two runs' states part, or None.

    Args:
        recorded, recomputed: As `follow_episode` returns them.

    Returns:
        ``{"turn": int, "recorded": digest | None, "recomputed": digest | None}``; None for a digest: that run had no
        learner turn there.
    """
    for ours, theirs in zip(recorded, recomputed, strict=False):
        if ours != theirs:
            turn = min(ours["turn"], theirs["turn"])
            return {"turn": turn, "recorded": _at(ours, turn), "recomputed": _at(theirs, turn)}
    shorter = min(len(recorded), len(recomputed))
    for rest, side in ((recorded[shorter:], "recorded"), (recomputed[shorter:], "recomputed")):
        if rest:
            return {"turn": rest[0]["turn"], "recorded": None, "recomputed": None, side: rest[0]["digest"]}
    return None


def _at(entry: Mapping, turn: int) -> str | None:
    return entry["digest"] if entry["turn"] == turn else None
