"""The learner's and the customer's own conversation states, derived from the trajectory.

tau2 gives each side its own history: the learner holds what it said, what the user said to it and the results of its
calls; the customer holds what it said and the learner's text, never the learner's calls. A message enters the state
of the side it is meant for only when that side is asked for its next turn, so that the last message of an episode is
in one state only. This file derives both states as running digests; the engine's own lists must give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replaykit import canonical


class Conversation:
    """One side's history: a digest, a length, and what waits until the side is asked again."""

    __slots__ = ("_digest", "_inbox", "length")

    def __init__(self) -> None:
        self._digest = canonical.RunningDigest()
        self._inbox: list[bytes] = []
        self.length = 0

    def deliver(self, data: bytes) -> None:
        """A message for this side; it enters the history when the side is asked."""
        self._inbox.append(data)

    def ask(self) -> None:
        """The side is asked for a turn: what waited enters its history."""
        for data in self._inbox:
            self._append(data)
        self._inbox.clear()

    def say(self, data: bytes) -> None:
        """The side's own message."""
        self.ask()
        self._append(data)

    def to_dict(self) -> dict:
        """Number of messages and digest."""
        return {"messages": self.length, "digest": self._digest.hexdigest()}

    def _append(self, data: bytes) -> None:
        self._digest.add_bytes(data)
        self.length += 1


class Conversations:
    """Both sides' histories over a trajectory, one step per message."""

    __slots__ = ("customer", "learner")

    def __init__(self) -> None:
        self.learner, self.customer = Conversation(), Conversation()

    def feed(self, message: Mapping) -> None:
        """Route the trajectory's next message."""
        data, role = canonical.sorted_(message), message["role"]
        if role == "tool":
            (self.learner if message.get("requestor") != "user" else self.customer).deliver(data)
            return
        speaker, listener = (self.learner, self.customer) if role == "assistant" else (self.customer, self.learner)
        speaker.say(data)
        if not message.get("tool_calls"):
            listener.deliver(data)

    def lose_turn(self, seat: str) -> None:
        """A seat was asked and its turn was lost: its history has what it was asked with."""
        if seat in ("learner", "customer"):
            getattr(self, seat).ask()


def state_of(messages: Iterable[Mapping]) -> dict:
    """Number of messages and digest of a history that tau2 holds, in `Conversation.to_dict`'s form."""
    members = list(messages)
    return {"messages": len(members), "digest": canonical.RunningDigest(members).hexdigest()}
