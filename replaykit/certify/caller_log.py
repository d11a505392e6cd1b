"""The caller's own log of one step, and the switch that hands a gateway's record to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replaykit import canonical
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, WireExchange


class Log:
    """The caller's own log of one step."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {"exchanges": []}

    def request(self, request: SeatRequest) -> None:
        """The digest of what was asked."""
        self.data["asked"] = canonical.ordered_digest(request.to_dict())

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """A wire exchange, by digests."""
        response = exchange.response
        self.data["exchanges"].append(
            {
                "attempt": exchange.attempt,
                "uri": exchange.request["uri"],
                "request_sha256": canonical.sha256(exchange.request["body"]),
                "status": response["status"]["code"] if response else None,
                "response_sha256": canonical.sha256(response["body"]) if response else None,
                "failure": exchange.failure["kind"] if exchange.failure else None,
            }
        )

    def reply(self, number: int, reply: SeatReply) -> None:
        """What the transport gave."""
        self.data["reply"] = reply.to_dict()

    def failure(self, number: int, failure: SeatFailure) -> None:
        """What the transport said instead."""
        self.data["failure"] = failure.to_dict()

    def end(self, number: int, end: dict[str, Any]) -> None:
        """Why nothing was sent."""
        self.data["end"] = end


@dataclass
class Switch:
    """A record that hands on to the log of the step under way, and to a journal if there is one."""

    log: Log = field(default_factory=Log)
    journal: Any = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        def tell(*arguments: Any) -> None:
            getattr(self.log, name)(*arguments)
            if self.journal is not None:
                getattr(self.journal, name)(*arguments)

        return tell
