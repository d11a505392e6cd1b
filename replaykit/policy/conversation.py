"""The learner's and the customer's own conversation states, derived from the trajectory.

tau2 gives each side its own history: the learner holds what it said, what the user said to it and the results of its
calls; the customer holds what it said and the learner's text, never the learner's calls. A message enters the state
of the side it is meant for only when that side is asked for its next turn, so that the last message of an episode is
in one state only. This file derives both states as running digests; the lists that tau2 itself holds, which also have
the system prompt, must give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replaykit import canonical


class Conversation:
    """One side's history: its messages, their digest, and what waits until the side is asked again.

    Attributes:
        prompt_digest: Digest of the system messages, or None: not known.
    """

    __slots__ = ("_digest", "_inbox", "_messages", "_waiting", "prompt_digest")

    def __init__(self) -> None:
        self._digest = canonical.RunningDigest()
        self._messages: list[Mapping] = []
        self._inbox: list[bytes] = []
        self._waiting: list[Mapping] = []
        self.prompt_digest: str | None = None

    def deliver(self, message: Mapping, entry: bytes) -> None:
        """A message for this side; it enters the history when the side is asked."""
        self._waiting.append(message)
        self._inbox.append(entry)

    def ask(self) -> None:
        """The side is asked for a turn: what waited enters its history."""
        self._digest.add(b"".join(self._inbox))
        self._messages += self._waiting
        self._inbox, self._waiting = [], []

    def say(self, message: Mapping, entry: bytes) -> None:
        """The side's own message."""
        self._inbox.append(entry)
        self._waiting.append(message)
        self.ask()

    def held(self, messages: Iterable[Mapping]) -> Conversation:
        """The history that tau2 holds; where it has the messages that were derived, their digest is not redone."""
        system, others = [], []
        for message in messages:
            (system if message["role"] == "system" else others).append(message)
        found = self if others == self._messages else history(others)
        found.prompt_digest = canonical.sha256(b"".join(map(message_entry, system))) if system else None
        return found

    def hexdigest(self) -> str:
        """Hex SHA-256 of the history without its system messages."""
        return self._digest.hexdigest()

    def to_dict(self) -> dict:
        """Number of messages and digest, without system messages, and the digest of those."""
        return {"messages": len(self._messages), "digest": self.hexdigest(), "prompt_digest": self.prompt_digest}


class Conversations:
    """Both sides' histories over a trajectory, one step per message."""

    __slots__ = ("customer", "learner")

    def __init__(self) -> None:
        self.learner, self.customer = Conversation(), Conversation()

    def feed(self, message: Mapping) -> None:
        """Route the trajectory's next message."""
        role, entry = message["role"], message_entry(message)
        if role == "tool":
            (self.customer if message.get("requestor") == "user" else self.learner).deliver(message, entry)
            return
        speaker, listener = (self.learner, self.customer) if role == "assistant" else (self.customer, self.learner)
        speaker.say(message, entry)
        if not message.get("tool_calls"):
            listener.deliver(message, entry)

    def lose_turn(self, seat: str) -> None:
        """A seat was asked and its turn was lost: its history has what it was asked with."""
        if seat in ("learner", "customer"):
            getattr(self, seat).ask()


def history(messages: Iterable[Mapping]) -> Conversation:
    """A history of normalised messages, none of them of the system."""
    conversation = Conversation()
    for message in messages:
        conversation.deliver(message, message_entry(message))
    conversation.ask()
    return conversation


def message_entry(message: Mapping) -> bytes:
    """A normalised message as an entry of a running digest; the order of keys has no meaning."""
    role = message["role"]
    if role == "tool":
        requestor, error = message.get("requestor"), "error" if message.get("error") else "ok"
        return canonical.framed(role, message.get("id"), message.get("content"), requestor, error)
    calls = message.get("tool_calls")
    return canonical.framed(role, message.get("content"), canonical.sorted_text(calls) if calls else None)
