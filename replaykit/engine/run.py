"""One episode on tau2's own orchestrator, with the seats put in at the places where tau2 asks a model."""

from __future__ import annotations

from dataclasses import dataclass
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
    """Subclasses of tau2's agent, user and orchestrator for one process."""

    native: Native
    guidelines: str

    def play(self, task: Any, environment: Any, tools: list, seed: int, models: SeatModels, seam: Seam, limits: tuple[int, int]) -> Ended:
        """Run the loop to its end."""
        lost: list[LostTurn] = []
        agent = self._agent(seam, lost)(tools=tools, domain_policy=environment.get_policy(), llm=models.learner[0], llm_args=models.learner[1])
        user = self._user(seam, lost)(tools=None, instructions=str(task.user_scenario), llm=models.customer[0], llm_args=models.customer[1])
        loop = ordered_loop(self.native.orchestrator.Orchestrator)(
            environment.get_domain_name(), agent, user, environment, task, max_steps=limits[0], max_errors=limits[1], seed=seed
        )
        loop.run()
        return self._ended(loop, environment, lost[0] if lost else None)

    def _ended(self, loop: Any, environment: Any, lost: LostTurn | None) -> Ended:
        trajectory, steps, termination = loop.trajectory, loop.step_count, loop.termination_reason.value
        if lost is not None:
            trajectory, steps, termination = trajectory[:-1], steps - 1, lost.termination
        return Ended(trajectory, termination, steps, loop.num_errors, loop.agent_state, loop.user_state, environment, lost)

    def _agent(self, seam: Seam, lost: list[LostTurn]) -> type:
        base, messages = self.native.agent.LLMAgent, self.native.messages
        asking = _asking(base, seam.generate_for("learner"))

        class SeatAgent(asking):  # type: ignore[misc, valid-type]
            def generate_next_message(self, message, state):
                try:
                    return super().generate_next_message(message, state)
                except TurnLost as end:
                    lost.append(end.turn)
                    return messages.AssistantMessage(role="assistant", content=_STOP), state

            @classmethod
            def is_stop(cls, message):
                return bool(lost)

        return SeatAgent

    def _user(self, seam: Seam, lost: list[LostTurn]) -> type:
        messages, guidelines = self.native.messages, self.guidelines
        asking = _asking(self.native.user.UserSimulator, seam.generate_for("customer"))
        state = flipping_once(self.native.user.UserState)

        class SeatUser(asking):  # type: ignore[misc, valid-type]
            @property
            def global_simulation_guidelines(self):
                return guidelines

            get_init_state = rebind(asking.get_init_state, UserState=state)

            def generate_next_message(self, message, state):
                try:
                    return super().generate_next_message(message, state)
                except TurnLost as end:
                    lost.append(end.turn)
                    return messages.UserMessage(role="user", content=_STOP), state

        return SeatUser


def _asking(base: type, generate: Any) -> type:
    """tau2's participant whose model call is a seat; the 0.2 line asks in another method than 1.0.1."""
    name = "_generate_next_message" if hasattr(base, "_generate_next_message") else "generate_next_message"
    return type(base.__name__, (base,), {name: rebind(getattr(base, name), generate=generate)})


def ordered_loop(orchestrator: type) -> type:
    """tau2's orchestrator with its trajectory in the order in which messages came about.

    tau2 sorts by naive local time stamps, so a clock that is set back in the middle of an episode would reorder it.
    """

    class OrderedOrchestrator(orchestrator):  # type: ignore[misc, valid-type]
        def get_trajectory(self):
            return list(self.trajectory)

    return OrderedOrchestrator
