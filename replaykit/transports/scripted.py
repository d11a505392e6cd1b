"""A transport that answers from a list: for tests, examples and anything that needs a seat without a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from replaykit.errors import UsageError
from replaykit.seats import SEATS, SeatFailure, SeatReply, TransportRequest, WireExchange


class Scripted:
    """Answers each seat with its own list, in order; the last entry of a list repeats.

    Not for several threads at once: one episode, one script.

    Args:
        replies: For each seat that will be asked, replies and failures in order.

    Attributes:
        asked: The requests so far, in order.

    Raises:
        UsageError: an unknown seat, or an empty list.
    """

    def __init__(self, replies: Mapping[str, Sequence[SeatReply | SeatFailure]]) -> None:
        for seat, entries in replies.items():
            if seat not in SEATS or not entries:
                raise UsageError(f"the script for {seat!r} must be a list with entries for one of {', '.join(SEATS)}")
        self._replies = {seat: list(entries) for seat, entries in replies.items()}
        self._position = dict.fromkeys(replies, 0)
        self.asked: list[TransportRequest] = []

    @classmethod
    def from_dict(cls, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> Scripted:
        """A script from plain data: reply dictionaries, and ``{"failure": {...}}`` for failures.

        Raises:
            UsageError: an entry is neither.
        """
        return cls({seat: [_entry(e, seat, i) for i, e in enumerate(entries)] for seat, entries in data.items()})

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The next entry of the seat's list; there is no wire, so ``on_exchange`` is never called.

        Raises:
            SeatFailure: the entry is one.
            UsageError: there is no script for this seat.
        """
        self.asked.append(request)
        entries = self._replies.get(request.seat)
        if entries is None:
            raise UsageError(f"there is no script for the {request.seat}")
        position = self._position[request.seat]
        self._position[request.seat] = position + 1
        entry = entries[min(position, len(entries) - 1)]
        if isinstance(entry, SeatFailure):
            raise SeatFailure.from_dict(entry.to_dict())
        return entry

    def identity(self) -> dict[str, Any]:
        """Says that nobody but a script answers."""
        return {"transport": "scripted", "wire": None, "control": True}


def _entry(data: Mapping[str, Any], seat: str, index: int) -> SeatReply | SeatFailure:
    try:
        return SeatFailure.from_dict(data["failure"]) if "failure" in data else SeatReply.from_dict(dict(data))
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"entry {index} of the script for the {seat} is neither a reply nor a failure ({error})"
        ) from error
