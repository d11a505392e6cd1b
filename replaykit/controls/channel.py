"""One accepted connection: reads and pauses that a stop or a leaving client ends at once."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time

_CHUNK = 256 * 1024


class ChannelClosed(Exception):
    """The connection is over.

    Args:
        by: ``client`` (closed or reset by it) or ``stop`` (the provider is stopping).
        sent: Bytes of the write under way that were still taken.
    """

    def __init__(self, by: str, sent: int = 0) -> None:
        super().__init__(f"the connection was ended by {by}")
        self.by, self.sent = by, sent


class Channel:
    """A connection whose waits all end when the provider stops.

    Args:
        sock: The accepted socket; the channel owns it.
        wake: A socket that becomes readable when the provider stops.
    """

    def __init__(self, sock: socket.socket, wake: socket.socket) -> None:
        self._sock, self._wake = sock, wake
        self.buffer = bytearray()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)

    def receive(self) -> None:
        """Add what arrives next to ``buffer``.

        Raises:
            ChannelClosed: the client left or the provider stops.
        """
        self._wait(None)
        try:
            data = self._sock.recv(_CHUNK)
        except OSError as error:
            raise ChannelClosed("client") from error
        if not data:
            raise ChannelClosed("client")
        self.buffer += data

    def send(self, data: bytes) -> None:
        """Write all bytes.

        Raises:
            ChannelClosed: the client left or the provider stops.
        """
        sent = 0
        try:
            while sent < len(data):
                sent += self._sock.send(memoryview(data)[sent:])
        except OSError as error:
            raise ChannelClosed("client", sent) from error

    def pause(self, seconds: float | None) -> None:
        """Wait; None waits for ever. Bytes the client sends meanwhile stay unread.

        Raises:
            ChannelClosed: the client left or the provider stops.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        watching = True
        while watching:
            left = None if deadline is None else deadline - time.monotonic()
            if (left is not None and left <= 0) or not self._wait(left):
                return
            watching = self._client_is_silent()
        self._pause_unwatched(deadline)

    def abort(self) -> None:
        """End blocked reads and writes from another thread."""
        with contextlib.suppress(OSError):  # already gone
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self, reset: bool = False) -> None:
        """Close with a FIN, or with a RST."""
        self._selector.close()
        if reset:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def _wait(self, seconds: float | None) -> bool:
        events = self._selector.select(seconds)
        if any(key.fileobj is self._wake for key, _ in events):
            raise ChannelClosed("stop")
        return bool(events)

    def _client_is_silent(self) -> bool:
        """False when bytes are waiting; raises when the client has left."""
        try:
            waiting = self._sock.recv(1, socket.MSG_PEEK)
        except OSError as error:
            raise ChannelClosed("client") from error
        if not waiting:
            raise ChannelClosed("client")
        return False

    def _pause_unwatched(self, deadline: float | None) -> None:
        self._selector.unregister(self._sock)
        try:
            while deadline is None or time.monotonic() < deadline:
                self._wait(None if deadline is None else deadline - time.monotonic())
        finally:
            self._selector.register(self._sock, selectors.EVENT_READ)
