"""Tool call ids named by their place, so that a provider that numbers its calls anew is no change of behaviour.

An id in a history is renamed only if it is the id of the reply it came from; any other id stays as it is and shows.
"""

from __future__ import annotations

from typing import Any

from replaykit.cassette import Cassette
from replaykit.seats import SeatReply

Turns = dict[str, list[list[str]]]
"""Seat -> ids of the calls of each reply that made some, in order."""


def turns(cassette: Cassette) -> Turns:
    """The ids that the seats gave to their tool calls."""
    found: Turns = {}
    for request in cassette.requests:
        if isinstance(request.outcome, SeatReply) and request.outcome.tool_calls:
            found.setdefault(request.seat, []).append([call.id for call in request.outcome.tool_calls])
    return found


def count(left: Turns, right: Turns) -> int:
    """How many calls at the same place carry different ids."""
    pairs = [
        (a, b)
        for seat in left
        for ours, theirs in zip(left[seat], right.get(seat, []), strict=False)
        for a, b in zip(ours, theirs, strict=False)
    ]
    return sum(a != b for a, b in pairs)


class Renaming:
    """One side's ids by place: the call ``j`` of the seat's reply ``t`` becomes ``t.j``.

    Args:
        ids: Of the seat whose history is renamed.
    """

    def __init__(self, ids: list[list[str]]) -> None:
        self._ids = ids
        self._known: dict[tuple[int, int, int], tuple[dict, dict]] = {}

    def history(self, messages: list[dict]) -> list[dict]:
        """A message list with ids by place: native requests, trajectories and conversation states alike."""
        turn, waiting, renamed = -1, 0, []
        for message in messages:
            if message.get("tool_calls") and message["role"] == "assistant":
                turn, waiting = turn + 1, 0
            renamed.append(self._message(message, turn, waiting))
            waiting += message["role"] == "tool"
        return renamed

    def reply(self, data: dict, turn: int) -> dict:
        """A reply's plain data with ids by place."""
        calls = data.get("tool_calls")
        if not calls:
            return data
        names = {call["id"]: f"{turn}.{i}" for i, call in enumerate(calls)}
        side = {"side": {names.get(k, k): v for k, v in data["side"].items()}} if "side" in data else {}
        return {**data, "tool_calls": [{**call, "id": f"{turn}.{i}"} for i, call in enumerate(calls)], **side}

    def _message(self, message: dict, turn: int, waiting: int) -> dict:
        key = (id(message), turn, waiting)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (message, self._renamed(message, turn, waiting))
        return known[1]

    def _renamed(self, message: dict, turn: int, waiting: int) -> dict:
        ids = self._ids[turn] if 0 <= turn < len(self._ids) else []
        if message["role"] == "assistant" and message.get("tool_calls"):
            return {
                **message,
                "tool_calls": [_call(call, i, ids, turn) for i, call in enumerate(message["tool_calls"])],
            }
        if message["role"] == "tool" and waiting < len(ids):
            return {
                key: _name(value, waiting, ids, turn) if key in ("id", "tool_call_id") else value
                for key, value in message.items()
            }
        return message


def _call(call: dict, index: int, ids: list[str], turn: int) -> dict:
    return {**call, "id": _name(call["id"], index, ids, turn)} if index < len(ids) else call


def _name(value: Any, index: int, ids: list[str], turn: int) -> Any:
    return f"{turn}.{index}" if value == ids[index] else value
