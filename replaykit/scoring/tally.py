"""What the seats used in one episode, counted reply by reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replaykit.scoring.trial import SeatUse, reported
from replaykit.seats import SEATS, SeatFailure, SeatReply

COUNTS = ("requests", "replies", "failures", "maybe_charged", "tokens_not_reported", "cost_not_reported")
SUMS = ("prompt_tokens", "completion_tokens", "cost")

# Failures after which a provider may have answered, and so may charge: what it used is not reported.
_MAYBE_CHARGED = ("unreachable", "deadline", "malformed", "transport_error")


@dataclass(slots=True)
class Tally:
    """What the seats used, by seat; a count that no reply reported is None, never 0.

    Attributes:
        seats: By seat ``requests`` (asked), ``replies``, ``failures``, ``maybe_charged`` (failures that may have cost
            something), ``prompt_tokens``, ``completion_tokens``, ``cost`` (US dollars), and ``tokens_not_reported``,
            ``cost_not_reported``: how many replies and failures that may have cost something said nothing.
    """

    seats: dict[str, dict[str, Any]]

    @classmethod
    def empty(cls) -> Tally:
        """Nothing yet."""
        return cls({seat: dict.fromkeys(COUNTS, 0) | dict.fromkeys(SUMS) for seat in SEATS})

    @classmethod
    def of(cls, asked: Iterable[tuple[str, Any]]) -> Tally:
        """Of requests by seat and outcome: a reply, a failure, the end of one that was not sent, or None."""
        tally = cls.empty()
        for seat, outcome in asked:
            tally.request(seat)
            if isinstance(outcome, SeatReply):
                tally.reply(seat, outcome)
            elif isinstance(outcome, SeatFailure):
                tally.failure(seat, outcome)
            elif outcome is not None:
                tally.end(seat, outcome["reason"])
        return tally

    def request(self, seat: str) -> None:
        """Count one request."""
        self.seats[seat]["requests"] += 1

    def end(self, seat: str, reason: str) -> None:
        """Count the end of a request that was not sent; one that the budget did not allow was not even asked."""
        self.seats[seat]["requests"] -= reason == "budget"

    def reply(self, seat: str, reply: SeatReply) -> None:
        """Count one reply."""
        self.seats[seat]["replies"] += 1
        self._add(seat, *reported(reply.usage, reply.cost))

    def failure(self, seat: str, failure: SeatFailure) -> None:
        """Count one failure."""
        self.seats[seat]["failures"] += 1
        if failure.kind in _MAYBE_CHARGED:
            self.seats[seat]["maybe_charged"] += 1
            self._add(seat, *reported(None, None))

    def _add(self, seat: str, *values: float | None) -> None:
        """Add what one answer reported: the values of `SUMS`."""
        row = self.seats[seat]
        prompt, completion, price = values
        row["tokens_not_reported"] += prompt is None or completion is None
        row["cost_not_reported"] += price is None
        for key, value in zip(SUMS, values, strict=True):
            if value is not None:
                row[key] = (row[key] or 0) + value


def use_of(row: Mapping[str, Any]) -> SeatUse:
    """A row of a tally as `SeatUse`.

    Raises:
        KeyError: a member is missing.
        ValueError: one is no count.
    """
    if any(type(row[key]) is not int or row[key] < 0 for key in COUNTS):
        raise ValueError("a seat's usage holds what is no count")
    if any(not isinstance(row[key], (int, float, type(None))) or isinstance(row[key], bool) for key in SUMS):
        raise ValueError("a seat's usage holds a sum that is no number")
    replies = row["replies"] + row["maybe_charged"]
    return SeatUse(replies, *(row[key] for key in SUMS), row["tokens_not_reported"], row["cost_not_reported"])
