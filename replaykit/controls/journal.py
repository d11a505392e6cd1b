"""The provider's own account of what crossed its sockets: raw bytes, monotonic times, who closed what."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from replaykit import canonical

_CREDENTIAL = re.compile(
    rb"(?im)^((?:authorization|proxy-authorization|x-api-key|x-goog-api-key|api-key|cookie)[ \t]*:[ \t]*)([^\r\n]*)"
)


@dataclass(slots=True)
class Exchange:
    """One request as it arrived and what was written for it.

    Attributes:
        number: Position among all requests of the provider, from 1.
        connection: Id of the connection, from 1.
        case, seat, wire: Where it was addressed to; None when nothing is registered there.
        ordinal: Position among the whole requests of this case and seat, from 1.
        request: Raw bytes received, also when the connection died before the request was whole.
        request_complete: Whether the whole request arrived.
        response: Raw bytes written.
        fully_written: Whether there was something to write and all of it was written.
        outcome: ``answered``, ``closed``, ``reset`` (as the schedule wanted), ``client_left``, ``stopped``, or
            ``open`` while it lasts.
        status: HTTP status that was (to be) written.
        model: The model asked for.
        identity: Label of the control that answered.
        fault: The scheduled fault as plain data.
        nonce: The id carried by the reply.
        problem: Why the wire refused the request.
        times: Monotonic seconds of ``first_byte``, ``request``, ``response_first``, ``response_last``, ``end``.
    """

    number: int
    connection: int
    case: str | None = None
    seat: str | None = None
    wire: str | None = None
    ordinal: int | None = None
    request: bytes = b""
    request_complete: bool = False
    response: bytes = b""
    fully_written: bool = False
    outcome: str = "open"
    status: int | None = None
    model: str | None = None
    identity: str | None = None
    fault: dict | None = None
    nonce: str | None = None
    problem: str | None = None
    times: dict[str, float] = field(default_factory=dict)

    def body(self) -> bytes:
        """The raw bytes behind the request's head (still chunked, if it came in chunks)."""
        return self.request.partition(b"\r\n\r\n")[2]

    def to_dict(self, secrets: Iterable[bytes] = ()) -> dict:
        """Plain data; bytes in base64 with credential headers and the given secrets masked."""
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        data["request_bytes"], data["response_bytes"] = len(self.request), len(self.response)
        data["request_body_digest"] = canonical.sha256(self.body())
        for name in ("request", "response"):
            data[name] = base64.b64encode(mask(data[name], secrets)).decode("ascii")
        return data


@dataclass(slots=True)
class Connection:
    """One accepted connection. ``closed_by`` is ``client``, ``provider`` or ``stop``; None while it is open."""

    id: int
    opened_s: float
    closed_s: float | None = None
    closed_by: str | None = None


class Journal:
    """Exchanges and connections, readable while the provider runs; optionally a JSON Lines file as well.

    Args:
        path: File that gets one line for each exchange as it ends; credentials are masked in it.
        secrets: Further values to mask in the file.
        keep_bytes: Whether raw bytes stay in memory; without, only the file holds them.
    """

    def __init__(self, path: Path | None = None, secrets: Iterable[str] = (), keep_bytes: bool = True) -> None:
        self._lock = threading.Lock()
        self._exchanges: list[Exchange] = []
        self._connections: list[Connection] = []
        self._secrets = tuple(s.encode() for s in secrets if s)
        self._keep_bytes = keep_bytes
        self._file: BinaryIO | None = path.open("ab") if path else None
        self._ended = threading.Condition(self._lock)
        self._open_count = 0

    def connect(self, opened_s: float) -> Connection:
        """Enter a new connection."""
        with self._lock:
            connection = Connection(len(self._connections) + 1, opened_s)
            self._connections.append(connection)
            return connection

    def begin(self, connection: int, first_byte_s: float) -> Exchange:
        """Enter a request whose first bytes have arrived."""
        with self._lock:
            exchange = Exchange(len(self._exchanges) + 1, connection, times={"first_byte": first_byte_s})
            self._exchanges.append(exchange)
            self._open_count += 1
            return exchange

    def end(self, exchange: Exchange) -> None:
        """Write an exchange that is over to the file."""
        with self._lock:
            if self._file:
                self._file.write(canonical.line(exchange.to_dict(self._secrets)) + b"\n")
                self._file.flush()
            if not self._keep_bytes:
                exchange.request = exchange.response = b""
            self._open_count -= 1
            self._ended.notify_all()

    def exchanges(self) -> tuple[Exchange, ...]:
        """Copies of all exchanges so far, in order of their first byte."""
        with self._lock:
            return tuple(replace(e, times=dict(e.times)) for e in self._exchanges)

    def connections(self) -> tuple[Connection, ...]:
        """Copies of all connections so far."""
        with self._lock:
            return tuple(replace(c) for c in self._connections)

    def settle(self, timeout_s: float) -> bool:
        """Wait until no exchange is open; False when the time runs out first."""
        with self._ended:
            return self._ended.wait_for(lambda: self._open_count == 0, timeout_s)

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file:
            self._file.close()
            self._file = None


def mask(data: bytes, secrets: Iterable[bytes] = ()) -> bytes:
    """The bytes with the values of credential headers and the given secrets replaced by ``[masked]``."""
    head, blank, body = data.partition(b"\r\n\r\n")
    masked = _CREDENTIAL.sub(rb"\1[masked]", head) + blank + body
    for secret in secrets:
        masked = masked.replace(secret, b"[masked]")
    return masked
