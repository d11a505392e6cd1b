"""The wire ``openai-chat``: chat completions, for OpenAI and every compatible server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatReply, TransportRequest
from replaykit.transports import bodies
from replaykit.transports.bodies import is_count, malformed, member
from replaykit.transports.wire import Capabilities, Dialect, WireTransport, call_mark, join_url, one_of

FINISH = {"function_call": "tool_calls", "model_length": "length", "max_tokens": "length"}
_CALL_MEMBERS = {"id", "type", "function", "index"}
_FUNCTION_MEMBERS = {"name", "arguments"}


@dataclass(frozen=True, slots=True)
class ChatDialect(Dialect):
    """What differs between servers of this wire.

    Attributes:
        max_tokens: Key of the output limit: ``max_tokens`` or ``max_completion_tokens``.
        no_text: Form of an assistant message that has calls and no text: ``null``, ``empty`` or ``omit``.
        system_role: ``system`` or ``developer``.
    """

    max_tokens: str = "max_tokens"
    no_text: str = "null"
    system_role: str = "system"

    def __post_init__(self) -> None:
        Dialect.__post_init__(self)
        one_of("max_tokens", self.max_tokens, ("max_tokens", "max_completion_tokens"))
        one_of("no_text", self.no_text, ("null", "empty", "omit"))
        one_of("system_role", self.system_role, ("system", "developer"))


class OpenAIChat(WireTransport):
    """``POST {base_url}/chat/completions``."""

    name = "openai-chat"
    wire_version = "v1"
    dialect_type = ChatDialect
    own_fields = frozenset(
        {
            "model",
            "messages",
            "tools",
            "tool_choice",
            "temperature",
            "top_p",
            "max_tokens",
            "max_completion_tokens",
            "seed",
            "stop",
            "stream",
            "n",
        }
    )

    @property
    def capabilities(self) -> Capabilities:
        """Settings omitted by the dialect; the rewrites that the dialect asks for."""
        rewrites = {"redundant_tool_name": "the second name of an assistant tool call is not sent"}
        if self.dialect.no_text != "null":
            rewrites["no_text"] = (
                f"an assistant message with calls and no text has its content sent as {self.dialect.no_text!r}"
            )
        if self.dialect.system_role != "system":
            rewrites["system_role"] = "system messages are sent with the role 'developer'"
        return Capabilities(self.dialect.omit, rewrites)

    def url(self, request: TransportRequest) -> str:
        """The address for this request."""
        return join_url(self.base_url, "/chat/completions")

    def to_wire(self, request: TransportRequest) -> dict[str, Any]:
        """The body, members in the order model, messages, tools, tool_choice, settings, extra fields."""
        body: dict[str, Any] = {
            "model": self.model_for(request),
            "messages": [self._message(m, request) for m in request.messages],
        }
        if request.tools:
            body |= {"tools": request.tools, "tool_choice": request.tool_choice or "auto"}
        settings = self.sent_settings(request)
        body |= {self.dialect.max_tokens if k == "max_output_tokens" else k: v for k, v in settings.items()}
        return body | self.body_fields

    def from_wire(
        self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest | None = None
    ) -> SeatReply:
        """See `from_wire`."""
        return from_wire(status, headers, body, self.provider)

    def _message(self, message: dict, request: TransportRequest) -> dict[str, Any]:
        role = message["role"]
        if role == "tool":
            return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["content"]}
        if role == "assistant" and message.get("tool_calls"):
            calls = [self._call(c, request) for c in message["tool_calls"]]
            return {"role": "assistant", **self._content(message.get("content")), "tool_calls": calls}
        return {"role": self.dialect.system_role if role == "system" else role, "content": message["content"]}

    def _content(self, content: str | None) -> dict[str, Any]:
        if content:
            return {"content": content}
        return {"null": {"content": None}, "empty": {"content": ""}, "omit": {}}[self.dialect.no_text]

    def _call(self, call: dict, request: TransportRequest) -> dict[str, Any]:
        function = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        side = self.side_for(request, call["id"], **function)
        return {
            "id": call["id"],
            "type": "function",
            "function": function | {k: v for k, v in side.get("function", {}).items() if k not in function},
            **{k: v for k, v in side.get("call", {}).items() if k not in _CALL_MEMBERS},
        }


def to_wire(request: TransportRequest, dialect: ChatDialect | None = None, **extra: Any) -> dict[str, Any]:
    """The body for a request, without a transport at hand.

    Args:
        request: What to ask.
        dialect: Options, default all defaults.
        extra: Extra body fields.
    """
    return OpenAIChat("http://localhost", dialect=dialect, body_fields=extra).to_wire(request)


def from_wire(status: int, headers: Mapping[str, Any], body: bytes, provider: str = "openai-chat") -> SeatReply:
    """The reply in a chat completion.

    Args:
        status: HTTP status.
        headers: Response headers.
        body: Raw response body.
        provider: Mark put on side members, so that they go back to nobody else.

    Raises:
        SeatFailure: anything that is not exactly one usable choice.
    """
    return read_completion(bodies.reply_object(status, headers, body), provider)


def read_completion(data: dict[str, Any], provider: str) -> SeatReply:
    """The reply in a chat completion that is already data; see `from_wire`."""
    choice = _only_choice(data)
    message = member(choice, "message", dict, "/choices/0")
    if message.get("function_call"):
        raise malformed("/choices/0/message/function_call is the old form of a call, which cannot be answered")
    calls = [_read_call(c, i) for i, c in enumerate(_optional_list(message, "tool_calls"))]
    content = _text(message.get("content"))
    finish, content = _finish(choice.get("finish_reason"), message.get("refusal"), content, bool(calls))
    return SeatReply(
        content=content,
        tool_calls=tuple(calls),
        finish_reason=finish,
        usage=read_usage(data.get("usage")),
        model=bodies.optional_text(data, "model"),
        id=bodies.optional_text(data, "id"),
        cost=_cost(data.get("usage")),
        side=_side(message, provider),
    )


def read_usage(usage: Any) -> dict[str, Any] | None:
    """Usage as reported; counts that are no counts are left out, and nothing reported is None, never 0."""
    if not isinstance(usage, dict):
        return None
    kept = {k: v for k, v in usage.items() if k not in ("prompt_tokens", "completion_tokens") or is_count(v)}
    return kept or None


def _only_choice(data: dict) -> dict:
    choices = member(data, "choices", list, "")
    if len(choices) != 1:
        raise malformed(f"/choices holds {len(choices)} choices where one was asked for")
    return choices[0]


def _read_call(call: Any, index: int) -> ReplyCall:
    where = canonical.pointer("choices", 0, "message", "tool_calls", index)
    if isinstance(call, dict) and call.get("type") not in (None, "function"):
        raise malformed(f"{where}/type is {str(call['type'])[:40]!r}, not 'function'")
    function = member(call, "function", dict, where)
    inner = where + "/function"
    return ReplyCall(
        member(call, "id", str, where), member(function, "name", str, inner), member(function, "arguments", str, inner)
    )


def _finish(word: Any, refusal: Any, content: str | None, has_calls: bool) -> tuple[str | None, str | None]:
    if isinstance(refusal, str) and refusal:
        return "refusal", content or refusal
    finish = FINISH.get(word, word) if isinstance(word, str) else None
    if finish == "tool_calls" and not has_calls:
        raise malformed("/choices/0/finish_reason announces tool calls, and there are none")
    return "tool_calls" if has_calls and finish == "stop" else finish, content


def _text(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise malformed("/choices/0/message/content is neither text nor null")
    parts = [_part_text(p, i) for i, p in enumerate(content)]
    return "".join(parts) or None


def _part_text(part: Any, index: int) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("thinking", "reasoning"):
        return ""
    if kind != "text":
        raise malformed(f"/choices/0/message/content/{index} is no text part")
    return member(part, "text", str, canonical.pointer("choices", 0, "message", "content", index))


def _side(message: dict, provider: str) -> dict[str, Any]:
    side: dict[str, Any] = {}
    for call in _optional_list(message, "tool_calls"):
        extra = {k: v for k, v in call.items() if k not in _CALL_MEMBERS and v is not None}
        inner = {k: v for k, v in call["function"].items() if k not in _FUNCTION_MEMBERS and v is not None}
        if extra or inner:
            mark = call_mark(call["function"]["name"], call["function"]["arguments"])
            side[call["id"]] = {"provider": provider, "of": mark, "call": extra, "function": inner}
    return side


def _optional_list(message: dict, key: str) -> list:
    return [] if message.get(key) is None else member(message, key, list, "/choices/0/message")


def _cost(usage: Any) -> float | None:
    cost = usage.get("cost") if isinstance(usage, dict) else None
    is_amount = isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0
    return float(cost) if is_amount else None
