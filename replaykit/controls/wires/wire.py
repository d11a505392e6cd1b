"""The provider's side of a wire: read a request, render a reply, render an error. Pure functions, no sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replaykit.controls.replies import Reply

CREATED = 1_790_000_000


class WireRefusal(Exception):
    """The request is not one of this wire; the provider answers with an error body.

    Args:
        message: What is wrong, as the wire's error text.
        status: HTTP status.
        code: The wire's own code or reason, if it has one for this.
        param: JSON path of the offending member, in the wire's spelling.
        retry_s: Seconds after which to ask again, for wires that say it in the body.
    """

    def __init__(
        self,
        message: str,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        retry_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.param, self.retry_s = message, status, code, param, retry_s


@dataclass(frozen=True, slots=True)
class Asked:
    """What a wire request asks, in normal form.

    Attributes:
        model: The model asked for.
        messages: ``{"role", "content"}`` with role system, user, assistant or tool; an assistant message may carry
            ``tool_calls`` (``{"id", "name", "arguments"}``, arguments as text), a tool message ``tool_call_id``.
        tools: The tools as sent, or None.
        settings: Every other top-level member as sent.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[Any] | None
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the provider adds to a reply: an id, the model it names, the tokens it counted."""

    id: str
    model: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class RequestLine:
    """Method, path (behind the seat's base) and headers (lower-case names) of a request."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wire:
    """The functions of one wire.

    Attributes:
        name: ``openai-chat``, ``openai-responses``, ``anthropic-messages`` or ``gemini-generate``.
        base_suffix: What a base URL of this wire ends in.
        claims: Whether a path belongs to this wire.
        parse: Request line, decoded body and strictness to `Asked`; raises `WireRefusal`.
        render: Reply and stamp to a body.
        error: A refusal to an error body.
        headers: Response headers that carry the id of the reply.
        overflow: Code, prompt tokens and limit to the wire's words for a prompt that does not fit.
    """

    name: str
    base_suffix: str
    claims: Callable[[str], bool]
    parse: Callable[[RequestLine, Any, bool], Asked]
    render: Callable[[Reply, Stamp], dict]
    error: Callable[[WireRefusal], dict]
    headers: Callable[[str], list[tuple[str, str]]]
    overflow: Callable[[int, int], WireRefusal]


def require(condition: object, message: str, **more: Any) -> None:
    """Refuse the request unless the condition holds.

    Raises:
        WireRefusal: it does not.
    """
    if not condition:
        raise WireRefusal(message, **more)


def first_unknown(members: Iterable[str], known: frozenset[str]) -> str | None:
    """The first member that the wire does not know, or None."""
    return next((m for m in members if m not in known), None)


def text_of(content: Any, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str | None:
    """Text of a content member: a string, a list of text parts, or null."""
    if content is None or isinstance(content, str):
        return content
    require(isinstance(content, list), "content must be a string or a list of parts")
    require(all(isinstance(p, dict) and p.get("type") in kinds for p in content), "only text parts are accepted")
    return "".join(str(p.get("text", "")) for p in content)
