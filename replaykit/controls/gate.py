"""Waiting for connections in a way that a stop ends at once."""

from __future__ import annotations

import selectors
import socket


class Gate:
    """Accepts connections of a listener until the wake socket becomes readable.

    Args:
        listener: A listening socket.
        wake: A socket that becomes readable at the stop.
    """

    def __init__(self, listener: socket.socket, wake: socket.socket) -> None:
        listener.setblocking(False)
        self._listener, self._wake = listener, wake

    def next(self) -> socket.socket | None:
        """The next connection, or None at the stop."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._wake in ready:
                    return None
                accepted = self._accepted()
                if accepted is not None:
                    return accepted

    def _accepted(self) -> socket.socket | None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return None  # the client left before it was accepted
        accepted.setblocking(True)
        return accepted
