"""The conversation of an interrupted recording: no trajectory is stored, so requests and replies must tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replaykit.cassette import RecordedRequest
from replaykit.seats import SeatReply, arguments_object


def rebuilt(requests: Sequence[RecordedRequest]) -> list[dict]:
    """The trajectory as far as requests and replies show it."""
    last = max((i for i, r in enumerate(requests) if r.seat == "learner"), default=None)
    if last is not None:
        known = [m for m in map(_from_learner, requests[last].native.messages) if m]
        return known + _replies(requests[last:])
    known = [_flipped(m) for m in requests[0].native.messages if m.get("role") != "system"] if requests else []
    return known + _replies(requests)


def _replies(requests: Iterable[RecordedRequest]) -> list[dict]:
    answered = [r for r in requests if r.seat != "judge" and isinstance(r.outcome, SeatReply)]
    return [_from_reply("assistant" if r.seat == "learner" else "user", r.outcome) for r in answered]


def _from_reply(role: str, reply: SeatReply) -> dict:
    return _message(role, reply.content, [_call(c.id, c.name, c.arguments, role) for c in reply.tool_calls])


def _from_learner(message: Mapping) -> dict | None:
    role = message.get("role")
    if role == "tool":
        content = message.get("content")
        error = isinstance(content, str) and content.startswith("Error")  # tau2's own prefix
        result = {"role": "tool", "id": message.get("tool_call_id"), "content": content}
        return {**result, "requestor": "assistant", "error": error}
    if role not in ("assistant", "user"):
        return None
    asked = [(c.get("id"), c["function"]) for c in message.get("tool_calls") or []]
    calls = [_call(call_id, function["name"], function["arguments"], role) for call_id, function in asked]
    return _message(role, message.get("content"), calls)


def _flipped(message: Mapping) -> dict:
    """A message as the customer is shown it: there the learner is the user."""
    return _message("assistant" if message.get("role") == "user" else "user", message.get("content"), [])


def _message(role: str, content: Any, calls: list[dict]) -> dict:
    return {"role": role, "content": content or None, "tool_calls": calls or None}


def _call(call_id: Any, name: str, arguments: Any, requestor: str) -> dict:
    try:
        parsed = arguments_object(arguments)
    except (ValueError, TypeError):
        parsed = {"(not a JSON object)": arguments}
    return {"id": call_id, "name": name, "arguments": parsed, "requestor": requestor}
