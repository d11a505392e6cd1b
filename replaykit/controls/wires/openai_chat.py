"""The provider's side of OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

from replaykit.controls.replies import Reply
from replaykit.controls.wires.wire import (
    CREATED,
    Asked,
    RequestLine,
    Stamp,
    Wire,
    WireRefusal,
    first_unknown,
    objects,
    one_of,
    require,
    text_of,
)

# fmt: off
_TOP = frozenset({
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls",
    "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
    "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
    "web_search_options",
})
# fmt: on
_MEMBERS = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def parse(line: RequestLine, body: Any, strict: bool) -> Asked:
    """A chat request to normal form.

    Raises:
        WireRefusal: the body is no chat request; with ``strict`` also any member the wire does not know.
    """
    require(isinstance(body, dict), "We could not parse the JSON body of your request.")
    require(isinstance(body.get("model"), str), "you must provide a model parameter", param="model")
    messages = body.get("messages")
    require(isinstance(messages, list) and messages, "'messages' must be a non-empty array", param="messages")
    require(not body.get("stream"), "streaming is not offered here", param="stream")
    normal = [_message(i, m, strict) for i, m in enumerate(messages)]
    if strict:
        _refuse_unknown(body, _TOP, "")
        _check_tools(body)
        _check_pairing(normal)
    rest = {k: v for k, v in body.items() if k not in ("model", "messages", "tools")}
    return Asked(body["model"], normal, body.get("tools"), rest)


def render(reply: Reply, stamp: Stamp) -> dict:
    """A chat completion."""
    replies = () if reply.empty else (reply, *reply.alternatives)
    body: dict[str, Any] = {"id": f"chatcmpl-{stamp.id}", "object": "chat.completion", "created": CREATED}
    body["model"] = stamp.model
    body["system_fingerprint"] = "fp_control"
    body["choices"] = [_choice(i, r) for i, r in enumerate(replies)]
    body["usage"] = {
        "prompt_tokens": stamp.prompt_tokens,
        "completion_tokens": stamp.completion_tokens,
        "total_tokens": stamp.prompt_tokens + stamp.completion_tokens,
    }
    for member in ("id", "model", "usage"):
        if member in reply.omit:
            del body[member]
    return body


def error(refusal: WireRefusal, id_: str) -> dict:
    """An error body; type and code follow the status unless the refusal names a code."""
    kind = _TYPES.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
    code = refusal.code or _CODES.get(refusal.status)
    return {"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}}


def overflow(prompt_tokens: int, limit: int) -> WireRefusal:
    """A prompt that does not fit."""
    text = f"This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt_tokens}"
    advice = "tokens. Please reduce the length of the messages."
    return WireRefusal(f"{text} {advice}", 400, "context_length_exceeded", "messages")


def _message(index: int, message: Any, strict: bool) -> dict:
    where = f"messages[{index}]"
    require(isinstance(message, dict), f"Invalid type for '{where}': expected an object.", param=where)
    role = one_of(message.get("role"), _MEMBERS, f"Invalid value: {message.get('role')!r}.", param=f"{where}.role")
    if strict:
        _refuse_unknown(message, _MEMBERS[role], where + ".")
    normal = {"role": "system" if role == "developer" else role, "content": text_of(message.get("content"))}
    if role == "tool":
        require(isinstance(message.get("tool_call_id"), str), f"Missing parameter '{where}.tool_call_id'.")
        normal["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls") is not None:
        normal["tool_calls"] = _calls(message["tool_calls"], where, strict)
    _check_content(normal, where)
    return normal


def _calls(calls: Any, where: str, strict: bool) -> list[dict]:
    require(isinstance(calls, list), f"Invalid type for '{where}.tool_calls': expected an array.")
    require(calls or not strict, f"Invalid '{where}.tool_calls': empty array.", code="empty_array")
    return [_call(call, f"{where}.tool_calls[{j}]", strict) for j, call in enumerate(calls)]


def _call(call: Any, where: str, strict: bool) -> dict:
    function = call.get("function") if isinstance(call, dict) else None
    require(isinstance(function, dict), f"Missing required parameter: '{where}.function'.", param=where)
    if strict:
        _refuse_unknown(call, frozenset({"id", "type", "function"}), where + ".")
        _refuse_unknown(function, frozenset({"name", "arguments"}), where + ".function.")
        require(call.get("type") == "function", f"Invalid value for '{where}.type'.", param=f"{where}.type")
    for holder, member in ((call, "id"), (function, "name"), (function, "arguments")):
        wrong = f"Invalid type for '{where}': {member} must be a string."
        require(isinstance(holder.get(member), str), wrong, param=where)
    return {"id": call["id"], "name": function["name"], "arguments": function["arguments"]}


def _check_content(normal: dict, where: str) -> None:
    wrong = f"Invalid value for '{where}.content': expected a string, got null."
    require(normal["content"] is not None or normal.get("tool_calls"), wrong, param=f"{where}.content")


def _check_tools(body: dict) -> None:
    tools = objects(body.get("tools"), "Invalid type for 'tools': expected an array of objects.", param="tools")
    require(tools or "tools" not in body, "Invalid 'tools': empty array.", code="empty_array", param="tools")
    if "tool_choice" in body:
        require(tools, "'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    for i, tool in enumerate(tools):
        function = tool.get("function")
        require(isinstance(function, dict), f"Missing required parameter: 'tools[{i}].function'.", param=f"tools[{i}]")
        _refuse_unknown(tool, frozenset({"type", "function"}), f"tools[{i}].")
        _refuse_unknown(function, frozenset({"name", "description", "parameters", "strict"}), f"tools[{i}].function.")


def _check_pairing(messages: list[dict]) -> None:
    open_ids: list[str] = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            wrong = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            require(message["tool_call_id"] in open_ids, wrong, param=f"messages[{i}].tool_call_id")
            open_ids.remove(message["tool_call_id"])
            continue
        _refuse_unanswered(open_ids)
        open_ids = [c["id"] for c in message.get("tool_calls", ())]
    _refuse_unanswered(open_ids)


def _refuse_unanswered(ids: list[str]) -> None:
    text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    require(not ids, f"{text} Without a response: {', '.join(ids)}", param="messages")


def _refuse_unknown(data: dict, known: frozenset[str], where: str) -> None:
    member = first_unknown(data, known)
    if member is not None:
        name = where + member
        raise WireRefusal(f"Unknown parameter: '{name}'.", 400, "unknown_parameter", name)


def _choice(index: int, reply: Reply) -> dict:
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.tool_calls
        ]
    choice = {"index": index, "message": message, "logprobs": None}
    return choice if "finish" in reply.omit else choice | {"finish_reason": reply.finish}


WIRE = Wire(
    name="openai-chat",
    base_suffix="/v1",
    claims=lambda path: path == "/chat/completions",
    parse=parse,
    render=render,
    error=error,
    headers=lambda id_: [("x-request-id", f"req_{id_}")],
    overflow=overflow,
)
