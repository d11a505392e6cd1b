"""A guard that makes any attempt to open a socket an error, for the thread that holds it and the threads it starts.

It listens to the interpreter's audit events, so it sees every socket whatever library opens it, patches nothing, and
leaves other threads alone; that a thread is started can be seen from Python 3.12 on. Starting a program is refused as
well, since nobody could see what sockets that opens. Attempts are remembered: tau2 swallows some exceptions.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

from replaykit.errors import OfflineViolation

_SOCKETS = frozenset(
    "socket." + name
    for name in (
        "connect", "bind", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo",
    )
)  # fmt: skip
_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile"})
_THREADS = frozenset({"_thread.start_new_thread", "_thread.start_joinable_thread"})
_EVENTS = _SOCKETS | _PROGRAMS | _THREADS
# By thread, the attempts of the innermost guard that holds it. A thread stays with the guard it was started under.
_held: MutableMapping[threading.Thread, list[str]] = weakref.WeakKeyDictionary()
_installed = threading.Lock()
_is_installed = False


@contextmanager
def offline() -> Iterator[None]:
    """Refuse sockets in this thread, and in the threads it starts, while the block runs.

    Raises:
        OfflineViolation: at the attempt, and again at the end of the block if it was swallowed.
    """
    _install()
    thread = threading.current_thread()
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
    """Audit hooks cannot be removed, so the process has one, which does nothing while nobody holds the guard."""
    global _is_installed
    with _installed:
        if not _is_installed:
            sys.addaudithook(_hook)
            _is_installed = True


def _hook(event: str, arguments: tuple) -> None:
    if event not in _EVENTS or not _held:
        return
    attempts = _held.get(threading.current_thread())
    if attempts is None:
        return
    if event in _THREADS:
        _take_along(arguments[0], attempts)
        return
    what = "a socket was opened" if event in _SOCKETS else "a program was started"
    message = f"{what} while replaying ({event} {_target(arguments)}): a replay is offline, so this is an error"
    attempts.append(message)
    raise OfflineViolation(message)


def _take_along(function: object, attempts: list[str]) -> None:
    """A thread that is being started; its first function is a method of it."""
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread):
        _held[thread] = attempts


def _target(arguments: tuple) -> str:
    return " ".join(repr(a) for a in arguments if isinstance(a, (str, int, tuple)))[:120]
