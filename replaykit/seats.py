"""The three seats and the three layers of a request: native, transport, wire.

* `SeatRequest` is the *native request*: what tau2 itself asks of a seat, exactly as tau2 builds it.
* `TransportRequest` is the native request after normalisation for the transport.
* A *wire exchange* is the HTTP request and response that a transport made for it (see `WireExchange`).

Whatever answers a seat has one shape, `ReplySource`: live, recorded, scripted or faulty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

from replaykit import canonical
from replaykit.errors import ReplaykitError, ToolNameMismatch

SEATS = ("learner", "customer", "judge")


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """A native request.

    Attributes:
        seat: ``learner``, ``customer`` or ``judge``.
        number: Position among all requests of the episode, from 1.
        model: The model name tau2 was configured with for this seat.
        messages: tau2's message dictionaries; assistant tool calls carry the name twice.
        tools: tau2's tool schemas, or None when the seat has none (never an empty list).
        tool_choice: ``"auto"`` when there are tools, else None.
        arguments: Keyword arguments tau2 passes on: temperature, seed, num_retries.
    """

    seat: str
    number: int
    model: str
    messages: list[dict]
    tools: list[dict] | None
    tool_choice: str | None
    arguments: dict[str, Any]

    def to_dict(self) -> dict:
        """Plain data in a fixed key order; the value whose ordered digest identifies the request."""
        return {
            "seat": self.seat,
            "model": self.model,
            "messages": self.messages,
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "arguments": self.arguments,
        }

    @classmethod
    def from_dict(cls, data: dict, number: int) -> SeatRequest:
        """Undo `to_dict`."""
        return cls(
            number=number, **{k: data[k] for k in ("seat", "model", "messages", "tools", "tool_choice", "arguments")}
        )


@dataclass(frozen=True, slots=True)
class TransportRequest:
    """A native request after normalisation: no redundant tool names, settings spelled out.

    Attributes:
        messages: As native, but each assistant tool call is ``{"id", "type", "function": {"name", "arguments"}}``;
            assistant messages without calls have no ``tool_calls`` key.
        settings: ``temperature``, ``top_p``, ``max_output_tokens`` and, for learner and customer, ``seed``.
        deadline_s: Seconds for the whole request.
        side: What a provider needs back and the native form cannot hold, keyed by tool call id
            (e.g. thought signatures); filled from earlier replies of the same seat.
    """

    seat: str
    number: int
    model: str
    messages: list[dict]
    tools: list[dict] | None
    tool_choice: str | None
    settings: dict[str, Any]
    deadline_s: float
    side: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call in a reply; ``arguments`` is the model's own text, never re-serialised."""

    id: str
    name: str
    arguments: str

    def to_dict(self) -> dict:
        """Plain data."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class SeatReply:
    """What a seat answered, in normal form.

    Attributes:
        content: Text, or None.
        tool_calls: Calls in the order given.
        finish_reason: ``stop``, ``length``, ``tool_calls``, ``content_filter``, ``refusal``, or the wire's own
            word, or None when the wire said nothing.
        usage: ``prompt_tokens`` and ``completion_tokens`` (and more, as reported), or None: not reported.
        model: The model the provider says it served, or None.
        id: The provider's id of the reply, or None.
        cost: US dollars as reported by the provider, or None: not reported.
        side: Members to give back later, keyed by tool call id (see `TransportRequest.side`).
    """

    content: str | None = None
    tool_calls: tuple[ReplyCall, ...] = ()
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    id: str | None = None
    cost: float | None = None
    side: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Plain data; keys whose value says nothing are left out."""
        data: dict[str, Any] = {"content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [c.to_dict() for c in self.tool_calls]
        for key in ("finish_reason", "usage", "model", "id", "cost"):
            if getattr(self, key) is not None:
                data[key] = getattr(self, key)
        if self.side:
            data["side"] = self.side
        return data

    @classmethod
    def from_dict(cls, data: dict) -> SeatReply:
        """Undo `to_dict`; unknown keys are refused.

        Raises:
            KeyError, TypeError: the data is not a reply.
        """
        calls = tuple(ReplyCall(c["id"], c["name"], c["arguments"]) for c in data.get("tool_calls", ()))
        reply = cls(**{**data, "tool_calls": calls})
        reply.check()
        return reply

    def check(self) -> None:
        """Check the types of the members.

        Raises:
            TypeError: one has another.
        """
        if not all(map(isinstance, _MEMBERS(self), _REPLY_KINDS.values())):
            name = next(n for n, kinds in _REPLY_KINDS.items() if not isinstance(getattr(self, n), kinds))
            raise TypeError(f"a reply's {name} is a {type(getattr(self, name)).__name__}")
        if not all(isinstance(call, ReplyCall) for call in self.tool_calls):
            raise TypeError("a reply's tool_calls are no ReplyCall")


_TEXT = (str, type(None))
_REPLY_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("content", "finish_reason", "model", "id"), _TEXT),
    "tool_calls": (tuple, list),
    "usage": (dict, type(None)),
    "cost": (int, float, type(None)),
    "side": (dict,),
}
_MEMBERS = attrgetter(*_REPLY_KINDS)


FAILURE_KINDS = (
    "unreachable",  # no connection, or it broke before a whole reply
    "deadline",  # the 17 seconds of the whole request ran out
    "status",  # an HTTP error status (see `status`)
    "rate_limit",  # 429 in any spelling
    "overloaded",  # 503, 529 or an overload reported under 200
    "auth",  # 401, 403
    "context_overflow",  # the prompt does not fit, in any provider's spelling
    "malformed",  # a 2xx whose body is not a reply of this wire
    "redirect_refused",  # any 3xx
    "capability",  # the wire refused a setting it declares it cannot carry
    "pairing",  # tool results do not follow their calls; refused before sending
    "unsendable",  # the request cannot be encoded (lone surrogate, ...); nothing was sent
    "transport_error",  # the transport's own code raised something else, or returned what is no reply
)


class SeatFailure(ReplaykitError):
    """A seat gave no usable reply to one attempt.

    Args:
        kind: One of `FAILURE_KINDS`.
        message: What happened, redacted.
        status: HTTP status if one arrived.
        retry_after_s: What the provider asked for, if it did.
    """

    exit_code = 4

    def __init__(self, kind: str, message: str, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.status, self.retry_after_s = kind, message, status, retry_after_s

    def to_dict(self) -> dict:
        """Plain data for the journal."""
        data: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.status is not None:
            data["status"] = self.status
        if self.retry_after_s is not None:
            data["retry_after_s"] = self.retry_after_s
        return data

    @classmethod
    def from_dict(cls, data: dict) -> SeatFailure:
        """Undo `to_dict`.

        Raises:
            KeyError, TypeError: the data is not a failure.
        """
        if not isinstance(data["kind"], str) or not isinstance(data["message"], str):
            raise TypeError("a failure's kind and message are texts")
        return cls(data["kind"], data["message"], data.get("status"), data.get("retry_after_s"))


@dataclass(slots=True)
class WireExchange:
    """One attempt on the wire, in vcrpy's terms.

    Attributes:
        attempt: From 1 within the seat request.
        request: ``{"method", "uri", "headers": {name: [values]}, "body": bytes}``.
        response: ``{"status": {"code", "message"}, "headers": {name: [values]}, "body": bytes}`` or None when no
            whole response arrived; ``partial`` then holds what did.
        failure: `SeatFailure.to_dict()` or None.
        timing: ``connect_s``, ``sent_s``, ``headers_s``, ``total_s`` as far as they happened; never compared.
    """

    attempt: int
    request: dict[str, Any]
    response: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    timing: dict[str, float] = field(default_factory=dict)
    partial: bytes = b""


class NotRecorded(Exception):
    """A source knows that this was asked, but not what was answered: the run it speaks for did not keep it.

    Args:
        termination: How that run ended here, or None: it ended as tau2 finds (a judge's reply).
    """

    def __init__(self, termination: str | None) -> None:
        super().__init__("the reply was not recorded")
        self.termination = termination


class ReplySource(Protocol):
    """The one seam: a transport, a cassette, a script or a fault answers through this method."""

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """Answer one request.

        Args:
            request: What to ask.
            on_exchange: Called once for each wire exchange as it ends, before this method returns or raises.
                Sources without a wire never call it.

        Raises:
            SeatFailure: no usable reply.
            NotRecorded: nobody can know the reply.
        """


def check_tool_names(messages: Sequence[dict], start: int = 0) -> None:
    """Check that the two names of each native assistant tool call agree. Runs before any normalisation.

    Args:
        start: Messages before this position were checked already.

    Raises:
        ToolNameMismatch: with the JSON pointer of the first call whose names disagree.
    """
    for i, message in enumerate(messages[start:], start):
        for j, call in enumerate(message.get("tool_calls") or ()):
            inner = (call.get("function") or {}).get("name")
            outer = call.get("name", inner)
            if outer != inner:
                raise ToolNameMismatch(canonical.pointer("messages", i, "tool_calls", j), outer, inner)


def normalise_message(message: dict) -> dict:
    """One native message without the redundant tool name and without null-valued optional keys."""
    if message["role"] != "assistant":
        return message
    calls = message.get("tool_calls")
    if not calls:
        return {"role": "assistant", "content": message["content"]}
    return {
        "role": "assistant",
        "content": message["content"],
        "tool_calls": [
            {
                "id": c["id"],
                "type": "function",
                "function": {"name": c["function"]["name"], "arguments": c["function"]["arguments"]},
            }
            for c in calls
        ],
    }


def arguments_object(text: str) -> dict:
    """The JSON object in a tool call's argument text, as tau2 reads it (Python's json, last key wins).

    Raises:
        ValueError: not JSON, or JSON but not an object.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("arguments are nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"arguments are {type(value).__name__}, not an object")
    return value
