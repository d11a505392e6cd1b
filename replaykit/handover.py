"""A step out, a reply in, in turns: between an episode's own thread and whoever drives one of its seats.

tau2's loop calls for a reply and waits, so an episode that is driven from outside runs in a thread, and exactly one
side moves at a time. What the driver waits for is a `concurrent.futures.Future`, so it may wait as a thread or, with
`asyncio.wrap_future`, as a coroutine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


class Closed(BaseException):
    """The driver left. Not an Exception, so that tau2 does not swallow it."""


class HandOver:
    """Hands steps out of an episode and replies into it.

    A driver that cancels what it waits for has left: the episode ends at its next question.
    """

    def __init__(self) -> None:
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._waiting: Future = Future()

    def start(self, episode: Callable[[], Any], name: str) -> tuple[threading.Thread, Future]:
        """Run an episode in a thread of its own.

        Args:
            episode: Gives the last step; asks for replies with `ask`. What it raises, the driver gets.
            name: Of the thread.

        Returns:
            The thread, and what its first step arrives in. It does not keep the interpreter from ending.
        """
        thread = threading.Thread(target=self._run, args=(episode,), name=name, daemon=True)
        waiting = self._waiting
        thread.start()
        return thread, waiting

    def send(self, reply: Any) -> Future:
        """Answer the last step; the next one arrives in what is returned."""
        waiting = self._waiting = Future()
        self._replies.put(reply)
        return waiting

    def close(self) -> None:
        """The driver leaves: the episode's next question, or the one that waits, raises `Closed` there."""
        self._replies.put(Closed)

    def ask(self, step: Any) -> Any:
        """In the episode's thread: hand a step out and wait for its reply.

        Raises:
            Closed: the driver left.
        """
        self._deliver(lambda waiting: waiting.set_result(step))
        reply = self._replies.get()
        if reply is Closed:
            self.close()  # whoever asks again hears it again
            raise Closed
        return reply

    def _run(self, episode: Callable[[], Any]) -> None:
        try:
            last = episode()
        except BaseException as error:  # whatever ended the episode belongs to the driver
            found = error
            self._deliver(lambda waiting: waiting.set_exception(found))
        else:
            self._deliver(lambda waiting: waiting.set_result(last))

    def _deliver(self, settle: Callable[[Future], None]) -> None:
        waiting = self._waiting
        if waiting.cancelled() or (not waiting.done() and not waiting.set_running_or_notify_cancel()):
            self.close()
        elif not waiting.done():  # a driver that left after the last step waits for nothing
            settle(waiting)
