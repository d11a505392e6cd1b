"""The wire ``openai-responses``, stateless: nothing is stored at the provider, all of the history goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatReply, TransportRequest
from replaykit.transports import bodies, history
from replaykit.transports.bodies import is_count, malformed, member
from replaykit.transports.failures import error_under_200, read_error
from replaykit.transports.history import Step
from replaykit.transports.wire import Capabilities, Dialect, WireTransport, call_mark, join_url, one_of

_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_REASONING_MEMBERS = ("id", "type", "summary", "content", "encrypted_content")
_REWRITES = {
    "redundant_tool_name": "the second name of an assistant tool call is not sent",
    "instructions": "the first system message goes in the member 'instructions'",
    "flat_items": "an assistant message with calls is sent as one text item and one item a call",
    "flat_tools": "tool schemas are sent flat, with strict set to false",
    "call_ids": "a tool call id that repeats or is longer than 64 characters is replaced by rule",
    "no_text": "an assistant message without text is sent as its calls alone",
    "not_stored": "'store' is sent as false",
}


@dataclass(frozen=True, slots=True)
class ResponsesDialect(Dialect):
    """Options of this wire.

    Attributes:
        reasoning: ``omit``, or ``encrypted`` to ask for encrypted reasoning, which models without it refuse.
    """

    reasoning: str = "omit"

    def __post_init__(self) -> None:
        Dialect.__post_init__(self)
        one_of("reasoning", self.reasoning, ("omit", "encrypted"))


class OpenAIResponses(WireTransport):
    """``POST {base_url}/responses``."""

    name = "openai-responses"
    wire_version = "v1"
    dialect_type = ResponsesDialect
    own_fields = frozenset(
        {"model", "input", "instructions", "tools", "tool_choice", "temperature", "top_p", "max_output_tokens"}
        | {"store", "include", "stream", "background", "previous_response_id"}
    )

    @property
    def capabilities(self) -> Capabilities:
        """No seed, no stop strings."""
        return Capabilities(tuple(sorted({"seed", "stop", *self.dialect.omit})), dict(_REWRITES))

    def url(self, request: TransportRequest) -> str:
        """The address for this request."""
        return join_url(self.base_url, "/responses")

    def to_wire(self, request: TransportRequest) -> dict[str, Any]:
        """The body, members in the order model, instructions, input, tools, tool_choice, settings, store, extras."""
        steps = history.steps(request.messages, history.RESPONSES_ID)
        body: dict[str, Any] = {"model": self.model_for(request)}
        if steps and steps[0].role == "system":
            body["instructions"] = steps.pop(0).text
        body["input"] = [item for step in steps for item in self._items(step, request)]
        if request.tools:
            body |= {"tools": [_tool(t) for t in request.tools], "tool_choice": request.tool_choice or "auto"}
        body |= self.sent_settings(request) | {"store": False}
        if self.dialect.reasoning == "encrypted":
            body["include"] = ["reasoning.encrypted_content"]
        return body | self.body_fields

    def from_wire(
        self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest | None = None
    ) -> SeatReply:
        """See `from_wire`."""
        return from_wire(status, headers, body, self.provider)

    def _items(self, step: Step, request: TransportRequest) -> list[dict[str, Any]]:
        if step.answers is not None:
            return [{"type": "function_call_output", "call_id": step.answers.wire_id, "output": step.text}]
        if step.role != "assistant":
            return [{"role": step.role, "content": step.text}]
        text = {"role": "assistant", "content": step.text} if step.text else None
        calls = [
            {"type": "function_call", "call_id": c.wire_id, "name": c.name, "arguments": c.arguments}
            for c in step.calls
        ]
        return self._with_side(step, text, calls, request) or ([text] if text else []) + calls

    def _with_side(
        self, step: Step, text: dict | None, calls: list[dict], request: TransportRequest
    ) -> list[dict] | None:
        if not calls:
            return None
        first = step.calls[0]
        side = self.side_for(request, first.id, first.name, first.arguments)
        if not side.get("layout"):
            return None
        if text and side.get("phase"):
            text = text | {"phase": side["phase"]}
        return history.laid_out(side["layout"], text, calls, _is("message"), _is("function_call"))


def to_wire(request: TransportRequest, dialect: ResponsesDialect | None = None, **extra: Any) -> dict[str, Any]:
    """The body for a request, without a transport at hand; extra keywords are extra body fields."""
    return OpenAIResponses("http://localhost", dialect=dialect, body_fields=extra).to_wire(request)


def from_wire(status: int, headers: Mapping[str, Any], body: bytes, provider: str = "openai-responses") -> SeatReply:
    """The reply in a response.

    Args:
        status: HTTP status.
        headers: Response headers.
        body: Raw response body.
        provider: Mark put on side members, so that they go back to nobody else.

    Raises:
        SeatFailure: the response failed, is not finished, or is no response of this wire.
    """
    data = bodies.reply_object(status, headers, body)
    state = member(data, "status", str, "")
    if state == "failed":
        raise error_under_200(read_error(data), status)
    if state not in ("completed", "incomplete"):
        raise malformed(f"/status is {state[:40]!r}, which is no end")
    items = [_checked(item, i) for i, item in enumerate(member(data, "output", list, ""))]
    calls = tuple(ReplyCall(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call")
    texts, refusals = _texts(items)
    finish = _finish(data, items, bool(calls))
    return SeatReply(
        content="".join(texts or refusals) if texts or refusals else None,
        tool_calls=calls,
        finish_reason="refusal" if refusals else finish,
        usage=_usage(data.get("usage")),
        model=bodies.optional_text(data, "model"),
        id=bodies.optional_text(data, "id"),
        side=_side(items, calls, provider),
    )


def _checked(item: Any, index: int) -> dict:
    where = canonical.pointer("output", index)
    kind = member(item, "type", str, where)
    if kind == "function_call":
        for key in ("call_id", "name", "arguments"):
            member(item, key, str, where)
    elif kind == "message":
        for number, part in enumerate(member(item, "content", list, where)):
            _check_part(part, where + canonical.pointer("content", number))
    return item


def _check_part(part: Any, where: str) -> None:
    kind = member(part, "type", str, where)
    if kind not in ("output_text", "refusal"):
        raise malformed(f"{where}/type is {kind[:40]!r}, which is no text")
    member(part, "text" if kind == "output_text" else "refusal", str, where)


def _texts(items: list[dict]) -> tuple[list[str], list[str]]:
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    return (
        [p["text"] for p in parts if p["type"] == "output_text"],
        [p["refusal"] for p in parts if p["type"] == "refusal"],
    )


def _finish(data: dict, items: list[dict], has_calls: bool) -> str | None:
    if any(i["type"] == "function_call" and i.get("status") == "incomplete" for i in items):
        return "length"
    if data["status"] == "incomplete":
        reason = bodies.optional_text(bodies.optional_object(data, "incomplete_details"), "reason") or "incomplete"
        return _INCOMPLETE.get(reason, reason)
    return "tool_calls" if has_calls else "stop"


def _usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    counts = {ours: usage[theirs] for ours, theirs in names.items() if is_count(usage.get(theirs))}
    return counts | usage if counts else None


def _side(items: list[dict], calls: tuple[ReplyCall, ...], provider: str) -> dict[str, Any]:
    """Encrypted reasoning and its place; without the encrypted part the provider could not find it again."""
    phase = next((i["phase"] for i in items if i["type"] == "message" and i.get("phase")), None)
    layout = [kept for kept in map(_kept, items) if kept is not None]
    has_reasoning = any(kept["type"] == "reasoning" for kept in layout)
    if not calls or not (has_reasoning or phase):
        return {}
    mark = call_mark(calls[0].name, calls[0].arguments)
    return {calls[0].id: {"provider": provider, "of": mark, "layout": layout} | ({"phase": phase} if phase else {})}


def _kept(item: dict) -> dict[str, Any] | None:
    if item["type"] in ("message", "function_call"):
        return {"type": item["type"]}
    if item["type"] == "reasoning" and item.get("encrypted_content"):
        return {k: item[k] for k in _REASONING_MEMBERS if item.get(k) is not None}
    return None


def _tool(tool: dict) -> dict[str, Any]:
    function = tool["function"]
    description = {"description": function["description"]} if function.get("description") else {}
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return {"type": "function", "name": function["name"], **description, "parameters": parameters, "strict": False}


def _is(kind: str) -> Any:
    return lambda item: item.get("type") == kind
