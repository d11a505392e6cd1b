"""Tool results follow their calls: by place within a turn, never through one map over the conversation.

Some models number their calls anew in every turn, so one id may name several calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaykit import canonical
from replaykit.seats import SeatFailure


def check(messages: Sequence[dict]) -> None:
    """Check that the results of each turn's calls come next, all of them, in call order.

    Raises:
        SeatFailure: ``pairing``, naming the first message that breaks the rule.
    """
    for index, message, expected in _expectations(messages):
        found = message.get("tool_call_id") if message.get("role") == "tool" else None
        if found != expected:
            raise SeatFailure("pairing", _sentence(index, expected, found))


def _expectations(messages: Sequence[dict]) -> Iterator[tuple[int, dict, str | None]]:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        yield index, message, waiting.pop(0) if waiting else None
        waiting = [call["id"] for call in message.get("tool_calls") or ()] or waiting
    if waiting:
        yield len(messages), {}, waiting[0]


def _sentence(index: int, expected: str | None, found: str | None) -> str:
    where = canonical.pointer("messages", index)
    if expected is None:
        return f"{where} is a result for the call {found!r}, which is not open; nothing was sent"
    instead = "not" if found is None else f"one for {found!r}"
    return f"{where} should be the result for the call {expected!r} but is {instead}; nothing was sent"
