"""Policy states of an episode on a panel: the pure rules of `policy`, fed with what the engine says of the panel."""

from __future__ import annotations

from functools import lru_cache

from replaykit import policy
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.fleet import Panel


def context(engine: Engine, panel: Panel) -> policy.PolicyContext:
    """What the rules need to know of a panel; write tools come from the engine's toolkit."""
    scenario = engine.scenarios(panel.domain)[panel.scenario]
    names = _tool_names(engine, panel.domain)
    return policy.PolicyContext(panel.domain, engine.write_tools(panel.domain), names, scenario.reference_actions)


@lru_cache(maxsize=8)
def _tool_names(engine: Engine, domain: str) -> frozenset[str]:
    return frozenset(tool["function"]["name"] for tool in engine.tool_schemas(domain))


def follow(engine: Engine, panel: Panel, result: EpisodeResult) -> tuple[list[dict], policy.PolicyState]:
    """``{"turn", "digest"}`` after each learner turn and at the end, and the state at the end, in one pass."""
    return policy.follow_episode(
        result.trajectory,
        context(engine, panel),
        result.lost_turn,
        result.termination,
        result.learner_state,
        result.customer_state,
    )


def final(engine: Engine, panel: Panel, result: EpisodeResult) -> dict:
    """The policy state at the end, as plain data, with the digests after each learner turn."""
    turns, state = follow(engine, panel, result)
    return {"turns": turns, "final": state.to_dict()}
