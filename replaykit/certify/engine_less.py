"""Episodes without tau2: a script that plays the seats, and a queue that works within a wall limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from replaykit.engine.protocol import EngineIdentity, Scenario, SeatModels
from replaykit.episode import Diagnostic, EpisodeResult, TurnLost
from replaykit.seats import SeatReply, SeatRequest

GREETING = "Hi! How can I help you today?"
_HASH = "0" * 64
_TURNS = 6


class ScriptEngine:
    """An engine whose episodes are a greeting, then customer and learner in turn until the customer stops.

    It asks natively as tau2 does (each message dictionary once, growing histories), asks the judge where the scenario
    needs it, and takes an empty list of results as all true, as tau2 does.

    Args:
        tools: The learner's tools.
        judged: Ids of the scenarios that need the judge.
        order: Order of the tools as sent; the identity unless a known-bad replaces it.
    """

    def __init__(self, tools: list[dict], judged: Sequence[str] = (), order: Callable[[list], list] = list) -> None:
        self._tools, self._judged, self._order = tools, frozenset(judged), order
        self.identity = EngineIdentity("script", "replaykit", "1", "script", _HASH, {}, (), "any")

    def scenarios(self, domain: str) -> dict[str, Scenario]:
        """Scenarios ``0`` to ``9``."""
        return {str(i): self._scenario(domain, str(i)) for i in range(10)}

    def policy(self, domain: str) -> str:
        """The policy text."""
        return "Be kind."

    def tool_schemas(self, domain: str) -> list[dict]:
        """The tools."""
        return self._tools

    def write_tools(self, domain: str) -> frozenset[str]:
        """None."""
        return frozenset()

    def reference_outcome(self, domain: str, scenario_id: str) -> tuple[str, list[dict]]:
        """Nothing changes."""
        return _HASH, []

    def run(
        self,
        domain: str,
        scenario_id: str,
        seed: int,
        models: SeatModels,
        ask: Callable[[SeatRequest], SeatReply],
        limits: Any = None,
    ) -> EpisodeResult:
        """Play one episode."""
        return _Play(self._order(self._tools), scenario_id, seed, models, ask).result(scenario_id in self._judged)

    def _scenario(self, domain: str, id_: str) -> Scenario:
        judged = id_ in self._judged
        return Scenario(
            domain,
            id_,
            ("DB", "NL_ASSERTION") if judged else ("DB",),
            ("It is done.",) if judged else (),
            (),
            (),
            _HASH,
        )


class _Play:
    """One episode of the script."""

    def __init__(
        self, tools: list, scenario: str, seed: int, models: SeatModels, ask: Callable[[SeatRequest], SeatReply]
    ) -> None:
        self._tools, self._seed, self._models, self._ask, self._count = tools, seed, models, ask, 0
        learner = {"role": "system", "content": "You are a service agent.\n<policy>\nBe kind.\n</policy>"}
        customer = {"role": "system", "content": f"You are customer {scenario}."}
        greeting = {"role": "assistant", "content": GREETING, "tool_calls": None}
        self._learner, self._customer = [learner, greeting], [customer, {"role": "user", "content": GREETING}]
        self._trajectory: list[dict] = [{"role": "assistant", "content": GREETING, "tool_calls": None}]
        self._diagnostics: list[Diagnostic] = []

    def result(self, judged: bool) -> EpisodeResult:
        lost, termination = None, "max_steps"
        try:
            termination = self._turns()
            if judged:
                self._judge()
        except TurnLost as end:
            lost, termination = end.turn, end.turn.termination or termination
        return EpisodeResult(
            self._trajectory,
            termination,
            len(self._trajectory) - 1,
            0,
            _HASH,
            _HASH,
            None,
            None,
            self._learner[1:],
            self._customer[1:],
            [],
            lost,
            self._seed,
            self._diagnostics,
            {},
        )

    def _turns(self) -> str:
        for _ in range(_TURNS):
            said = self._say("customer", self._customer, None)
            self._customer.append({"role": "assistant", "content": said, "tool_calls": None})
            self._trajectory.append({"role": "user", "content": said, "tool_calls": None})
            if "###STOP###" in said:
                return "user_stop"
            self._learner.append({"role": "user", "content": said})
            answer = self._say("learner", self._learner, self._tools)
            self._learner.append({"role": "assistant", "content": answer, "tool_calls": None})
            self._trajectory.append({"role": "assistant", "content": answer, "tool_calls": None})
            self._customer.append({"role": "user", "content": answer})
        return "max_steps"

    def _judge(self) -> None:
        import json

        asked = [
            {"role": "system", "content": "Grade the outcome."},
            {"role": "user", "content": "Outcomes: It is done."},
        ]
        text = self._say("judge", asked, None)
        if json.loads(text or "{}").get("results", []) == []:
            self._diagnostics.append(Diagnostic("judge.all_true_default"))

    def _say(self, seat: str, messages: list[dict], tools: list | None) -> str:
        self._count += 1
        model, arguments = getattr(self._models, seat)
        arguments = {**arguments, "num_retries": 3} | ({} if seat == "judge" else {"seed": self._seed})
        request = SeatRequest(seat, self._count, model, list(messages), tools, "auto" if tools else None, arguments)
        return self._ask(request).content or ""


def queue(
    panels: Sequence[Any], work: Callable[[Any], Any], wall_s: float, clock: Callable[[], float] = time.monotonic
) -> list[tuple[Any, Any]]:
    """Work through panels in order; what cannot start before the wall stays in the list with None: incomplete.

    Returns:
        ``(panel, result)`` of each panel, in order, none left out.
    """
    began = clock()
    return [(panel, work(panel) if clock() - began < wall_s else None) for panel in panels]
