"""The digest of native requests, in time that does not grow with the conversation.

The digest is ``canonical.ordered_digest(request.to_dict())``. A conversation only ever grows at its end, so the hash
over the messages already seen is kept for each seat, and only new messages are encoded.
"""

from __future__ import annotations

import hashlib
from operator import is_
from typing import Any

from replaykit import canonical
from replaykit.seats import SeatRequest


def request_digest(request: SeatRequest) -> str:
    """The ordered digest of one native request."""
    return canonical.ordered_digest(request.to_dict())


class RequestDigests:
    """Digests the native requests of one episode, seat by seat.

    Messages are recognised by identity: a message dictionary must not be changed after it was given in.
    """

    __slots__ = ("_seats", "_tools")

    def __init__(self) -> None:
        self._seats: dict[tuple[str, str], _Prefix] = {}
        self._tools: dict[str, tuple[Any, bytes]] = {}

    def of(self, request: SeatRequest) -> str:
        """The digest of a request; equal to `request_digest`."""
        key = (request.seat, request.model)
        prefix = self._seats.get(key)
        if prefix is None or not prefix.begins(request.messages):
            prefix = self._seats[key] = _Prefix(*key)
        prefix.extend(request.messages)
        state = prefix.state.copy()
        state.update(b'],"tools":')
        state.update(self._encoded_tools(request))
        choice, arguments = canonical.ordered(request.tool_choice), canonical.ordered(request.arguments)
        state.update(b',"tool_choice":%s,"arguments":%s}' % (choice, arguments))
        return state.hexdigest()

    def _encoded_tools(self, request: SeatRequest) -> bytes:
        known = self._tools.get(request.seat)
        if known is None or known[0] is not request.tools:
            known = self._tools[request.seat] = (request.tools, canonical.ordered(request.tools))
        return known[1]


class _Prefix:
    """The hash over a request up to its last known message."""

    __slots__ = ("_seen", "state")

    def __init__(self, seat: str, model: str) -> None:
        head = b'{"seat":' + canonical.ordered(seat) + b',"model":' + canonical.ordered(model) + b',"messages":['
        self.state = hashlib.sha256(head)
        self._seen: list[dict] = []

    def begins(self, messages: list[dict]) -> bool:
        return len(messages) >= len(self._seen) and all(map(is_, self._seen, messages))

    def extend(self, messages: list[dict]) -> None:
        for message in messages[len(self._seen):]:
            self.state.update((b"," if self._seen else b"") + canonical.ordered(message))
            self._seen.append(message)
