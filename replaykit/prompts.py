"""System prompts that a fork puts in place of the learner's own, each from a request on.

tau2 goes on building its own prompt; what the learner is asked with is the other one, and so is what a cassette holds.
Its header keeps the text, so that a replay asks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replaykit import canonical
from replaykit.errors import EvidenceError
from replaykit.seats import SeatReply, SeatRequest

MEMBER = "prompts"
"""Of a cassette's header: ``[{"at": NUMBER, "text": PROMPT}, ...]``, in order; absent where tau2's own stood."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of one episode.

    Attributes:
        entries: Number of the first request, and the system message from there on, in order.
    """

    entries: tuple[tuple[int, dict], ...] = ()

    @classmethod
    def of_header(cls, header: Mapping[str, Any]) -> Prompts:
        """Those that a cassette was recorded with.

        Raises:
            EvidenceError: the member is not of its shape.
        """
        given = header.get(MEMBER, [])
        if not isinstance(given, list) or not all(map(_is_entry, given)):
            raise EvidenceError(f"the header's {MEMBER} are no list of prompts with the requests they begin at")
        numbers = [entry["at"] for entry in given]
        if numbers != sorted(set(numbers)):
            raise EvidenceError(f"the header's {MEMBER} do not stand in order")
        return cls(tuple((entry["at"], _message(entry["text"])) for entry in given))

    def forked(self, at: int, text: str | None) -> Prompts:
        """Those of a child that goes live at a request, there with another text or None: as asked there before."""
        if text is None:
            return Prompts(tuple(entry for entry in self.entries if entry[0] <= at))
        return Prompts((*(entry for entry in self.entries if entry[0] < at), (at, _message(text))))

    def header(self, head: Mapping[str, Any]) -> dict:
        """A cassette's header with these prompts; they are part of what identifies its arm."""
        if not self.entries:
            return dict(head)
        listed = [{"at": at, "text": message["content"]} for at, message in self.entries]
        arm = head["arm"]
        marked = arm | {"digest": canonical.digest([arm["digest"], listed])}
        return {**head, "arm": marked, MEMBER: listed}

    def asking(self, ask: Callable[[SeatRequest], SeatReply]) -> Callable[[SeatRequest], SeatReply]:
        """A way to ask in which the learner's requests carry these prompts."""
        return (lambda request: ask(self._put(request))) if self.entries else ask

    def _put(self, request: SeatRequest) -> SeatRequest:
        begun = [message for at, message in self.entries if at <= request.number]
        if request.seat != "learner" or not begun:
            return request
        return replace(request, messages=[begun[-1], *_without_prompt(request.messages)])


NONE = Prompts()


def _message(text: str) -> dict:
    return {"role": "system", "content": text}


def _without_prompt(messages: Sequence[dict]) -> Sequence[dict]:
    return messages[1:] if messages and messages[0]["role"] == "system" else messages


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"at", "text"}
        and type(entry["at"]) is int
        and entry["at"] > 0
        and isinstance(entry["text"], str)
    )
