"""One episode on tau2's own orchestrator, with the seats put in at the places where tau2 asks a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from replaykit.engine.histories import flipping_once
from replaykit.engine.native import Native
from replaykit.engine.protocol import SeatModels
from replaykit.engine.seam import Seam, rebind
from replaykit.episode import LostTurn, TurnLost

# tau2 1.0.1: agents never stop by themselves; only an internal stop message ends the loop for a lost learner turn.
_STOP = "###STOP###"


@dataclass(slots=True)
class Ended:
    """tau2's loop has ended.

    Attributes:
        trajectory: tau2's message objects in the order they came about, without internal stop messages.
        lost: The turn that ended it from outside, or None.
    """

    trajectory: list
    termination: str
    steps: int
    errors: int
    learner_state: Any
    customer_state: Any
    environment: Any
    lost: LostTurn | None


@dataclass(frozen=True, slots=True)
class Participants:
    """tau2's agent, user and orchestrator with the seats in them.

    Their classes are made once a process: a class is a cycle, and would keep its episode alive until it is collected.
    """

    native: Native
    guidelines: str

    def play(
        self,
        task: Any,
        environment: Any,
        tools: list,
        seed: int,
        models: SeatModels,
        seam: Seam,
        limits: tuple[int, int],
    ) -> Ended:
        """Run the loop to its end."""
        lost: list[LostTurn] = []
        agent = seat_agent(self.native.agent.LLMAgent, self.native.messages)(
            tools=tools, domain_policy=environment.get_policy(), llm=models.learner[0], llm_args=models.learner[1]
        )
        agent.seat(seam.generate_for("learner"), lost)
        user = seat_user(
            self.native.user.UserSimulator, self.native.user.UserState, self.native.messages, self.guidelines
        )(tools=None, instructions=str(task.user_scenario), llm=models.customer[0], llm_args=models.customer[1])
        user.seat(seam.generate_for("customer"), lost)
        loop = ordered_loop(self.native.orchestrator.Orchestrator)(
            environment.get_domain_name(),
            agent,
            user,
            environment,
            task,
            max_steps=limits[0],
            max_errors=limits[1],
            seed=seed,
        )
        loop.run()
        return self._ended(loop, environment, lost[0] if lost else None)

    def _ended(self, loop: Any, environment: Any, lost: LostTurn | None) -> Ended:
        trajectory, steps, termination = loop.trajectory, loop.step_count, loop.termination_reason.value
        if lost is not None:
            trajectory, steps, termination = trajectory[:-1], steps - 1, lost.termination
        return Ended(
            trajectory, termination, steps, loop.num_errors, loop.agent_state, loop.user_state, environment, lost
        )


@cache
def _asking(base: type) -> type:
    """tau2's participant whose model call is the seat it is given; the 0.2 line asks in another method than 1.0.1."""
    name = "_generate_next_message" if hasattr(base, "_generate_next_message") else "generate_next_message"
    method = getattr(base, name)

    class Asking(base):  # type: ignore[misc, valid-type]
        def seat(self, generate: Callable[..., Any], lost: list[LostTurn]) -> None:
            """Put a seat in: who answers, and where a lost turn is noted."""
            self.ask, self.lost = rebind(method, generate=generate), lost

    def ask(self, *arguments: Any, **named: Any) -> Any:
        return self.ask(self, *arguments, **named)

    setattr(Asking, name, ask)
    return Asking


@cache
def seat_agent(base: type, messages: Any) -> type:
    """tau2's agent on the learner's seat."""

    class SeatAgent(_asking(base)):  # type: ignore[misc]
        def generate_next_message(self, message, state):
            try:
                return super().generate_next_message(message, state)
            except TurnLost as end:
                self.lost.append(end.turn)
                return messages.AssistantMessage(role="assistant", content=_STOP), state

        def is_stop(self, message):
            return bool(self.lost)

    return SeatAgent


@cache
def seat_user(base: type, state_class: type, messages: Any, guidelines: str) -> type:
    """tau2's user simulator on the customer's seat."""

    class SeatUser(_asking(base)):  # type: ignore[misc]
        get_init_state = rebind(base.get_init_state, UserState=flipping_once(state_class))

        @property
        def global_simulation_guidelines(self):
            return guidelines

        def generate_next_message(self, message, state):
            try:
                return super().generate_next_message(message, state)
            except TurnLost as end:
                self.lost.append(end.turn)
                return messages.UserMessage(role="user", content=_STOP), state

    return SeatUser


@cache
def ordered_loop(orchestrator: type) -> type:
    """tau2's orchestrator with its trajectory in the order in which messages came about.

    tau2 sorts by naive local time stamps, so a clock that is set back in the middle of an episode would reorder it.
    """

    class OrderedOrchestrator(orchestrator):  # type: ignore[misc, valid-type]
        def get_trajectory(self):
            return list(self.trajectory)

    return OrderedOrchestrator
