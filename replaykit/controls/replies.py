"""What a control answers, before any wire gives it a form. Values only: no IO, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

OMITTABLE = ("finish", "id", "model", "usage")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; ``arguments`` is text and goes out exactly as it is."""

    id: str
    name: str
    arguments: str

    def to_dict(self) -> dict:
        """Plain data."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a control, well-formed or not on purpose.

    Attributes:
        content: Text, or None.
        tool_calls: Calls in order.
        finish_reason: ``stop``, ``length``, ``tool_calls``, ``content_filter``, or any other word, which the wire
            passes on as it is. None: ``tool_calls`` when there are calls, else ``stop``.
        refusal: Text of a refusal, where the wire has a place for it.
        reasoning: Text that is reasoning and no answer.
        alternatives: Further choices beside this one (wires with choices only).
        empty: No choice at all.
        served_model: The model the reply claims to come from; None: the one asked for.
        usage: ``{"prompt_tokens", "completion_tokens"}``; None: counted from the characters.
        omit: Members to leave out, from `OMITTABLE`.
    """

    content: str | None = None
    tool_calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    alternatives: tuple[Reply, ...] = ()
    empty: bool = False
    served_model: str | None = None
    usage: Mapping[str, int] | None = None
    omit: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        unknown = set(self.omit) - set(OMITTABLE)
        if unknown:
            raise ValueError(f"a reply cannot leave out {sorted(unknown)}; choose from {OMITTABLE}")

    @property
    def finish(self) -> str:
        """The finish reason, derived from the calls when none was given."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")

    def with_content(self, content: str | None) -> Reply:
        """The same reply with another text."""
        return replace(self, content=content)

    def to_dict(self) -> dict:
        """Plain data; members that say nothing are left out, except ``content``."""
        data: dict[str, Any] = {"content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [c.to_dict() for c in self.tool_calls]
        for key in ("finish_reason", "refusal", "reasoning", "served_model"):
            if getattr(self, key) is not None:
                data[key] = getattr(self, key)
        if self.alternatives:
            data["alternatives"] = [a.to_dict() for a in self.alternatives]
        if self.empty:
            data["empty"] = True
        if self.usage is not None:
            data["usage"] = dict(self.usage)
        if self.omit:
            data["omit"] = list(self.omit)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reply:
        """Undo `to_dict`. A script may leave out ``content`` and, in a call, nothing.

        Raises:
            KeyError, TypeError, ValueError: the data is not a reply.
        """
        known = dict(data)
        known["tool_calls"] = tuple(Call(c["id"], c["name"], c["arguments"]) for c in data.get("tool_calls") or ())
        known["alternatives"] = tuple(cls.from_dict(a) for a in data.get("alternatives") or ())
        known["omit"] = tuple(data.get("omit") or ())
        return cls(**known)


def characters(reply: Reply) -> int:
    """Characters a model would have had to write for this reply."""
    texts = (reply.content, reply.refusal, reply.reasoning)
    calls = sum(len(c.name) + len(c.arguments) for c in reply.tool_calls)
    return calls + sum(len(t) for t in texts if t)


def tokens(count: int) -> int:
    """The controls' count of tokens: four characters are one, and a rest is one more."""
    return -(-count // 4)
