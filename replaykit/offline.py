"""A guard that makes any attempt to open a socket an error, for the thread that holds it.

It listens to the interpreter's audit events, so it sees every socket whatever library opens it, patches nothing, and
leaves other threads alone. Attempts are remembered: tau2 swallows some exceptions.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from replaykit.errors import OfflineViolation

_EVENTS = frozenset(
    {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
)
_held: dict[int, list[str]] = {}
_installed = threading.Lock()
_is_installed = False


@contextmanager
def offline() -> Iterator[None]:
    """Refuse sockets in this thread while the block runs.

    Raises:
        OfflineViolation: at the attempt, and again at the end of the block if it was swallowed.
    """
    _install()
    thread = threading.get_ident()
    outer = _held.get(thread)
    attempts: list[str] = []
    _held[thread] = attempts
    try:
        yield
    finally:
        if outer is None:
            del _held[thread]
        else:
            _held[thread] = outer
    if attempts:
        raise OfflineViolation(attempts[0])


def _install() -> None:
    """Audit hooks cannot be removed, so there is one for the process, which does nothing while nobody holds the guard."""
    global _is_installed
    with _installed:
        if not _is_installed:
            sys.addaudithook(_hook)
            _is_installed = True


def _hook(event: str, arguments: tuple) -> None:
    if not _held or event not in _EVENTS:
        return
    attempts = _held.get(threading.get_ident())
    if attempts is not None:
        message = f"a socket was opened while replaying ({event} {_target(arguments)}): a replay is offline, so this is an error"
        attempts.append(message)
        raise OfflineViolation(message)


def _target(arguments: tuple) -> str:
    return " ".join(repr(a) for a in arguments if isinstance(a, (str, int, tuple)))[:120]
