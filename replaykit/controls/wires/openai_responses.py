"""The provider's side of OpenAI's responses."""

from __future__ import annotations

from typing import Any

from replaykit.controls.replies import Reply
from replaykit.controls.wires import openai_chat
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
    "background", "conversation", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
    "metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})
# fmt: on
_ITEMS = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status"}),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
}
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fc", "reasoning": "rs"}
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TOOL = frozenset({"type", "name", "description", "parameters", "strict"})
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def parse(line: RequestLine, body: Any, strict: bool) -> Asked:
    """A responses request to normal form: what lies between two user or tool items is one assistant message.

    Raises:
        WireRefusal: the body is no such request; with ``strict`` also any member the wire does not know.
    """
    require(isinstance(body, dict), "We could not parse the JSON body of your request.")
    require(isinstance(body.get("model"), str), "you must provide a model parameter", param="model")
    require(not body.get("stream"), "streaming is not offered here", param="stream")
    items = _items(body.get("input"))
    instructions = body.get("instructions")
    require(isinstance(instructions, str | None), "Invalid type for 'instructions'.", param="instructions")
    messages = [] if instructions is None else [{"role": "system", "content": instructions}]
    for i, item in enumerate(items):
        _add(messages, item, f"input[{i}]", strict)
    if strict:
        _refuse_unknown(body, _TOP, "")
        _check_tools(body)
        _check_pairing(items)
    rest = {k: v for k, v in body.items() if k not in ("model", "input", "instructions", "tools")}
    return Asked(body["model"], messages, body.get("tools"), rest)


def render(reply: Reply, stamp: Stamp) -> dict:
    """A response."""
    require(not reply.alternatives, "a response has no second choice", status=500)
    body = {
        "id": f"resp_{stamp.id}",
        "object": "response",
        "created_at": CREATED,
        **_status(reply),
        "model": stamp.model,
        "output": [] if reply.empty else _output(reply, stamp),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(stamp),
    }
    gone = {"finish": ("status", "incomplete_details")}
    left_out = {name for member in reply.omit for name in gone.get(member, (member,))}
    return {k: v for k, v in body.items() if k not in left_out}


def overflow(prompt_tokens: int, limit: int) -> WireRefusal:
    """A prompt that does not fit."""
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return WireRefusal(text, 400, "context_length_exceeded", "input")


def missing_continuation(position: int) -> WireRefusal:
    """Calls of the current turn without the reasoning item before them."""
    text = "Item of type 'function_call' was provided without its required 'reasoning' item"
    return WireRefusal(f"{text} (message {position}).", 400, None, "input")


def _items(given: Any) -> list[dict]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    require(isinstance(given, list) and given, "Missing required parameter: 'input'.", param="input")
    require(all(isinstance(i, dict) for i in given), "Invalid type for 'input': expected objects.", param="input")
    return given


def _add(messages: list[dict], item: dict, where: str, strict: bool) -> None:
    kind = one_of(item.get("type", "message"), _ITEMS, f"Invalid value of '{where}.type'.", param=f"{where}.type")
    if strict:
        _refuse_unknown(item, _ITEMS[kind], where + ".")
        _check_id(item.get("id"), _PREFIXES[kind], where)
    adders = {"message": _add_message, "function_call": _add_call, "function_call_output": _add_output}
    adders.get(kind, _add_reasoning)(messages, item, where)


def _add_message(messages: list[dict], item: dict, where: str) -> None:
    role = one_of(item.get("role"), _ROLES, f"Invalid value: {item.get('role')!r}.", param=f"{where}.role")
    text = text_of(item.get("content"))
    require(text is not None, f"Missing required parameter: '{where}.content'.", param=f"{where}.content")
    if _ROLES[role] == "assistant":
        turn = _assistant_turn(messages)
        turn["content"] = (turn["content"] or "") + (text or "")
    else:
        messages.append({"role": _ROLES[role], "content": text})


def _add_call(messages: list[dict], item: dict, where: str) -> None:
    for member in ("call_id", "name", "arguments"):
        wrong = f"Invalid type for '{where}.{member}': expected a string."
        require(isinstance(item.get(member), str), wrong, param=f"{where}.{member}")
    require(1 <= len(item["call_id"]) <= 64, f"Invalid '{where}.call_id': 1 to 64 characters.", param=where)
    call = {"id": item["call_id"], "name": item["name"], "arguments": item["arguments"]}
    _assistant_turn(messages).setdefault("tool_calls", []).append(call)


def _add_reasoning(messages: list[dict], item: dict, where: str) -> None:
    if item.get("encrypted_content") is not None:
        _assistant_turn(messages)["continuation"] = item["encrypted_content"]


def _add_output(messages: list[dict], item: dict, where: str) -> None:
    require(isinstance(item.get("call_id"), str), f"Missing required parameter: '{where}.call_id'.", param=where)
    output = text_of(item.get("output"))
    require(output is not None, f"Missing required parameter: '{where}.output'.", param=f"{where}.output")
    messages.append({"role": "tool", "content": output, "tool_call_id": item["call_id"]})


def _assistant_turn(messages: list[dict]) -> dict:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _check_id(id_: Any, prefix: str, where: str) -> None:
    wrong = f"Invalid '{where}.id': {id_!r}. Expected an ID that begins with '{prefix}'."
    require(id_ is None or str(id_).startswith(prefix), wrong, param=f"{where}.id")


def _check_tools(body: dict) -> None:
    for i, tool in enumerate(objects(body.get("tools"), "Invalid type for 'tools'.", param="tools")):
        _refuse_unknown(tool, _TOOL, f"tools[{i}].")
        require(isinstance(tool.get("name"), str), f"Missing required parameter: 'tools[{i}].name'.", param="tools")
    forced = body.get("tool_choice") == "required"
    require(not forced or body.get("tools"), "Tool choice 'required' needs 'tools'.", param="tool_choice")


def _check_pairing(items: list[dict]) -> None:
    open_ids: list[str] = []
    for item in items:
        if item.get("type") == "function_call":
            open_ids.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            wrong = f"No tool call found for function call output with call_id {item['call_id']}."
            require(item["call_id"] in open_ids, wrong, param="input")
            open_ids.remove(item["call_id"])
    require(not open_ids, f"No tool output found for function call {', '.join(open_ids)}.", param="input")


def _refuse_unknown(data: dict, known: frozenset[str], where: str) -> None:
    member = first_unknown(data, known)
    if member is not None:
        raise WireRefusal(f"Unknown parameter: '{where}{member}'.", 400, "unknown_parameter", where + member)


def _status(reply: Reply) -> dict:
    finish = reply.finish
    if finish in ("stop", "tool_calls"):
        return {"status": "completed", "error": None, "incomplete_details": None}
    if finish in _INCOMPLETE:
        return {"status": "incomplete", "error": None, "incomplete_details": {"reason": _INCOMPLETE[finish]}}
    if finish == "error":
        fault = {"code": "server_error", "message": "The model could not answer."}
        return {"status": "failed", "error": fault, "incomplete_details": None}
    return {"status": finish, "error": None, "incomplete_details": None}


def _output(reply: Reply, stamp: Stamp) -> list[dict]:
    id_ = stamp.id
    status = "incomplete" if reply.finish == "length" else "completed"
    items: list[dict] = []
    if reply.reasoning is not None or stamp.continuation is not None:
        summary = [{"type": "summary_text", "text": reply.reasoning}] if reply.reasoning else []
        state = {} if stamp.continuation is None else {"encrypted_content": stamp.continuation}
        items.append({"id": f"rs_{id_}", "type": "reasoning", "summary": summary} | state)
    parts: list[dict] = []
    if reply.content is not None:
        parts.append({"type": "output_text", "text": reply.content, "annotations": []})
    if reply.refusal is not None:
        parts.append({"type": "refusal", "refusal": reply.refusal})
    if parts:
        message = {"id": f"msg_{id_}", "type": "message", "status": status, "role": "assistant", "content": parts}
        items.append(message)
    for i, call in enumerate(reply.tool_calls):
        item = {"id": f"fc_{id_}_{i}", "type": "function_call", "status": status, "call_id": call.id}
        items.append(item | {"name": call.name, "arguments": call.arguments})
    return items


def _usage(stamp: Stamp) -> dict:
    return {
        "input_tokens": stamp.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": stamp.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": stamp.prompt_tokens + stamp.completion_tokens,
    }


WIRE = Wire(
    name="openai-responses",
    base_suffix="/v1",
    claims=lambda path: path == "/responses",
    parse=parse,
    render=render,
    error=openai_chat.error,
    headers=openai_chat.WIRE.headers,
    overflow=overflow,
    missing_continuation=missing_continuation,
)
