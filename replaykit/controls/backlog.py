"""An address on which a connection attempt never comes to an end: a listener whose backlog is full."""

from __future__ import annotations

import selectors
import socket
from types import TracebackType

from replaykit.errors import Incomplete

_ATTEMPTS = 16
_SETTLE_S = 0.2


class FullBacklog:
    """A listener on 127.0.0.1 that accepts nobody and whose queue is full. A context manager.

    Raises:
        Incomplete: on entry, where the system goes on taking connections beyond the queue.
    """

    def __enter__(self) -> FullBacklog:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._waiting: list[socket.socket] = []
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        if not self._fill():
            self._close()
            raise Incomplete("this system takes connections beyond a full queue, so a hanging connect cannot be shown")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    @property
    def port(self) -> int:
        """The port on which every further connection attempt hangs."""
        return self._listener.getsockname()[1]

    def base_url(self, suffix: str = "/v1") -> str:
        """A base URL at this address."""
        return f"http://127.0.0.1:{self.port}{suffix}"

    def _fill(self) -> bool:
        """Connect until an attempt hangs."""
        for _ in range(_ATTEMPTS):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", self.port))
            self._waiting.append(sock)
            if not _is_connected(sock):
                return True
        return False

    def _close(self) -> None:
        for sock in (*self._waiting, self._listener):
            sock.close()


def _is_connected(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_WRITE)
        return bool(selector.select(_SETTLE_S))
