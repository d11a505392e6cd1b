"""The wire ``anthropic-messages``; its version decides whether sampling settings may be sent at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, TransportRequest
from replaykit.transports import bodies, history
from replaykit.transports.bodies import is_count, malformed, member, object_text
from replaykit.transports.history import Step
from replaykit.transports.wire import Capabilities, Dialect, WireTransport, call_mark, join_url, one_of

VERSIONS = ("2023-06-01", "2026-10-21")
NO_TEXT = "(no text)"
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_REWRITES = {
    "redundant_tool_name": "the second name of an assistant tool call is not sent",
    "system_apart": "leading system messages go in the member 'system'",
    "merged_turns": "neighbouring turns of one role are one turn, tool results first",
    "call_ids": "a tool call id that repeats, or holds more than letters, digits, _ and -, is replaced by rule",
    "arguments_as_object": "the argument text of a call is sent as the JSON object it holds",
    "no_text": f"an assistant text that shows nothing is left out; such a user text is sent as {NO_TEXT!r}",
}


@dataclass(frozen=True, slots=True)
class MessagesDialect(Dialect):
    """Options of this wire.

    Attributes:
        version: Value of ``anthropic-version``; from 2026-10-21 on, sampling settings are not part of the wire.
        authorisation: ``x-api-key`` or ``bearer``.
        leading_user: Text of the user turn put before a history that begins with the assistant.
    """

    version: str = VERSIONS[0]
    authorisation: str = "x-api-key"
    leading_user: str = "."

    def __post_init__(self) -> None:
        Dialect.__post_init__(self)
        one_of("version", self.version, VERSIONS)
        one_of("authorisation", self.authorisation, ("x-api-key", "bearer"))
        one_of("leading_user has visible text", bool(self.leading_user.strip()), (True,))


class AnthropicMessages(WireTransport):
    """``POST {base_url}/v1/messages``."""

    name = "anthropic-messages"
    dialect_type = MessagesDialect
    own_fields = frozenset(
        {
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "temperature",
            "top_p",
            "max_tokens",
            "stop_sequences",
            "stream",
        }
    )
    auth_headers = frozenset({"x-api-key", "authorization"})

    @property
    def wire_version(self) -> str:
        """The ``anthropic-version`` sent."""
        return self.dialect.version

    @property
    def capabilities(self) -> Capabilities:
        """No seed; no top-p beside temperature; no sampling settings at all from 2026-10-21 on."""
        refused = {"seed", "top_p", *self.dialect.omit}
        if self.dialect.version != VERSIONS[0]:
            refused.add("temperature")
        leading = f"a user turn {self.dialect.leading_user!r} is put before a history that begins with the assistant"
        return Capabilities(tuple(sorted(refused)), _REWRITES | {"leading_user_turn": leading})

    def url(self, request: TransportRequest) -> str:
        """The address for this request."""
        return join_url(self.base_url, "/v1/messages")

    def authorisation(self, key: str) -> dict[str, str]:
        """One of the two headers that carry a key, never both."""
        return {"x-api-key": key} if self.dialect.authorisation == "x-api-key" else super().authorisation(key)

    def headers(self) -> dict[str, str]:
        """All headers, the wire's version among them."""
        return {"anthropic-version": self.dialect.version} | super().headers()

    def to_wire(self, request: TransportRequest) -> dict[str, Any]:
        """The body, members in the order model, max_tokens, system, messages, tools, tool_choice, settings, extras."""
        settings = self.sent_settings(request)
        if "max_output_tokens" not in settings:
            raise SeatFailure("capability", "this wire needs max_output_tokens; nothing was sent")
        system, rest = history.split_system(history.steps(request.messages, history.ANTHROPIC_ID))
        body: dict[str, Any] = {"model": self.model_for(request), "max_tokens": settings.pop("max_output_tokens")}
        if system:
            body["system"] = system[0] if len(system) == 1 else [_text(s) for s in system]
        body["messages"] = self._turns(rest, request)
        if request.tools:
            body |= {"tools": [_tool(t) for t in request.tools], "tool_choice": {"type": request.tool_choice or "auto"}}
        body |= {"stop_sequences" if k == "stop" else k: v for k, v in settings.items()}
        return body | self.body_fields

    def from_wire(
        self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest | None = None
    ) -> SeatReply:
        """See `from_wire`."""
        return from_wire(status, headers, body, self.provider)

    def _turns(self, rest: list[Step], request: TransportRequest) -> list[dict[str, Any]]:
        turns = [self._turn(step, request) for step in rest]
        if turns and turns[0][0] == "assistant":
            turns.insert(0, ("user", [_text(self.dialect.leading_user)]))
        return [{"role": role, "content": _content(blocks)} for role, blocks in history.merged(turns)]

    def _turn(self, step: Step, request: TransportRequest) -> tuple[str, list[dict]]:
        if step.answers is not None:
            return "user", [{"type": "tool_result", "tool_use_id": step.answers.wire_id, "content": step.text}]
        if step.role == "assistant":
            return "assistant", self._assistant(step, request)
        return "user", [_text(step.text if step.text.strip() else NO_TEXT)]

    def _assistant(self, step: Step, request: TransportRequest) -> list[dict]:
        text = _text(step.text) if step.text.strip() else None
        calls = [
            {"type": "tool_use", "id": c.wire_id, "name": c.name, "input": c.arguments_object()} for c in step.calls
        ]
        first = step.calls[0] if calls else None
        side = self.side_for(request, first.id, first.name, first.arguments) if first else {}
        layout = side.get("layout")
        blocks = history.laid_out(layout, text, calls, _is("text"), _is("tool_use")) if layout else None
        return blocks or ([text] if text else []) + calls


def to_wire(request: TransportRequest, dialect: MessagesDialect | None = None, **extra: Any) -> dict[str, Any]:
    """The body for a request, without a transport at hand; extra keywords are extra body fields."""
    return AnthropicMessages("http://localhost", dialect=dialect, body_fields=extra).to_wire(request)


def from_wire(status: int, headers: Mapping[str, Any], body: bytes, provider: str = "anthropic-messages") -> SeatReply:
    """The reply in a message.

    Args:
        status: HTTP status.
        headers: Response headers.
        body: Raw response body.
        provider: Mark put on side members, so that they go back to nobody else.

    Raises:
        SeatFailure: the body is not a message of the assistant.
    """
    data = bodies.reply_object(status, headers, body)
    blocks = [_checked(b, i) for i, b in enumerate(member(data, "content", list, ""))]
    calls = tuple(ReplyCall(b["id"], b["name"], object_text(b["input"])) for b in blocks if b["type"] == "tool_use")
    texts = [b["text"] for b in blocks if b["type"] == "text"]
    return SeatReply(
        content="".join(texts) if texts else None,
        tool_calls=calls,
        finish_reason=_finish(data.get("stop_reason"), bool(calls)),
        usage=_usage(data.get("usage")),
        model=bodies.optional_text(data, "model"),
        id=bodies.optional_text(data, "id"),
        side=_side(blocks, calls, provider),
    )


def _checked(block: Any, index: int) -> dict:
    where = canonical.pointer("content", index)
    kind = member(block, "type", str, where)
    if kind == "text":
        member(block, "text", str, where)
    elif kind == "tool_use":
        member(block, "id", str, where)
        member(block, "name", str, where)
        member(block, "input", dict, where)
    return block


def _finish(word: Any, has_calls: bool) -> str | None:
    finish = FINISH.get(word, word) if isinstance(word, str) else None
    if finish == "tool_calls" and not has_calls:
        raise malformed("/stop_reason announces tool calls, and there are none")
    return "tool_calls" if has_calls and finish == "stop" else finish


def _usage(usage: Any) -> dict[str, Any] | None:
    """Usage with the cached tokens inside the prompt's, as the other wires count them."""
    if not isinstance(usage, dict) or not is_count(usage.get("input_tokens")):
        return None
    cached = [usage.get(k) for k in ("cache_creation_input_tokens", "cache_read_input_tokens")]
    counts = {"prompt_tokens": usage["input_tokens"] + sum(c for c in cached if is_count(c))}
    if is_count(usage.get("output_tokens")):
        counts["completion_tokens"] = usage["output_tokens"]
    return counts | usage


def _side(blocks: list[dict], calls: tuple[ReplyCall, ...], provider: str) -> dict[str, Any]:
    """Thinking blocks and their places, under the first call of the turn they must come back with."""
    if not calls or all(b["type"] in ("text", "tool_use") for b in blocks):
        return {}
    layout = [{"type": b["type"]} if b["type"] in ("text", "tool_use") else b for b in blocks]
    mark = call_mark(calls[0].name, calls[0].arguments)
    return {calls[0].id: {"provider": provider, "of": mark, "layout": layout}}


def _tool(tool: dict) -> dict[str, Any]:
    function = tool["function"]
    description = {"description": function["description"]} if function.get("description") else {}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], **description, "input_schema": schema}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(blocks: list[dict]) -> Any:
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _is(kind: str) -> Any:
    return lambda block: block.get("type") == kind
