"""What a check asks of a transport: steps with the fault each one meets, as plain values fixed before the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replaykit import canonical
from replaykit.controls.faults import Fault
from replaykit.controls.replies import Call, Reply
from replaykit.seats import SEATS, SeatRequest

MODELS = {"learner": "learner-model-1", "customer": "customer-model-1", "judge": "judge-model-1"}
SEED = 626729
SYSTEM = {
    "learner": "You are a service agent. Follow the policy.",
    "customer": "You are a customer. Speak in short sentences.",
    "judge": "You grade whether expected outcomes were met.",
}
ANSWERS = {"learner": "I can help with that.", "customer": "Please change my booking.", "judge": '{"results": []}'}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a probe.

    Attributes:
        name: Names the step within the probe.
        messages: Native messages.
        fault: What the control does; None: its normal answer.
        settings: Given: the transport is asked directly with exactly these settings; None: through the gateway.
        pause_s: Seconds to wait before asking, scaled.
        think_s: Seconds the simulation itself takes before asking, scaled.
        healthy: Whether the control's normal or replaced answer must be delivered.
        expect: What the judging function looks up.
        group: Steps of one group, next to each other, are asked at the same time.
    """

    name: str
    seat: str
    messages: list[dict]
    tools: list[dict] | None = None
    tool_choice: str | None = None
    model: str | None = None
    seed: int | None = SEED
    fault: Fault | None = None
    settings: dict[str, Any] | None = None
    pause_s: float = 0.0
    think_s: float = 0.0
    healthy: bool = True
    expect: Any = None
    group: str | None = None

    def request(self, number: int) -> SeatRequest:
        """The native request."""
        arguments: dict[str, Any] = {"temperature": 0.0, "num_retries": 3}
        if self.seed is not None and self.seat != "judge":
            arguments["seed"] = self.seed
        choice = self.tool_choice or ("auto" if self.tools else None)
        model = self.model or MODELS[self.seat]
        return SeatRequest(self.seat, number, model, self.messages, self.tools, choice, arguments)

    def digest_of_request(self, number: int) -> str:
        """Ordered digest of the native request."""
        return canonical.ordered_digest(self.request(number).to_dict())


@dataclass(frozen=True, slots=True)
class Probe:
    """Steps asked one after another at a case of its own.

    Attributes:
        name: Unique within the check.
        steps: In order; `with_twins` puts the accept twins before them.
        options: For `capture.perform`: ``settings`` (transport settings to override), ``scaled`` (deadlines and
            pauses follow the profile's scale), ``sender`` (arguments), ``strict``, ``record`` (keep a cassette),
            ``budget`` (limits to override), ``again`` (for how many further requests the last fault goes on).
        perform: Another way to perform it than asking the steps.
    """

    name: str
    steps: tuple[Step, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    perform: Callable[..., dict] | None = None


def text(role: str, content: str | None) -> dict:
    """A native message without calls."""
    return {"role": role, "content": content} | ({"tool_calls": None} if role == "assistant" else {})


def hello(seat: str, content: str = "Hello, please help me.") -> list[dict]:
    """The shortest history of a seat."""
    return [text("system", SYSTEM[seat]), text("user", content)]


def call(id_: str, name: str, arguments: str, outer: str | None = None) -> dict:
    """A native tool call; its name comes twice."""
    return {
        "id": id_,
        "name": name if outer is None else outer,
        "function": {"name": name, "arguments": arguments},
        "type": "function",
    }


def calling(calls: Sequence[dict], content: str | None = None) -> dict:
    """A native assistant message with calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id_: str, content: str) -> dict:
    """A native tool result."""
    return {"role": "tool", "content": content, "tool_call_id": id_}


def tool(name: str, description: str = "Looks something up.") -> dict:
    """A native tool schema."""
    parameters = {
        "properties": {"key": {"title": "Key", "type": "string"}},
        "required": ["key"],
        "title": "parameters",
        "type": "object",
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def says(reply: Reply) -> Fault:
    """The control gives this reply instead of the one that is due."""
    return Fault("reply", {"reply": reply.to_dict()})


def calls_back(*calls: Call, content: str | None = None) -> Fault:
    """The control answers with tool calls."""
    return says(Reply(content, tuple(calls)))


def twins() -> tuple[Step, ...]:
    """The accept twins of every probe: each seat asks the same healthy request twice and must be answered twice."""
    return tuple(Step(f"twin-{seat}-{i}", seat, hello(seat, "Are you there?")) for seat in SEATS for i in (1, 2))


def with_twins(probe: Probe) -> tuple[Step, ...]:
    """All steps of a probe."""
    return (*twins(), *probe.steps)
