"""Where tau2 asks a model, and what it gets instead: a question to one of the three seats.

tau2 asks at three places: agent, user simulator, assertion judge. Each calls a function named ``generate`` that its
module imported. `rebind` makes a copy of the asking method whose ``generate`` is ours, so tau2's modules stay as they
are and other users of tau2 in the process are not touched. A model call from anywhere else is refused (see
`refusal`).

What ``generate`` does natively (tau2 1.0.1): refuse an empty history entry, set ``num_retries`` to 3 when absent,
convert messages (assistant tool calls carry their name twice, arguments are re-serialised), send ``tool_choice`` only
with tools, read tool arguments with Python's json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from replaykit.engine import pins
from replaykit.engine.histories import Growing
from replaykit.seats import SeatReply, SeatRequest

Ask = Callable[[SeatRequest], SeatReply]


def rebind(function: FunctionType, **names: Any) -> FunctionType:
    """A copy of a function in which some of its global names mean something else."""
    copy = FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


class SeatMessages:
    """Converts tau2's message objects into native request dictionaries, each object of a seat's history once."""

    def __init__(self, message_types: ModuleType) -> None:
        self._types = message_types
        self._histories: dict[str, Growing] = {}

    def convert(self, seat: str, messages: list) -> list[dict]:
        """Native dictionaries for a seat's history; the same dictionaries for messages that were in it before.

        Raises:
            AssertionError: a system message without text, or a participant's message with neither text nor calls;
                natively the same.
        """
        if seat not in self._histories:
            self._histories[seat] = Growing(partial(_native_messages, self._types))
        return self._histories[seat](messages)


def _native_messages(types: ModuleType, messages: list) -> list[dict]:
    return [_native(types, message) for message in messages]


def _native(types: ModuleType, message: Any) -> dict:
    if isinstance(message, types.ToolMessage):
        return {"role": "tool", "content": message.content, "tool_call_id": message.id}
    calls = getattr(message, "tool_calls", None)
    if calls is None and not (message.content or "").strip():
        raise AssertionError(f"a {message.role} message in the history has neither text nor tool calls")
    if isinstance(message, types.AssistantMessage):
        return {
            "role": "assistant",
            "content": message.content,
            "tool_calls": [_native_call(c) for c in calls] if calls is not None else None,
        }
    return {"role": message.role, "content": message.content}


def _native_call(call: Any) -> dict:
    return {
        "id": call.id,
        "name": call.name,
        "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        "type": "function",
    }


class Seam:
    """The three seats of one episode as functions tau2 can call.

    Args:
        ask: Answers a native request, or raises `replaykit.episode.TurnLost`.
        message_types: tau2's ``data_model.message``.
        schemas: Tool schemas of the domain, built once.
    """

    def __init__(self, ask: Ask, message_types: ModuleType, schemas: list[dict]) -> None:
        self._ask, self._types, self._schemas = ask, message_types, schemas
        self._messages = SeatMessages(message_types)
        self.count = 0
        self.judge_replies: list[SeatReply] = []

    def generate_for(self, seat: str) -> Callable[..., Any]:
        """A stand-in for tau2's ``generate`` that asks the given seat."""

        def generate(model, messages, tools=None, tool_choice=None, call_name=None, **arguments):
            reply = self._ask(self._request(seat, model, messages, tools, tool_choice, arguments))
            if seat == "judge":
                self.judge_replies.append(reply)
            return self._message(reply)

        return generate

    def _request(
        self, seat: str, model: str, messages: list, tools: Any, tool_choice: str | None, arguments: dict
    ) -> SeatRequest:
        if arguments.get("num_retries") is None:
            arguments["num_retries"] = pins.NUM_RETRIES
        schemas = self._schemas if tools else None
        native = self._messages.convert(seat, messages)
        self.count += 1
        return SeatRequest(
            seat,
            self.count,
            model,
            native,
            schemas,
            "auto" if schemas and tool_choice is None else tool_choice,
            arguments,
        )

    def _message(self, reply: SeatReply) -> Any:
        types = self._types
        calls = [types.ToolCall(id=c.id, name=c.name, arguments=json.loads(c.arguments)) for c in reply.tool_calls]
        return types.AssistantMessage(
            role="assistant", content=reply.content, tool_calls=calls or None, cost=reply.cost, usage=_usage(reply)
        )


def _usage(reply: SeatReply) -> dict | None:
    """Token counts in tau2's two keys; None: not reported."""
    if not reply.usage or "prompt_tokens" not in reply.usage or "completion_tokens" not in reply.usage:
        return None
    return {"completion_tokens": reply.usage["completion_tokens"], "prompt_tokens": reply.usage["prompt_tokens"]}
