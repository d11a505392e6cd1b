"""The life of one connection at the provider: read a request, answer it as scheduled, keep the account."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from replaykit.controls import delivery
from replaykit.controls.answering import Answered
from replaykit.controls.channel import Channel, ChannelClosed
from replaykit.controls.faults import Fault
from replaykit.controls.http import NotHttp, Request, response_head, take_head, take_request
from replaykit.controls.journal import Connection, Exchange, Journal

# Fills in the exchange and gives what to send under which fault.
Answering = Callable[[Request, Exchange], tuple[Answered, Fault | None]]


@dataclass(slots=True)
class Session:
    """One connection.

    Attributes:
        channel: The connection.
        journal: Where everything is entered.
        answering: Turns a request into an answer.
        scale: Factor on all pauses.
    """

    channel: Channel
    journal: Journal
    connection: Connection
    answering: Answering
    scale: float = 1.0

    def run(self) -> None:
        """Serve requests until somebody ends the connection."""
        reset, by = False, "provider"
        try:
            while self._serve_one():
                pass
        except ChannelClosed as closed:
            reset, by = closed.by == "stop", closed.by
        except _Ended as ended:
            reset = ended.reset
        finally:
            self.connection.closed_by, self.connection.closed_s = by, time.monotonic()
            self.channel.close(reset)

    def _serve_one(self) -> bool:
        """Serve one request; False when the connection is not to be kept."""
        if not self.channel.buffer:
            self.channel.receive()
        exchange = self.journal.begin(self.connection.id, time.monotonic())
        try:
            return self._exchange(exchange)
        except ChannelClosed as closed:
            exchange.outcome = "stopped" if closed.by == "stop" else "client_left"
            raise
        except _Ended as ended:
            exchange.outcome = "reset" if ended.reset else "closed"
            raise
        finally:
            if not exchange.request_complete:
                exchange.request = bytes(self.channel.buffer)
            exchange.times["end"] = time.monotonic()
            self.journal.end(exchange)

    def _exchange(self, exchange: Exchange) -> bool:
        try:
            request = self._read()
        except NotHttp as error:
            return self._turn_away(exchange, error)
        exchange.request, exchange.request_complete = request.raw, True
        exchange.times["request"] = time.monotonic()
        answered, fault = self.answering(request, exchange)
        self._deliver(exchange, delivery.steps(answered.answer, fault))
        exchange.outcome = "answered"
        return request.head.keeps_alive

    def _read(self) -> Request:
        buffer = self.channel.buffer
        while (head := take_head(buffer)) is None:
            self.channel.receive()
        if head.headers.get("expect", "").lower() == "100-continue":
            self.channel.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        while (request := take_request(buffer, head)) is None:
            self.channel.receive()
        return request

    def _turn_away(self, exchange: Exchange, error: NotHttp) -> bool:
        exchange.problem, exchange.status = error.message, error.status
        body = error.message.encode()
        head = response_head(error.status, (("connection", "close"), ("content-length", str(len(body)))))
        self._deliver(exchange, (delivery.Write(head + body),))
        exchange.outcome = "answered"
        return False

    def _deliver(self, exchange: Exchange, steps: tuple[delivery.Step, ...]) -> None:
        last = max((i for i, step in enumerate(steps) if isinstance(step, delivery.Write)), default=None)
        for i, step in enumerate(steps):
            if isinstance(step, delivery.Pause):
                self.channel.pause(None if step.seconds is None else step.seconds * self.scale)
            elif isinstance(step, delivery.End):
                raise _Ended(step.reset)
            else:
                self._write(exchange, step.data, whole=i == last, final=i == len(steps) - 1)

    def _write(self, exchange: Exchange, data: bytes, whole: bool, final: bool) -> None:
        """Write and enter it. The entry comes first, so that a client that has its reply also finds it entered."""
        before = exchange.response
        exchange.response = before + data
        exchange.times.setdefault("response_first", time.monotonic())
        exchange.fully_written, exchange.outcome = whole, "answered" if final else "open"
        try:
            self.channel.send(data)
        except ChannelClosed as closed:
            exchange.fully_written, exchange.response = False, before + data[: closed.sent]
            raise
        exchange.times["response_last"] = time.monotonic()


class _Ended(Exception):
    """The schedule ends the connection."""

    def __init__(self, reset: bool) -> None:
        super().__init__("the connection ends as scheduled")
        self.reset = reset
