"""How known-bads are made: one fault in one place of a transport or of the seat layer that is otherwise good."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from replaykit.certify.subject import Layer, Subject
from replaykit.seats import SeatFailure, SeatReply, TransportRequest, WireExchange
from replaykit.transports.openai_chat import OpenAIChat
from replaykit.transports.redaction import Secrets

Exchanges = Callable[[WireExchange], None]


@dataclass(frozen=True)
class KnownBad:
    """A subject with one fault.

    Attributes:
        id: ``kb_...``.
        targets: The check that must catch it.
        expected: The code it must be caught with.
        transport: The transport; the good one unless the fault is in it.
        layer: The seat layer; the good one unless the fault is in it.
    """

    id: str
    targets: str
    expected: str
    transport: Callable[..., Any] = OpenAIChat
    layer: Callable[[], Layer] = field(default=Layer)

    def subject(self) -> Subject:
        """The subject; its layer is fresh, a transport may remember what it was asked before."""
        return Subject(self.id, self.transport, f"known-bad {self.id}", layer=self.layer())


def body(change: Callable[[dict, TransportRequest], dict]) -> type:
    """A transport that sends another body."""

    class ChangedBody(OpenAIChat):
        def to_wire(self, request: TransportRequest) -> dict[str, Any]:
            return change(json.loads(json.dumps(super().to_wire(request))), request)

    return ChangedBody


def messages(change: Callable[[list[dict], TransportRequest], list[dict]]) -> type:
    """A transport that sends another history."""
    return body(lambda sent, request: sent | {"messages": change(sent["messages"], request)})


def tools(change: Callable[[list[dict]], list[dict]]) -> type:
    """A transport that sends other tools."""
    return body(lambda sent, request: sent | ({"tools": change(sent["tools"])} if "tools" in sent else {}))


def reply(change: Callable[[SeatReply, TransportRequest], SeatReply]) -> type:
    """A transport that delivers another reply."""

    class ChangedReply(OpenAIChat):
        def ask(self, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
            return change(super().ask(request, on_exchange), request)

    return ChangedReply


def calls(change: Callable[[Any, TransportRequest], Any]) -> type:
    """A transport that delivers other tool calls."""
    return reply(lambda given, request: replace(given, tool_calls=tuple(change(c, request) for c in given.tool_calls)))


def asking(
    ask: Callable[[Callable[[TransportRequest, Exchanges], SeatReply], TransportRequest, Exchanges], SeatReply],
) -> type:
    """A transport that asks in another way; it is given the good way of asking."""

    class OtherAsk(OpenAIChat):
        def ask(self, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
            return ask(super().ask, request, on_exchange)

    return OtherAsk


def reading(
    read: Callable[[Callable[..., SeatReply], int, Mapping[str, Any], bytes, TransportRequest], SeatReply],
) -> type:
    """A transport that reads responses in another way; it is given the good way of reading."""

    class OtherRead(OpenAIChat):
        def from_wire(
            self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest | None = None
        ) -> SeatReply:
            return read(super().from_wire, status, headers, body, request)

    return OtherRead


def layer(**parts: Any) -> Callable[[], Layer]:
    """A seat layer with other parts."""
    return lambda: Layer(**parts)


class LaxSender:
    """A sender as one writes it on an afternoon: an HTTP client with its own ideas.

    Args:
        factor: Factor on the deadline, which is only ever a deadline of single operations.
        connect_factor: The same for connecting.
        client: Options of the HTTP client.
    """

    def __init__(
        self,
        *,
        factor: float = 1.0,
        connect_factor: float | None = None,
        client: Mapping[str, Any] | None = None,
        **_ignored: Any,
    ) -> None:
        self.secrets = Secrets()
        self._factor, self._connect_factor = factor, factor if connect_factor is None else connect_factor
        self._client = httpx.Client(**{"trust_env": False, "verify": False, **(client or {})})

    def __enter__(self) -> LaxSender:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def post(
        self,
        url: str,
        headers: Any,
        body: bytes,
        read: Any,
        on_exchange: Any,
        *,
        deadline_s: float = 17.0,
        attempt: int = 1,
    ) -> SeatReply:
        """One request."""
        exchange = WireExchange(attempt, {"method": "POST", "uri": url, "headers": {}, "body": body})
        timeout = httpx.Timeout(deadline_s * self._factor, connect=deadline_s * self._connect_factor)
        try:
            response = self._client.post(url, headers=headers, content=body, timeout=timeout)
            found = {k: [v] for k, v in response.headers.items()}
            exchange.response = {
                "status": {"code": response.status_code, "message": ""},
                "headers": found,
                "body": response.content,
            }
            return read(response.status_code, found, response.content)
        except (httpx.HTTPError, SeatFailure) as error:
            failure = error if isinstance(error, SeatFailure) else self._failure(error)
            exchange.failure = failure.to_dict()
            raise failure from None
        finally:
            on_exchange(exchange)

    def _failure(self, error: httpx.HTTPError) -> SeatFailure:
        kind = "deadline" if isinstance(error, httpx.TimeoutException) else "unreachable"
        return SeatFailure(kind, f"{type(error).__name__} while asking")


def lax(**options: Any) -> Callable[[], Layer]:
    """A seat layer with a lax sender."""
    return layer(sender=lambda **given: LaxSender(**options))


def retrying(
    should: Callable[[SeatFailure], bool],
    times: int,
    change: Callable[[TransportRequest, int], TransportRequest] = lambda r, i: r,
    wait: Callable[[SeatFailure, int], float] = lambda f, i: 0.0,
    quiet: bool = False,
) -> type:
    """A transport that asks again after failures.

    Args:
        should: Which failures.
        times: How often at most.
        change: What becomes of the request.
        wait: Seconds before each further attempt.
        quiet: Whether failed attempts are kept from the caller's log.
    """

    def ask(good: Any, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
        for i in range(times + 1):
            kept: list[WireExchange] = []
            try:
                given = good(change(request, i), kept.append if quiet else on_exchange)
            except SeatFailure as failure:
                if i == times or not should(failure):
                    for exchange in kept:
                        on_exchange(exchange)
                    raise
                time.sleep(wait(failure, i))
            else:
                for exchange in kept:
                    on_exchange(exchange)
                return given
        raise AssertionError

    return asking(ask)


class Meeting:
    """Lets two threads swap what they hold."""

    def __init__(self) -> None:
        self._lock, self._waiting = threading.Lock(), []

    def swap(self, mine: Any) -> Any:
        """What the other thread brought, or one's own when nobody comes."""
        with self._lock:
            if self._waiting:
                other, event, box = self._waiting.pop()
                box.append(mine)
                event.set()
                return other
            event, box = threading.Event(), []
            entry = (mine, event, box)
            self._waiting.append(entry)
        event.wait(1.0)
        with self._lock:
            if entry in self._waiting:
                self._waiting.remove(entry)
        return box[0] if box else mine
