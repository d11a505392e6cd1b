"""The six format errors of a learner.

========================= =====================================================================================
``unparsed_tool_call``    tool-call markup left in a message to the user (`markup`)
``unknown_tool``          a call to a tool the domain does not have
``invalid_arguments``     arguments the tool rejected (`rejection`), or that were no JSON object (the turn is lost)
``empty_message``         neither text nor tool calls
``truncated_generation``  cut at the per-turn token limit
``protocol_error``        the episode ended with ``agent_error`` and no other error explains it
========================= =====================================================================================

Business errors that tools return are none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replaykit.episode import LostTurn
from replaykit.policy.context import PolicyContext
from replaykit.policy.markup import find_markup
from replaykit.policy.rejection import error_text, is_unknown_tool, rejects_arguments

KINDS = (
    "unparsed_tool_call",
    "unknown_tool",
    "invalid_arguments",
    "empty_message",
    "truncated_generation",
    "protocol_error",
)

#: What a learner's lost turn means.
_LOST = {
    "truncated": "truncated_generation",
    "empty": "empty_message",
    "invalid_arguments": "invalid_arguments",
    "malformed_call": "protocol_error",
}
#: Errors after which an episode ends with ``agent_error``.
_FATAL = frozenset({"invalid_arguments", "empty_message"})
_DETAIL_LENGTH = 200


@dataclass(frozen=True, slots=True)
class FormatError:
    """One format error.

    Attributes:
        kind: One of `KINDS`.
        turn: Index of the learner's message in the trajectory; the trajectory's length for a turn that was lost.
        call: Position of the call in its message, or None.
        tool: The called tool, or None.
        detail: The markup's name or the tool's text, for people; no part of any digest.
    """

    kind: str
    turn: int
    call: int | None = None
    tool: str | None = None
    detail: str = ""

    def to_dict(self) -> dict:
        """Plain data."""
        return {"kind": self.kind, "turn": self.turn, "call": self.call, "tool": self.tool, "detail": self.detail}


def message_errors(message: Mapping, turn: int, context: PolicyContext) -> list[FormatError]:
    """The format errors of a learner's message itself: markup in its text, or nothing in it at all."""
    text = message.get("content") or ""
    if not text.strip():
        return [] if message.get("tool_calls") else [FormatError("empty_message", turn)]
    markup = find_markup(text, context.tool_names)
    return [FormatError("unparsed_tool_call", turn, detail=markup)] if markup else []


def call_error(
    call: Mapping, turn: int, place: int, context: PolicyContext, result: Mapping | None
) -> FormatError | None:
    """The format error of one call, or None.

    Args:
        call: A normalised call.
        turn: Index of its message.
        place: Its position in the message.
        context: The domain's tools.
        result: The tool message that answered it, or None when there is none.
    """
    name, arguments = call["name"], call["arguments"]
    content = result.get("content") if result is not None and result.get("error") else None
    if name not in context.tool_names or (content is not None and is_unknown_tool(name, content)):
        return FormatError("unknown_tool", turn, place, name)
    if content is not None and rejects_arguments(name, arguments, content):
        return FormatError("invalid_arguments", turn, place, name, error_text(content)[:_DETAIL_LENGTH])
    return None


def ending_error(
    termination: str | None, lost_turn: LostTurn | None, turn: int, last: FormatError | None
) -> FormatError | None:
    """The format error that an episode's end shows, or None.

    Args:
        termination: The termination reason.
        lost_turn: The turn that was lost, if one was.
        turn: The trajectory's length.
        last: The last format error found in the trajectory, if it is one of its last message.
    """
    if lost_turn is not None:
        kind = _LOST.get(lost_turn.reason) if lost_turn.seat == "learner" else None
        return FormatError(kind, turn, detail=lost_turn.detail[:_DETAIL_LENGTH]) if kind else None
    if termination == "agent_error" and not (last is not None and last.kind in _FATAL):
        return FormatError("protocol_error", turn)
    return None
