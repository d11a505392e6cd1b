"""Tool call ids named by their place, so that a provider that numbers its calls anew is no change of behaviour.

An id in a history is renamed only if it is the id of the reply it came from; any other id stays as it is and shows.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from replaykit.cassette import Cassette
from replaykit.seats import ReplyCall, SeatReply

Turns = dict[str, list[list[str]]]
"""Seat -> ids of the calls of each reply that made some, in order."""


def renumbered(left: Cassette, right: Cassette) -> tuple[tuple[Turns, Turns] | None, int]:
    """The ids of the calls that both sides make alike, until one makes another call; and how many ids differ there.

    None instead of the ids when no id differs: nothing has to be renamed.
    """
    ours, theirs = _calls(left), _calls(right)
    ids: tuple[Turns, Turns] = ({}, {})
    for seat in ours.keys() & theirs.keys():
        alike = list(takewhile(_same_calls, zip(ours[seat], theirs[seat], strict=False)))
        for side, which in zip(ids, (0, 1), strict=True):
            side[seat] = [[call.id for call in pair[which]] for pair in alike]
    count = sum(a != b for seat in ids[0] for a, b in zip(_flat(ids[0][seat]), _flat(ids[1][seat]), strict=True))
    return (ids if count else None), count


def _calls(cassette: Cassette) -> dict[str, list[tuple[ReplyCall, ...]]]:
    found: dict[str, list[tuple[ReplyCall, ...]]] = {}
    for request in cassette.requests:
        if isinstance(request.outcome, SeatReply) and request.outcome.tool_calls:
            found.setdefault(request.seat, []).append(request.outcome.tool_calls)
    return found


def _same_calls(pair: tuple[tuple[ReplyCall, ...], tuple[ReplyCall, ...]]) -> bool:
    left, right = ([(call.name, call.arguments) for call in side] for side in pair)
    return left == right


def _flat(turns: list[list[str]]) -> list[str]:
    return [id_ for turn in turns for id_ in turn]


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
        if turn >= len(self._ids):
            return data
        names = {call["id"]: f"{turn}.{i}" for i, call in enumerate(data["tool_calls"])}
        side = {"side": {names.get(k, k): v for k, v in data["side"].items()}} if "side" in data else {}
        return {**data, "tool_calls": [{**c, "id": names[c["id"]]} for c in data["tool_calls"]], **side}

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
