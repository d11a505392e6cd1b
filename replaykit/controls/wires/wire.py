"""The provider's side of a wire: read a request, render a reply, render an error. Pure functions, no sockets."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
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
class Verbatim:
    """JSON text that goes into a body as it is: number forms, key order and doubled keys survive."""

    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a wire request asks, in normal form.

    Attributes:
        model: The model asked for.
        messages: ``{"role", "content"}`` with role system, user, assistant or tool; an assistant message may carry
            ``tool_calls`` (``{"id", "name", "arguments"}``, arguments as text), a tool message ``tool_call_id``.
            An assistant message whose provider state was given back has it as ``continuation``.
        tools: The tools as sent, or None.
        settings: Every other top-level member as sent.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[Any] | None
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the provider adds to a reply.

    Attributes:
        id: The nonce.
        model: The model it names.
        prompt_tokens, completion_tokens: What it counted.
        continuation: Opaque state to give back with the calls (see `continuation_of`), or None.
    """

    id: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    continuation: str | None = None


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
        render: Reply and stamp to a body; raises `WireRefusal` (500) for a reply the wire has no form for.
        error: A refusal and the id of the reply to an error body.
        headers: Response headers that carry the id of the reply.
        overflow: Prompt tokens and limit to the wire's words for a prompt that does not fit.
        missing_continuation: Position of an assistant message to the wire's words for calls without their state;
            None where the wire has no such state.
    """

    name: str
    base_suffix: str
    claims: Callable[[str], bool]
    parse: Callable[[RequestLine, Any, bool], Asked]
    render: Callable[[Reply, Stamp], dict]
    error: Callable[[WireRefusal, str], dict]
    headers: Callable[[str], list[tuple[str, str]]]
    overflow: Callable[[int, int], WireRefusal]
    missing_continuation: Callable[[int], WireRefusal] | None = None


def to_bytes(body: Any) -> bytes:
    """A body as JSON bytes, each `Verbatim` as its own text."""
    texts: dict[str, str] = {}

    def stand_in(value: Any) -> str:
        if not isinstance(value, Verbatim):
            raise TypeError(f"{type(value).__name__} has no JSON form")
        mark = secrets.token_hex(16)  # nothing in the body can look like it
        texts[mark] = value.text
        return mark

    data = json.dumps(body, separators=(",", ":"), default=stand_in).encode("ascii")
    for mark, text in texts.items():
        data = data.replace(f'"{mark}"'.encode("ascii"), text.encode("utf-8"), 1)
    return data


def continuation_of(calls: Iterable[tuple[str, str]]) -> str:
    """The opaque state that belongs to calls (id and name each): base64 that anybody can compute again."""
    text = "\x00".join(f"{id_}\x01{name}" for id_, name in calls)
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.b64encode(b"control:" + mark).decode("ascii")


def argument_value(text: str) -> Verbatim | str:
    """What stands for a call's arguments on a wire that carries them as JSON: the text itself if it is JSON (in
    Python's reading, so NaN is), else the text as a string, which no such wire allows."""
    try:
        json.loads(text)
        text.encode("utf-8")
    except (ValueError, RecursionError):
        return text
    return Verbatim(text)


def require(condition: object, message: str, **more: Any) -> None:
    """Refuse the request unless the condition holds.

    Raises:
        WireRefusal: it does not.
    """
    if not condition:
        raise WireRefusal(message, **more)


def one_of(value: Any, choices: Iterable[str], message: str, **more: Any) -> str:
    """The value, if it is one of the choices.

    Raises:
        WireRefusal: it is not; the message is followed by the choices.
    """
    known = tuple(choices)
    require(isinstance(value, str) and value in known, f"{message} Supported: {', '.join(known)}.", **more)
    return value


def objects(value: Any, message: str, **more: Any) -> list[dict]:
    """A list of objects; null and absence are an empty one.

    Raises:
        WireRefusal: it is something else.
    """
    items = [] if value is None else value
    require(isinstance(items, list) and all(isinstance(i, dict) for i in items), message, **more)
    return items


def first_unknown(members: Iterable[str], known: frozenset[str]) -> str | None:
    """The first member that the wire does not know, or None."""
    return next((m for m in members if m not in known), None)


def text_of(content: Any, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str | None:
    """Text of a content member: a string, a list of text parts, or null."""
    if content is None or isinstance(content, str):
        return content
    require(isinstance(content, list), "content must be a string or a list of parts")
    for part in objects(content, "content parts must be objects"):
        one_of(part.get("type"), kinds, "only text parts are accepted.")
        require(isinstance(part.get("text"), str), "text must be a string")
    return "".join(part["text"] for part in content)
