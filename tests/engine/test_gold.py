"""The reference's known end gives the verdict tau2 gives when it plays the reference itself."""

from __future__ import annotations

import random

import pytest

from replaykit.engine import gold
from replaykit.errors import InternalError

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def trajectory(tau2, place, actions):
    """Messages of an episode that makes these calls."""
    types, environment, messages = tau2._native.messages, place.environment(), []
    for index, action in enumerate(actions):
        call = types.ToolCall(id=str(index), name=action["name"], arguments=action["arguments"])
        messages.append(types.AssistantMessage(role="assistant", tool_calls=[call]))
        messages.append(environment.get_response(call))
    return messages


def verdicts(tau2, place, scenario, actions):
    """tau2's verdict with both environments played, and with the known end."""
    task, known = place.tasks[scenario.id], tau2.reference_outcome(place.name, scenario.id)[0]
    shortened = gold.environments(
        tau2._native.environment.Environment, place.environment, known, len(scenario.reference_actions)
    )
    evaluator = tau2._native.env_evaluator.EnvironmentEvaluator
    messages = trajectory(tau2, place, actions)
    return [evaluator.calculate_reward(made, task, messages).model_dump() for made in (place.environment, shortened)]


@pytest.mark.parametrize("left_out", [0, 1], ids=["the whole reference", "all but its last write"])
def test_the_verdict_is_tau2s(tau2, domain, left_out):
    place, matches = tau2.domain(domain), []
    for scenario in random.Random(2).sample(list(tau2.scenarios(domain).values()), 30):
        writes = [a for a in scenario.reference_actions if a["name"] in place.write_tools]
        native, known = verdicts(tau2, place, scenario, writes[: len(writes) - left_out])
        assert known == native
        matches.append(known["db_check"]["db_match"])
    assert all(matches) if not left_out else not all(matches)


@pytest.mark.parametrize("surplus", [-1, 1], ids=["fewer", "more"])
def test_another_number_of_reference_actions_is_an_internal_error(tau2, domain, surplus):
    place = tau2.domain(domain)
    scenario = next(s for s in tau2.scenarios(domain).values() if s.reference_actions)
    count = len(scenario.reference_actions) + surplus
    made = gold.environments(tau2._native.environment.Environment, place.environment, "hash", count)
    with pytest.raises(InternalError, match="did not play exactly the reference actions"):
        tau2._native.env_evaluator.EnvironmentEvaluator.calculate_reward(made, place.tasks[scenario.id], [])


def test_verification_lets_tau2_play_the_reference_itself(tau2, domain, monkeypatch):
    place = tau2.domain(domain)
    task = next(iter(place.tasks.values()))
    assert tau2._environments(place, task) != place.environment
    monkeypatch.setattr(place.databases, "verify", True)
    assert tau2._environments(place, task) == place.environment
