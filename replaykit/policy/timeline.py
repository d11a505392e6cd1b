"""The policy state over a whole episode: after every learner turn, at the end, and where two runs part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replaykit.episode import LostTurn
from replaykit.policy.context import PolicyContext
from replaykit.policy.state import PolicyState
from replaykit.policy.tracker import PolicyTracker


def policy_states(
    trajectory: Sequence[Mapping],
    context: PolicyContext,
    lost_turn: LostTurn | None = None,
    termination: str | None = None,
    learner_state: Iterable[Mapping] | None = None,
    customer_state: Iterable[Mapping] | None = None,
) -> list[dict]:
    """The state's digest after every learner turn and at the end, in time linear in the trajectory.

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
    return [*states, {"turn": len(trajectory), "digest": tracker.digest()}]


def policy_timeline(trajectory: Sequence[Mapping], context: PolicyContext) -> list[tuple[int, PolicyState]]:
    """The state after every learner turn, for display; costs more than `policy_states`."""
    tracker, timeline = PolicyTracker(context), []
    for turn, message in enumerate(trajectory):
        tracker.feed(message)
        if message["role"] == "assistant":
            timeline.append((turn, tracker.state()))
    return timeline


def final_state(
    trajectory: Iterable[Mapping],
    context: PolicyContext,
    lost_turn: LostTurn | None = None,
    termination: str | None = None,
    learner_state: Iterable[Mapping] | None = None,
    customer_state: Iterable[Mapping] | None = None,
) -> PolicyState:
    """The state at the end of an episode (arguments as for `policy_states`)."""
    tracker = PolicyTracker(context)
    for message in trajectory:
        tracker.feed(message)
    tracker.finish(termination, lost_turn, learner_state, customer_state)
    return tracker.state()


def first_parting(recorded: Sequence[Mapping], recomputed: Sequence[Mapping]) -> dict | None:
    """The first turn where two runs' states part, or None.

    Args:
        recorded, recomputed: As `policy_states` returns them.

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
