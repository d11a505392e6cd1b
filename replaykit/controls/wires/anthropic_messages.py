"""The provider's side of Anthropic's messages, versions 2023-06-01 and 2026-10-21."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from replaykit.controls.replies import Reply
from replaykit.controls.wires.wire import (
    Asked,
    RequestLine,
    Stamp,
    Wire,
    WireRefusal,
    argument_value,
    first_unknown,
    objects,
    one_of,
    require,
    text_of,
)

_SAMPLING = ("temperature", "top_p", "top_k")
# fmt: off
_TOP = frozenset({
    "cache_control", "container", "inference_geo", "max_tokens", "messages", "metadata", "model", "output_config",
    "service_tier", "stop_sequences", "stream", "system", "thinking", "tool_choice", "tools",
})
# fmt: on
_TOP_BY_VERSION = {"2023-06-01": _TOP | set(_SAMPLING), "2026-10-21": _TOP}
_BLOCKS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
_ALLOWED = {"user": ("text", "tool_result"), "assistant": ("text", "tool_use", "thinking", "redacted_thinking")}
_TOOL = frozenset({"type", "name", "description", "input_schema", "cache_control", "strict"})
_TOOL_NAME, _CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}"), re.compile(r"[a-zA-Z0-9_-]+")
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def parse(line: RequestLine, body: Any, strict: bool) -> Asked:
    """A messages request to normal form; results inside user turns become tool messages.

    Raises:
        WireRefusal: the body is no such request; with ``strict`` also members the version does not know, sampling
            settings it forbids, empty text, broken pairing, turns that do not alternate.
    """
    require(isinstance(body, dict), "The request body is not valid JSON.")
    require(isinstance(body.get("model"), str), "model: Field required")
    require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    turns = body.get("messages")
    require(turns, "messages: at least one message is required")
    turns = objects(turns, "messages: Input should be a valid list of objects")
    require(not body.get("stream"), "stream: streaming is not offered here")
    system = text_of(body.get("system"))
    messages = [] if system is None else [{"role": "system", "content": system}]
    blocks = [_blocks(turn, f"messages.{i}", strict) for i, turn in enumerate(turns)]
    for turn, parts in zip(turns, blocks, strict=True):
        messages += _assistant(parts) if turn["role"] == "assistant" else _user(parts)
    if strict:
        _check_settings(line, body)
        _check_tools(body)
        _check_turns(turns, blocks)
    rest = {k: v for k, v in body.items() if k not in ("model", "messages", "system", "tools")}
    return Asked(body["model"], messages, body.get("tools"), rest)


def render(reply: Reply, stamp: Stamp) -> dict:
    """A message."""
    require(not reply.alternatives, "a message has no second choice", status=500)
    refused = reply.refusal is not None and reply.finish_reason is None
    body = {
        "id": f"msg_{stamp.id}",
        "type": "message",
        "role": "assistant",
        "model": stamp.model,
        "content": [] if reply.empty else _content(reply, stamp.continuation),
        "stop_reason": "refusal" if refused else _STOP_REASONS.get(reply.finish, reply.finish),
        "stop_sequence": None,
        "usage": {"input_tokens": stamp.prompt_tokens, "output_tokens": stamp.completion_tokens},
    }
    left_out = {"stop_reason" if member == "finish" else member for member in reply.omit}
    return {k: v for k, v in body.items() if k not in left_out}


def error(refusal: WireRefusal, id_: str) -> dict:
    """An error body; the type follows the status, the refusal's code becomes ``details.error_code``."""
    fallback = "api_error" if refusal.status >= 500 else "invalid_request_error"
    details = {"error_code": refusal.code} if refusal.code else None
    kind = _ERROR_TYPES.get(refusal.status, fallback)
    fault = {"type": kind, "message": refusal.message, "details": details}
    return {"type": "error", "error": fault, "request_id": f"req_{id_}"}


def overflow(prompt_tokens: int, limit: int) -> WireRefusal:
    """A prompt that does not fit."""
    return WireRefusal(f"prompt is too long: {prompt_tokens} tokens > {limit} maximum")


def missing_continuation(position: int) -> WireRefusal:
    """Calls of the current turn without the thinking block before them."""
    text = "Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    return WireRefusal(f"messages.{position}.content.0.type: {text} The blocks must be given back unmodified.")


def _blocks(turn: dict, where: str, strict: bool) -> list[dict]:
    role = one_of(turn.get("role"), _ALLOWED, f"{where}.role: Input should be a known role.")
    if strict:
        _refuse_extra(turn, frozenset({"role", "content"}), where)
    content = turn.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    require(content is not None, f"{where}.content: Field required")
    for j, block in enumerate(objects(content, f"{where}.content: Input should be a valid list of objects")):
        _check_block(block, _ALLOWED[role], f"{where}.content.{j}", strict)
    return content


def _check_block(block: dict, allowed: tuple[str, ...], where: str, strict: bool) -> None:
    kind = one_of(block.get("type"), allowed, f"{where}.type: Input should be a known tag.")
    if strict:
        _refuse_extra(block, _BLOCKS[kind], f"{where}.{kind}")
    if kind == "tool_use":
        require(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
        require(_TOOL_NAME.fullmatch(str(block.get("name"))), f"{where}.tool_use.name: String should match the pattern")
        require(_CALL_ID.fullmatch(str(block.get("id"))), f"{where}.tool_use.id: String should match the pattern")
    if kind == "tool_result":
        require(isinstance(block.get("tool_use_id"), str), f"{where}.tool_result.tool_use_id: Field required")
    if kind == "text":
        require(isinstance(block.get("text"), str), f"{where}.text.text: Field required")


def _assistant(parts: list[dict]) -> list[dict]:
    texts = [p["text"] for p in parts if p["type"] == "text"]
    uses = [p for p in parts if p["type"] == "tool_use"]
    calls = [{"id": p["id"], "name": p["name"], "arguments": json.dumps(p["input"])} for p in uses]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if calls:
        message["tool_calls"] = calls
    state = next((p.get("signature") for p in parts if p["type"] == "thinking"), None)
    return [message if state is None else message | {"continuation": state}]


def _user(parts: list[dict]) -> list[dict]:
    results = [
        {"role": "tool", "content": text_of(p.get("content")), "tool_call_id": p["tool_use_id"]}
        for p in parts
        if p["type"] == "tool_result"
    ]
    texts = [p["text"] for p in parts if p["type"] == "text"]
    return results + ([{"role": "user", "content": "".join(texts)}] if texts else [])


def _check_settings(line: RequestLine, body: dict) -> None:
    version = line.headers.get("anthropic-version")
    require(version is not None, "anthropic-version: header is required")
    require(version in _TOP_BY_VERSION, f'anthropic-version: "{version}" is not a valid version')
    _refuse_extra(body, _TOP_BY_VERSION[str(version)], "")
    both = "temperature" in body and "top_p" in body and not body["model"].startswith("claude-3")
    text = "temperature and top_p cannot both be specified for this model. Please use only one."
    require(not both, text)
    require(body.get("system") is None or text_of(body["system"]), "system: text content blocks must be non-empty")


def _check_tools(body: dict) -> None:
    require("tool_choice" not in body or body.get("tools"), "tool_choice: may only be specified while providing tools")
    for i, tool in enumerate(objects(body.get("tools"), "tools: Input should be a valid list of objects")):
        where = f"tools.{i}.custom"
        _refuse_extra(tool, _TOOL, where)
        require(_TOOL_NAME.fullmatch(str(tool.get("name"))), f"{where}.name: String should match the pattern")
        require(isinstance(tool.get("description", ""), str), f"{where}.description: Input should be a valid string")
        schema = tool.get("input_schema")
        rooted = isinstance(schema, dict) and schema.get("type") == "object"
        require(rooted, f"{where}.input_schema.type: Field required")
        combined = {"oneOf", "allOf", "anyOf"} & set(schema)
        require(not combined, f"{where}.input_schema: no oneOf, allOf or anyOf at the top level")


def _check_turns(turns: list[dict], blocks: list[list[dict]]) -> None:
    roles = [turn["role"] for turn in turns]
    require(roles[0] == "user", 'messages: first message must use the "user" role')
    require(all(a != b for a, b in itertools.pairwise(roles)), "messages: roles must alternate")
    require(roles[-1] == "user", "This model does not support assistant message prefill.")
    calls: list[str] = []
    for i, (role, parts) in enumerate(zip(roles, blocks, strict=True)):
        _check_texts(role, parts, f"messages.{i}")
        if role == "user":
            _check_results(parts, calls, f"messages.{i}")
        calls = [p["id"] for p in parts if p["type"] == "tool_use"]


def _check_texts(role: str, parts: list[dict], where: str) -> None:
    texts = [p["text"] for p in parts if p["type"] == "text"]
    require(all(texts), f"{where}: text content blocks must be non-empty")
    blank = [t for t in texts if not t.strip()]
    require(not blank or (role == "assistant" and len(parts) > 1), f"{where}: text must contain non-whitespace text")
    require(parts or role == "assistant", f"{where}: user messages must have non-empty content")


def _check_results(parts: list[dict], calls: list[str], where: str) -> None:
    kinds = [p["type"] for p in parts]
    results = [p["tool_use_id"] for p in parts if p["type"] == "tool_result"]
    orphans = [r for r in results if r not in calls]
    require(not orphans, f"{where}: unexpected tool_use_id found in tool_result blocks: {', '.join(orphans)}")
    missing = [c for c in calls if c not in results]
    text = "tool_use ids were found without tool_result blocks immediately after"
    require(not missing, f"{where}: {text}: {', '.join(missing)}")
    require("tool_result" not in kinds[len(results) :], f"{where}: tool_result blocks must come first")


def _refuse_extra(data: dict, known: frozenset[str], where: str) -> None:
    member = first_unknown(data, known)
    if member is not None:
        raise WireRefusal(f"{where}.{member}".lstrip(".") + ": Extra inputs are not permitted")


def _content(reply: Reply, state: str | None) -> list[dict]:
    blocks: list[dict] = []
    if reply.reasoning is not None or state is not None:
        blocks.append({"type": "thinking", "thinking": reply.reasoning or "", "signature": state or "Y29udHJvbA=="})
    blocks += [{"type": "text", "text": t} for t in (reply.content, reply.refusal) if t is not None]
    for call in reply.tool_calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": argument_value(call.arguments)})
    return blocks


WIRE = Wire(
    name="anthropic-messages",
    base_suffix="",
    claims=lambda path: path == "/messages",
    parse=parse,
    render=render,
    error=error,
    headers=lambda id_: [("request-id", f"req_{id_}")],
    overflow=overflow,
    missing_continuation=missing_continuation,
)
