"""Evaluation type ALL by reward basis, as tau2 1.0.1 combines its evaluators, and every verdict as plain data.

The component evaluators are tau2's own; the combination is written here because the packaged 0.2 line has none that
takes the judge into account. A judge reply that tau2 cannot parse leaves the reward unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MethodType, SimpleNamespace
from typing import Any

from replaykit.engine.native import Native
from replaykit.engine.seam import rebind
from replaykit.episode import Diagnostic, LostTurn, TurnLost
from replaykit.errors import ReplaykitError

NORMAL_ENDS = ("agent_stop", "user_stop")


@dataclass(slots=True)
class Verdict:
    """What evaluation made of an episode; ``lost`` is the judge's turn where an imported run does not hold it."""

    reward: float | None
    info: dict
    diagnostics: list[Diagnostic] = field(default_factory=list)
    lost: LostTurn | None = None


def premature(termination: str) -> Verdict:
    """tau2's verdict on an episode that did not end normally: reward 0, nothing evaluated."""
    return Verdict(
        0.0, {"reward_basis": None, "note": f"Simulation terminated prematurely. Termination reason: {termination}"}
    )


def evaluate(
    native: Native,
    task: Any,
    trajectory: list,
    new_environment: Callable[..., Any],
    state_trajectory: list,
    judge: Callable,
    judge_model: tuple[str, dict],
) -> Verdict:
    """Run all evaluators that the task's reward basis names; the others are kept as facts.

    Args:
        trajectory: tau2's message objects.
        new_environment: Makes a fresh environment.
        state_trajectory: The messages to rebuild the final state from (see `corrections.mutating_only`).
        judge: The judge seat's ``generate``.
        judge_model: Model name and arguments the judge is asked with.

    Raises:
        TurnLost: the judge's seat could not be asked.
        ReplaykitError: what asking it raised besides.
    """
    criteria = task.evaluation_criteria
    if criteria is None:
        return Verdict(1.0, {"reward_basis": None, "note": "No evaluation criteria"})
    basis = [b.value for b in criteria.reward_basis]
    parts = {
        "env": native.env_evaluator.EnvironmentEvaluator.calculate_reward(new_environment, task, state_trajectory),
        "action": native.action_evaluator.ActionEvaluator.calculate_reward(task=task, full_trajectory=trajectory),
        "communicate": native.communicate_evaluator.CommunicateEvaluator.calculate_reward(
            task=task, full_trajectory=trajectory
        ),
    }
    diagnostics: list[Diagnostic] = []
    unknown, lost = False, None
    if "NL_ASSERTION" in basis:
        try:
            parts["judge"] = _judge(native, judge, judge_model)(task=task, full_trajectory=trajectory)
        except TurnLost as end:
            if end.turn.reason != "not_recorded":
                raise
            unknown, lost = True, end.turn
        except ReplaykitError:  # ours: a full disk, a transport that cannot ask; it says nothing of the judge's reply
            raise
        except Exception as error:  # tau2's parser lets any exception escape; which one is part of the finding
            unknown = True
            diagnostics.append(
                Diagnostic("judge.unparseable", {"raised": type(error).__name__, "message": str(error)[:500]})
            )
    return Verdict(None if unknown else _product(basis, parts), _plain(basis, parts, unknown), diagnostics, lost)


def _judge(native: Native, judge: Callable, judge_model: tuple[str, dict]) -> Callable[..., Any]:
    """The verdict of tau2's assertion evaluator with the judge's seat as its model call; its module is not touched.

    Both are class methods; what the first finds on its class is all that it needs of it.
    """
    evaluator = native.judge_evaluator.NLAssertionsEvaluator
    asked = rebind(
        evaluator.evaluate_nl_assertions.__func__,
        generate=judge,
        DEFAULT_LLM_NL_ASSERTIONS=judge_model[0],
        DEFAULT_LLM_NL_ASSERTIONS_ARGS=judge_model[1],
    )
    seated = SimpleNamespace(evaluate_nl_assertions=MethodType(asked, evaluator))
    return MethodType(evaluator.calculate_reward.__func__, seated)


_PART_OF = {
    "DB": "env",
    "ENV_ASSERTION": "env",
    "ACTION": "action",
    "COMMUNICATE": "communicate",
    "NL_ASSERTION": "judge",
}
_ORDER = (
    ("env", ("DB", "ENV_ASSERTION")),
    ("action", ("ACTION",)),
    ("judge", ("NL_ASSERTION",)),
    ("communicate", ("COMMUNICATE",)),
)


def _product(basis: list[str], parts: dict[str, Any]) -> float:
    reward = 1.0
    for part, members in _ORDER:
        if set(members) & set(basis):
            reward *= parts[part].reward
    return reward


def _plain(basis: list[str], parts: dict[str, Any], unknown: bool) -> dict:
    """tau2's checks as plain data."""
    env, action, communicate, judge = (parts.get(k) for k in ("env", "action", "communicate", "judge"))
    breakdown: dict[str, float | None] = {}
    for part, members in _ORDER:
        if part in parts and set(members) & set(basis):
            breakdown |= {k.value: v for k, v in (parts[part].reward_breakdown or {}).items()}
    if unknown:
        breakdown["NL_ASSERTION"] = None
    return {
        "reward_basis": basis,
        "breakdown": breakdown,
        "db": {"match": env.db_check.db_match, "reward": env.db_check.db_reward} if env.db_check else None,
        "actions": [
            {"name": c.action.name, "arguments": c.action.arguments, "match": c.action_match}
            for c in action.action_checks or []
        ],
        "communicate": [{"info": c.info, "met": c.met} for c in communicate.communicate_checks or []],
        "assertions": None
        if judge is None
        else [
            {"assertion": c.nl_assertion, "met": c.met, "justification": c.justification}
            for c in judge.nl_assertions or []
        ],
    }
