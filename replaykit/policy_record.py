"""Policy states of an episode on a panel: the pure rules of `policy`, fed with what the engine says of the panel."""

from __future__ import annotations

from replaykit import policy
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.fleet import Panel


def context(engine: Engine, panel: Panel) -> policy.PolicyContext:
    """What the rules need to know of a panel; write tools come from the engine's toolkit."""
    scenario = engine.scenarios(panel.domain)[panel.scenario]
    names = frozenset(t["function"]["name"] for t in engine.tool_schemas(panel.domain))
    return policy.PolicyContext(panel.domain, engine.write_tools(panel.domain), names, scenario.reference_actions)


def states(engine: Engine, panel: Panel, result: EpisodeResult) -> list[dict]:
    """``{"turn", "digest"}`` after each learner turn, and at the end."""
    return policy.policy_states(*_inputs(engine, panel, result))


def final(engine: Engine, panel: Panel, result: EpisodeResult) -> dict:
    """The policy state at the end, as plain data, with the digests after each learner turn."""
    return {"turns": states(engine, panel, result), "final": policy.final_state(*_inputs(engine, panel, result)).to_dict()}


def _inputs(engine: Engine, panel: Panel, result: EpisodeResult) -> tuple:
    rules = context(engine, panel)
    return result.trajectory, rules, result.lost_turn, result.termination, result.learner_state, result.customer_state
