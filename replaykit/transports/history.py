"""A native history as steps in which every call and every result knows its partner; pure.

Wires that refuse a repeated id, or some of its characters, get another one by a rule that depends on what came before
only: the same history gives the same ids in every run, and a longer one begins with the same ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from replaykit import canonical
from replaykit.seats import SeatFailure, arguments_object

ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RESPONSES_ID = re.compile(r"[\x21-\x7e]{1,64}")
_MAX_MADE_ID = 32


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the history: its native id, its id on the wire, and what it asked for."""

    id: str
    wire_id: str
    name: str
    arguments: str
    where: str

    def arguments_object(self) -> dict:
        """The arguments for wires that carry objects.

        Raises:
            SeatFailure: ``unsendable``: they are not a JSON object.
        """
        try:
            return arguments_object(self.arguments)
        except ValueError:
            reason = f"the arguments of the call at {self.where} are no JSON object, and this wire carries only objects"
            raise SeatFailure("unsendable", f"{reason}; nothing was sent") from None


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the history.

    Attributes:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        text: Its content, "" for none.
        calls: An assistant's calls.
        answers: The call that a tool result answers.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: Call | None = None


def steps(messages: Sequence[dict], valid_id: re.Pattern[str]) -> list[Step]:
    """The history as steps.

    Args:
        messages: Normalised messages that `pairing.check` accepts.
        valid_id: What an id must match in full.
    """
    used: set[str] = set()
    waiting: list[Call] = []
    found = []
    for index, message in enumerate(messages):
        answers = waiting.pop(0) if message["role"] == "tool" else None
        calls = tuple(_calls(message, index, used, valid_id))
        waiting = list(calls) or waiting
        found.append(Step(message["role"], message.get("content") or "", calls, answers))
    return found


def split_system(history: list[Step]) -> tuple[list[str], list[Step]]:
    """The leading system texts and the rest, for wires that hold the system prompt apart.

    Raises:
        SeatFailure: ``capability``: a system message further on, which has no place on such a wire.
    """
    count = next((i for i, step in enumerate(history) if step.role != "system"), len(history))
    late = next((i for i, step in enumerate(history) if i > count and step.role == "system"), None)
    if late is not None:
        place = canonical.pointer("messages", late)
        raise SeatFailure(
            "capability", f"{place} is a system message after the start, which this wire cannot carry; nothing was sent"
        )
    return [step.text for step in history[:count]], history[count:]


def merged(turns: Sequence[tuple[str, list[Any]]]) -> list[tuple[str, list[Any]]]:
    """Neighbouring turns of one role as one turn."""
    joined: list[tuple[str, list[Any]]] = []
    for role, parts in turns:
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(parts)
        else:
            joined.append((role, list(parts)))
    return joined


def laid_out(
    layout: Sequence[dict], text: dict | None, calls: Sequence[dict], is_text: Callable, is_call: Callable
) -> list[dict] | None:
    """Text and calls put back among the blocks they came with.

    Args:
        layout: Blocks as received, texts and calls as bare markers.
        text: The text block to put at the first text marker, or None.
        calls: The call blocks, in order.
        is_text: Whether a block of the layout marks a text.
        is_call: Whether it marks a call.

    Returns:
        All blocks, or None when the layout was made for another number of calls.
    """
    if sum(map(is_call, layout)) != len(calls):
        return None
    texts, waiting = [text] if text else [], list(calls)
    blocks = []
    for block in layout:
        if is_text(block):
            blocks += texts[:1]
            texts = []
        else:
            blocks.append(waiting.pop(0) if is_call(block) else block)
    return texts + blocks


def _calls(message: dict, index: int, used: set[str], valid_id: re.Pattern[str]) -> Iterator[Call]:
    for number, call in enumerate(message.get("tool_calls") or ()):
        wire_id = _unused(call["id"], used, valid_id)
        used.add(wire_id)
        where = canonical.pointer("messages", index, "tool_calls", number)
        yield Call(call["id"], wire_id, call["function"]["name"], call["function"]["arguments"], where)


def _unused(native: str, used: set[str], valid_id: re.Pattern[str]) -> str:
    if valid_id.fullmatch(native) and native not in used:
        return native
    base = re.sub(r"[^a-zA-Z0-9_-]", "_", native)[:_MAX_MADE_ID] or "call"
    number, made = 1, base
    while made in used:
        number += 1
        made = f"{base}_{number}"
    return made
