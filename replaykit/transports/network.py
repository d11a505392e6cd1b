"""Sockets that know when the whole request has to be over.

httpcore gives every operation a time-out of its own, so a peer that sends one byte a second is never cut.
Here each connect, handshake, read and write gets what is left of one deadline, whatever it was offered.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore

MAX_CONNECTION_AGE_S = 180.0


class Deadline:
    """The monotonic moment at which a request is over.

    Args:
        seconds: From now.
        clock: Monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.at = clock() + seconds

    def left(self) -> float:
        """Seconds left; negative when it is over."""
        return self.at - self._clock()

    def limit(self, timeout: float | None, error: type[Exception]) -> float:
        """The smaller of an operation's own time-out and the time left.

        Raises:
            error: no time is left.
        """
        left = self.left()
        if left <= 0:
            raise error("the deadline of the whole request has passed")
        return left if timeout is None else min(timeout, left)


class DeadlineStream(httpcore.NetworkStream):
    """One connection; counts what it has received since the last request began.

    Attributes:
        received: Chunks received since `begin`, so that bytes after the end of a message are noticed.
    """

    def __init__(self, inner: httpcore.NetworkStream, backend: DeadlineBackend, born_s: float) -> None:
        self._inner, self._backend, self._born_s = inner, backend, born_s
        self._retired = False
        self.received: list[bytes] = []
        backend.track(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there, waiting no longer than the deadline."""
        data = self._inner.read(max_bytes, self._backend.limit(timeout, httpcore.ReadTimeout))
        self.received.append(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it; a peer that reads slowly cannot stretch the deadline."""
        self.received.clear()
        sock: socket.socket = self._inner.get_extra_info("socket")
        view = memoryview(buffer)
        while view:
            limit = self._backend.limit(timeout, httpcore.WriteTimeout)
            try:
                sock.settimeout(limit)
                view = view[sock.send(view) :]
            except TimeoutError as error:
                raise httpcore.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> DeadlineStream:
        """Shake hands within the deadline."""
        limit = self._backend.limit(timeout, httpcore.ConnectTimeout)
        inner = self._inner.start_tls(ssl_context, server_hostname, limit)
        return DeadlineStream(inner, self._backend, self._born_s)

    def close(self) -> None:
        """Close the socket."""
        self._inner.close()

    def shut(self) -> None:
        """End both directions, so that a thread that waits on the socket waits no longer."""
        sock = self._inner.get_extra_info("socket")
        with suppress(OSError):  # closed already
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # past TLS, whose own shutdown is not for other threads

    def retire(self) -> None:
        """Let no further request use this connection."""
        self._retired = True

    def get_extra_info(self, info: str) -> Any:
        """As httpcore's; an idle connection that reads as "readable" is closed by the pool before it is used again."""
        if info == "is_readable" and (self._retired or self._backend.clock() - self._born_s > self._backend.max_age_s):
            return True
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """httpcore's own sockets under a deadline that each thread sets for its current request."""

    def __init__(self, max_age_s: float = MAX_CONNECTION_AGE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._sockets = httpcore.SyncBackend()
        self._current = threading.local()
        self._streams: weakref.WeakSet[DeadlineStream] = weakref.WeakSet()
        self._lock, self._is_shut = threading.Lock(), False
        self.max_age_s, self.clock = max_age_s, clock

    def track(self, stream: DeadlineStream) -> None:
        """Know a connection, so that `shut_all` ends it."""
        with self._lock:
            self._streams.add(stream)
            if self._is_shut:
                stream.shut()

    def shut_all(self) -> None:
        """End all connections, those in use by other threads and those still to come too."""
        with self._lock:
            self._is_shut = True
            for stream in self._streams:
                stream.shut()

    @contextmanager
    def until(self, deadline: Deadline) -> Iterator[None]:
        """Everything this thread does on the network inside the block is over at the deadline."""
        self._current.deadline = deadline
        try:
            yield
        finally:
            self._current.deadline = None

    def limit(self, timeout: float | None, error: type[Exception]) -> float | None:
        """See `Deadline.limit`; outside a request the operation's own time-out holds."""
        deadline: Deadline | None = getattr(self._current, "deadline", None)
        return timeout if deadline is None else deadline.limit(timeout, error)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> DeadlineStream:
        """Connect to the first address that answers; name resolution and all addresses share the deadline."""
        failure: Exception = httpcore.ConnectError("the name has no address")
        for address in self._addresses(host, port, timeout):
            limit = self.limit(timeout, httpcore.ConnectTimeout)
            try:
                inner = self._sockets.connect_tcp(address, port, limit, local_address, socket_options or ())
            except httpcore.ConnectError as error:
                failure = error
            else:
                return DeadlineStream(inner, self, self.clock())
        raise failure

    def _addresses(self, host: str, port: int, timeout: float | None) -> list[str]:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return self._resolve(host, port, self.limit(timeout, httpcore.ConnectTimeout))
        return [host]

    def _resolve(self, host: str, port: int, limit: float | None) -> list[str]:
        """Look a name up in a thread of its own, since the resolver takes no time-out."""
        found: list[Any] = []

        def look_up() -> None:
            try:
                found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                found.append(error)

        thread = threading.Thread(target=look_up, daemon=True, name="replaykit-resolver")
        thread.start()
        thread.join(limit)
        if not found:
            raise httpcore.ConnectTimeout("the name was not resolved in time")
        if isinstance(found[0], Exception):
            raise httpcore.ConnectError(f"the name cannot be resolved: {found[0]}")
        return list(dict.fromkeys(entry[4][0] for entry in found[0]))


def ends_cleanly(chunks: list[bytes], chunked: bool, body_length: int) -> bool:
    """Whether the received bytes are exactly one response, with nothing after its end.

    What follows the end of a message would be taken for the answer to the next request.

    Args:
        chunks: As received, in order, interim (1xx) responses included.
        chunked: Whether the body came in chunks.
        body_length: Bytes of body delivered.
    """
    data = b"".join(chunks)
    start = _body_start(data)
    if start < 0:
        return False
    return _chunks_end(data, start) == len(data) if chunked else start + body_length == len(data)


def _body_start(data: bytes) -> int:
    start = 0
    while True:
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            return -1
        interim = data[start:end].split(b" ", 2)[1:2]
        start = end + 4
        if not interim or not interim[0].startswith(b"1"):
            return start


def _chunks_end(data: bytes, start: int) -> int:
    while True:
        end = data.find(b"\r\n", start)
        try:
            size = int(data[start:end].split(b";")[0], 16)
        except ValueError:
            return -1
        if size == 0:
            return end + 4 if data[end + 2 : end + 4] == b"\r\n" else -1
        start = end + 2 + size + 2
