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
        messages, digest: What it holds, and the running digest of that in the form of `message_entry`.
        waiting, inbox: What enters it when the side is asked, likewise.
        prompt_digest: Digest of the system messages, or None: not known.
    """

    __slots__ = ("digest", "inbox", "messages", "prompt_digest", "waiting")

    def __init__(self) -> None:
        self.messages: list[Mapping] = []
        self.digest = canonical.RunningDigest()
        self.waiting: list[Mapping] = []
        self.inbox: list[bytes] = []
        self.prompt_digest: str | None = None

    def ask(self) -> None:
        """The side is asked for a turn: what waited enters its history."""
        if self.inbox:
            self.messages += self.waiting
            self.digest.entries += self.inbox
            self.waiting, self.inbox = [], []

    def held(self, messages: Iterable[Mapping]) -> Conversation:
        """The history that tau2 holds; where it has the messages that were derived, their digest is not redone."""
        system, others = [], []
        for message in messages:
            (system if message["role"] == "system" else others).append(message)
        found = self if others == self.messages else history(others)
        found.prompt_digest = canonical.sha256(b"".join(map(message_entry, system))) if system else None
        return found

    def to_dict(self) -> dict:
        """Number of messages and digest, without system messages, and the digest of those."""
        digest = self.digest.hexdigest()
        return {"messages": len(self.messages), "digest": digest, "prompt_digest": self.prompt_digest}


class Conversations:
    """Both sides' histories over a trajectory, one step per message."""

    __slots__ = ("customer", "learner")

    def __init__(self) -> None:
        self.learner, self.customer = Conversation(), Conversation()

    def feed(self, message: Mapping) -> None:
        """Route the trajectory's next message: into its speaker's history, and to whom it is meant for."""
        role, entry = message["role"], message_entry(message)
        learner, customer = self.learner, self.customer
        if role == "tool":
            listener = customer if message.get("requestor") == "user" else learner
        else:
            speaker, listener = (learner, customer) if role == "assistant" else (customer, learner)
            speaker.ask()
            speaker.messages.append(message)
            speaker.digest.entries.append(entry)
            if message.get("tool_calls"):
                return
        listener.waiting.append(message)
        listener.inbox.append(entry)

    def lose_turn(self, seat: str) -> None:
        """A seat was asked and its turn was lost: its history has what it was asked with."""
        if seat in ("learner", "customer"):
            getattr(self, seat).ask()


def history(messages: Iterable[Mapping]) -> Conversation:
    """A history of normalised messages, none of them of the system."""
    conversation = Conversation()
    conversation.messages = list(messages)
    conversation.digest.entries += map(message_entry, conversation.messages)
    return conversation


def message_entry(message: Mapping) -> bytes:
    """A normalised message as an entry of a running digest; the order of keys has no meaning."""
    role = message["role"]
    if role == "tool":
        requestor, error = message.get("requestor"), "error" if message.get("error") else "ok"
        return canonical.framed(role, message.get("id"), message.get("content"), requestor, error)
    calls = message.get("tool_calls")
    return canonical.framed(role, message.get("content"), canonical.sorted_text(calls) if calls else None)
