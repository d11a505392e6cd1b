"""Which replies tau2 cannot use as a turn, and how the episode ends then. Pure functions of one reply.

Learner: a reply cut at the token limit or overflowing the context ends the episode as ``context_window_exceeded``; an
empty reply, or tool arguments that are not a JSON object, as ``agent_error``. Customer: an unusable turn ends it as
``user_error``; text cut at the limit is still text, and tau2 goes on with it. Judge: only a context overflow is judged
here (the reward becomes unknown); what tau2 cannot parse is found where tau2 parses it.

Without caps (see `replaykit.settings.OPEN`) nothing is lost to one: tau2 goes on with what came.

The presence of tool calls decides, never the label: servers finish a cut call with ``tool_calls`` and a whole one with
``stop``.
"""

from __future__ import annotations

from replaykit.episode import Diagnostic, LostTurn
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, arguments_object
from replaykit.settings import TransportSettings

_ERROR = {"learner": "agent_error", "customer": "user_error", "judge": None}
_OVERFLOW = {"learner": "context_window_exceeded", "customer": "user_error", "judge": None}


def judge_reply(
    request: SeatRequest, reply: SeatReply, settings: TransportSettings
) -> tuple[LostTurn | None, list[Diagnostic]]:
    """The turn if it is lost, and what is worth knowing about it otherwise."""
    overflow = _overflow(request, reply, settings)
    if overflow is not None or request.seat == "judge":
        return overflow, []
    limit = settings.output_tokens[request.seat]
    lost = _truncated(request, reply, settings) or _empty(request, reply) or _unusable_calls(request, reply, limit)
    return lost, [] if lost else _oddities(request, reply, limit)


def failed(request: SeatRequest, failure: SeatFailure) -> LostTurn:
    """The turn lost to a seat that gave no reply: an overflow in the provider's words, or out of reach."""
    if failure.kind == "context_overflow":
        return LostTurn(request.seat, request.number, "context_overflow", _OVERFLOW[request.seat], failure.message)
    return LostTurn(request.seat, request.number, failure.kind, "infrastructure_error", failure.message)


def not_recorded(request: SeatRequest, termination: str | None) -> LostTurn:
    """The turn whose reply an imported run does not hold."""
    return LostTurn(
        request.seat, request.number, "not_recorded", termination, "the imported run holds no reply to this request"
    )


def spent(request: SeatRequest, limit: str) -> LostTurn:
    """The turn that could not be asked because a budget was spent."""
    return LostTurn(request.seat, request.number, f"budget_{limit}", "timeout", f"the budget of {limit} is spent")


def _overflow(request: SeatRequest, reply: SeatReply, settings: TransportSettings) -> LostTurn | None:
    prompt = (reply.usage or {}).get("prompt_tokens")
    if settings.context_tokens is None or not isinstance(prompt, int) or prompt <= settings.context_tokens:
        return None
    detail = f"the provider counted {prompt} prompt tokens, above {settings.context_tokens}"
    return LostTurn(request.seat, request.number, "context_overflow", _OVERFLOW[request.seat], detail)


def _truncated(request: SeatRequest, reply: SeatReply, settings: TransportSettings) -> LostTurn | None:
    if reply.finish_reason != "length" or request.seat != "learner" or settings.context_tokens is None:
        return None
    return LostTurn(request.seat, request.number, "truncated", "context_window_exceeded", reply.content or "")


def _empty(request: SeatRequest, reply: SeatReply) -> LostTurn | None:
    if reply.tool_calls or (reply.content or "").strip():
        return None
    return LostTurn(request.seat, request.number, "empty", _ERROR[request.seat], reply.content or "")


def _unusable_calls(request: SeatRequest, reply: SeatReply, limit: int | None) -> LostTurn | None:
    for call in reply.tool_calls:
        if not isinstance(call.id, str) or not isinstance(call.name, str):
            return LostTurn(request.seat, request.number, "malformed_call", _ERROR[request.seat], f"{call.name!r}")
        try:
            arguments_object(call.arguments)
        except (ValueError, TypeError):
            return _bad_arguments(request, reply, call.arguments, limit)
    return None


def _bad_arguments(request: SeatRequest, reply: SeatReply, text: object, limit: int | None) -> LostTurn:
    if request.seat == "learner" and _at_limit(reply, limit):
        return LostTurn(request.seat, request.number, "truncated", "context_window_exceeded", str(text))
    return LostTurn(request.seat, request.number, "invalid_arguments", _ERROR[request.seat], str(text))


def _at_limit(reply: SeatReply, limit: int | None) -> bool:
    completed = (reply.usage or {}).get("completion_tokens")
    return limit is not None and isinstance(completed, int) and completed >= limit


def _oddities(request: SeatRequest, reply: SeatReply, limit: int | None) -> list[Diagnostic]:
    at = {"seat": request.seat, "number": request.number}
    found = []
    if reply.finish_reason == "length":
        found.append(Diagnostic("reply.truncated_text", at))
    elif _at_limit(reply, limit):
        found.append(Diagnostic("reply.at_limit", at))
    if reply.finish_reason == "tool_calls" and not reply.tool_calls:
        found.append(Diagnostic("reply.label_without_calls", at))
    if any(not c.id for c in reply.tool_calls):
        found.append(Diagnostic("reply.call_without_id", at))
    return found
