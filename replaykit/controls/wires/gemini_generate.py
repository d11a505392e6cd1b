"""The provider's side of Gemini's generateContent, under ``/v1`` and ``/v1beta``."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any
from urllib.parse import unquote

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
)

_PATH = re.compile(r"/models/([^/:]+):generateContent")  # the name may be percent-encoded
# fmt: off
_TOP = frozenset({
    "contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent",
    "store",
})
_GENERATION = frozenset({
    "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "candidateCount", "thinkingConfig",
    "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "presencePenalty",
    "frequencyPenalty", "responseLogprobs", "logprobs", "speechConfig", "mediaResolution",
})
# fmt: on
_PART = frozenset({"text", "thought", "thoughtSignature", "functionCall", "functionResponse"})
_CALL, _RESPONSE = frozenset({"name", "args", "id"}), frozenset({"name", "response", "id"})
_SCHEMAS = frozenset({"parameters", "parametersJsonSchema", "response", "responseJsonSchema"})
_DECLARATION = _SCHEMAS | {"name", "description"}
_UNKNOWN_IN_PARAMETERS = ("$schema", "$ref", "$defs", "additionalProperties", "const", "oneOf")
_OPAQUE = _SCHEMAS | {"args", "responseSchema"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_SNAKE = re.compile(r"_([a-z])")
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_FINISH = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "MALFORMED_FUNCTION_CALL",
}


def parse(line: RequestLine, body: Any, strict: bool) -> Asked:
    """A generateContent request to normal form; members may be written in camel or snake case.

    Calls without an id get ``g<content>_<part>``; a response without one answers the next open call.

    Raises:
        WireRefusal: the body is no such request; with ``strict`` also unknown members, empty parts, turns out of
            order, responses that do not match their calls.
    """
    require(isinstance(body, dict), "Invalid JSON payload received.")
    body = _camel(body)
    contents = objects(body.get("contents"), "Invalid value at 'contents'.")
    require(contents, "GenerateContentRequest.contents: contents is not specified")
    messages = _system(body.get("systemInstruction"))
    open_calls: list[dict] = []
    for i, content in enumerate(contents):
        _check_content(content, f"contents[{i}]", strict)
        messages += _model(content, i, open_calls) if content.get("role") == "model" else _user(content, open_calls)
    if strict:
        _check_settings(body)
        _check_tools(body)
        _check_turns(contents)
    rest = {k: v for k, v in body.items() if k not in ("contents", "systemInstruction", "tools")}
    return Asked(_model_name(line.path), messages, body.get("tools"), rest)


def render(reply: Reply, stamp: Stamp) -> dict:
    """A generateContent reply."""
    counts = {"promptTokenCount": stamp.prompt_tokens, "candidatesTokenCount": stamp.completion_tokens}
    counts["totalTokenCount"] = stamp.prompt_tokens + stamp.completion_tokens
    body: dict[str, Any] = {}
    if not reply.empty:
        replies = (reply, *reply.alternatives)
        body["candidates"] = [_candidate(i, r, stamp.continuation) for i, r in enumerate(replies)]
    elif reply.finish_reason == "content_filter":
        body["promptFeedback"] = {"blockReason": "SAFETY"}
    body["usageMetadata"] = {k: v for k, v in counts.items() if v}
    body |= {"modelVersion": stamp.model, "responseId": stamp.id}
    members = {"id": "responseId", "model": "modelVersion", "usage": "usageMetadata"}
    return {k: v for k, v in body.items() if k not in {members.get(m) for m in reply.omit}}


def error(refusal: WireRefusal, id_: str) -> dict:
    """An error body; a wait becomes a ``RetryInfo`` detail, the refusal's code an ``ErrorInfo`` reason."""
    fallback = "INTERNAL" if refusal.status >= 500 else "INVALID_ARGUMENT"
    details: list[dict] = []
    if refusal.code:
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": refusal.code})
    if refusal.retry_s is not None:
        delay = f"{refusal.retry_s:g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    fault = {"code": refusal.status, "message": refusal.message, "status": _STATUSES.get(refusal.status, fallback)}
    return {"error": fault | ({"details": details} if details else {})}


def overflow(prompt_tokens: int, limit: int) -> WireRefusal:
    """A prompt that does not fit."""
    text = f"The input token count ({prompt_tokens}) exceeds the maximum number of tokens allowed ({limit})."
    return WireRefusal(text)


def missing_continuation(position: int) -> WireRefusal:
    """Calls of the current turn without their thought signature."""
    text = "Function call is missing a thought_signature in functionCall parts."
    return WireRefusal(f"{text} This is required for tools to work correctly, position {position}.")


def _model_name(path: str) -> str:
    found = _PATH.fullmatch(path)
    return unquote(found.group(1)) if found else ""


def _camel(value: Any) -> Any:
    """Member names in camel case, except inside what belongs to the caller (arguments, results, schemas)."""
    if isinstance(value, list):
        return [_camel(v) for v in value]
    if not isinstance(value, dict):
        return value
    named = ((_SNAKE.sub(lambda m: m.group(1).upper(), k), v) for k, v in value.items())
    return {k: v if k in _OPAQUE else _camel(v) for k, v in named}


def _system(instruction: Any) -> list[dict]:
    if instruction is None:
        return []
    require(isinstance(instruction, dict), "Invalid value at 'system_instruction'.")
    parts = objects(instruction.get("parts"), "Invalid value at 'system_instruction.parts'.")
    require(parts, "system_instruction.parts must not be empty")
    require(all(isinstance(p.get("text"), str) for p in parts), "Invalid value at 'system_instruction.parts'.")
    return [{"role": "system", "content": "".join(p["text"] for p in parts)}]


def _check_content(content: dict, where: str, strict: bool) -> None:
    one_of(content.get("role", "user"), ("user", "model"), "Please use a valid role.")
    parts = objects(content.get("parts"), f"Invalid value at '{where}.parts'.")
    require(parts, f"{where}: contents.parts must not be empty.")
    if strict:
        _refuse_unknown(content, frozenset({"role", "parts"}), where)
    for j, part in enumerate(parts):
        _check_part(part, f"{where}.parts[{j}]", strict)


def _check_part(part: dict, where: str, strict: bool) -> None:
    data = [k for k in ("text", "functionCall", "functionResponse") if part.get(k) not in (None, "")]
    empty = f"{where}: required oneof field 'data' must have one initialized field"
    require(len(data) == 1 or (part.get("thought") and not data), empty)
    require(isinstance(part.get("text", ""), str), f"Invalid value at '{where}.text' (TYPE_STRING).")
    if strict:
        _refuse_unknown(part, _PART, where)
    if "functionCall" in part:
        _check_function(part["functionCall"], _CALL, "args", f"{where}.function_call", strict)
    if "functionResponse" in part:
        _check_function(part["functionResponse"], _RESPONSE, "response", f"{where}.function_response", strict)


def _check_function(value: Any, known: frozenset[str], payload: str, where: str, strict: bool) -> None:
    require(isinstance(value, dict), f"Invalid value at '{where}'.")
    require(isinstance(value.get("id", ""), str), f"Invalid value at '{where}.id' (TYPE_STRING).")
    require(isinstance(value.get("name"), str) and value["name"], f"{where}.name: Name cannot be empty.")
    require(isinstance(value.get(payload, {}), dict), f"Invalid value at '{where}.{payload}' (Struct).")
    if strict:
        _refuse_unknown(value, known, where)


def _model(content: dict, index: int, open_calls: list[dict]) -> list[dict]:
    texts = [p["text"] for p in content["parts"] if p.get("text") and not p.get("thought")]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    made = [
        {"id": c.get("id") or f"g{index}_{j}", "name": c["name"], "arguments": json.dumps(c.get("args", {}))}
        for j, c in enumerate(p["functionCall"] for p in content["parts"] if "functionCall" in p)
    ]
    open_calls[:] = made
    if made:
        message["tool_calls"] = made
    state = next((p.get("thoughtSignature") for p in content["parts"] if "functionCall" in p), None)
    return [message if state is None else message | {"continuation": state}]


def _user(content: dict, open_calls: list[dict]) -> list[dict]:
    responses = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
    ids = [call["id"] for call in open_calls]
    results = [
        {"role": "tool", "content": _output(response.get("response", {})), "tool_call_id": response.get("id") or id_}
        for response, id_ in itertools.zip_longest(responses, ids[: len(responses)], fillvalue="")
    ]
    texts = [p["text"] for p in content["parts"] if p.get("text")]
    return results + ([{"role": "user", "content": "".join(texts)}] if texts else [])


def _output(response: dict) -> str:
    only = next((response[k] for k in ("output", "error", "result") if isinstance(response.get(k), str)), None)
    return only if only is not None else json.dumps(response)


def _check_settings(body: dict) -> None:
    _refuse_unknown(body, _TOP, "")
    generation = body.get("generationConfig") or {}
    require(isinstance(generation, dict), "Invalid value at 'generation_config'.")
    _refuse_unknown(generation, _GENERATION, "generation_config")
    seed = generation.get("seed", 0)
    fits = isinstance(seed, int) and -(2**31) <= seed < 2**31
    require(fits, "Invalid value at 'generation_config.seed' (TYPE_INT32).")


def _check_tools(body: dict) -> None:
    declared = False
    for i, tool in enumerate(objects(body.get("tools"), "Invalid value at 'tools'.")):
        _refuse_unknown(tool, frozenset({"functionDeclarations"}), f"tools[{i}]")
        where = f"tools[{i}].function_declarations"
        for j, declaration in enumerate(objects(tool.get("functionDeclarations"), f"Invalid value at '{where}'.")):
            _check_declaration(declaration, f"{where}[{j}]")
            declared = True
    config = body.get("toolConfig") or {}
    require(isinstance(config, dict), "Invalid value at 'tool_config'.")
    config = config.get("functionCallingConfig")
    require(declared or config is None, "Function calling config is set without function_declarations.")


def _check_declaration(declaration: dict, where: str) -> None:
    _refuse_unknown(declaration, _DECLARATION, where)
    require(_NAME.fullmatch(str(declaration.get("name"))), f"{where}.name: Invalid function name.")
    both = "parameters" in declaration and "parametersJsonSchema" in declaration
    require(not both, f"{where}: parameters and parameters_json_schema are mutually exclusive.")
    schema = declaration.get("parameters") or {}
    require(isinstance(schema, dict), f"Invalid value at '{where}.parameters'.")
    member = next((m for m in _UNKNOWN_IN_PARAMETERS if m in schema), None)
    require(member is None, _unknown(str(member), f"{where}.parameters"))


def _check_turns(contents: list[dict]) -> None:
    roles = [content.get("role", "user") for content in contents]
    require(roles[0] == "user", "Please ensure that the conversation starts with a user turn.")
    require(roles[-1] == "user", "Please ensure that the conversation ends with a user turn.")
    alternate = all(a != b for a, b in itertools.pairwise(roles))
    require(alternate, "Please ensure that user and model turns alternate.")
    calls: list[dict] = []
    for content in contents:
        responses = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        if content.get("role", "user") == "user":
            _check_responses(calls, responses)
        calls = [p["functionCall"] for p in content["parts"] if "functionCall" in p]


def _check_responses(calls: list[dict], responses: list[dict]) -> None:
    equal = "Please ensure that the number of function response parts is equal to the number of function call parts"
    require(len(calls) == len(responses), f"{equal} of the function call turn.")
    for call, response in zip(calls, responses, strict=True):
        require(call["name"] == response["name"], "function_response.name does not match function_call.name.")
        require(call.get("id") == response.get("id"), "functionResponse.id does not match functionCall.id.")


def _refuse_unknown(data: dict, known: frozenset[str], where: str) -> None:
    member = first_unknown(data, known)
    require(member is None, _unknown(str(member), where))


def _unknown(member: str, where: str) -> str:
    place = f" at '{where}'" if where else ""
    return f'Invalid JSON payload received. Unknown name "{member}"{place}: Cannot find field.'


def _candidate(index: int, reply: Reply, state: str | None) -> dict:
    candidate: dict[str, Any] = {"index": index}
    if reply.refusal is not None:
        candidate |= {"finishReason": "PROHIBITED_CONTENT", "finishMessage": reply.refusal}
    else:
        candidate |= {"content": _content(reply, state), "finishReason": _FINISH.get(reply.finish, reply.finish)}
    return {k: v for k, v in candidate.items() if k != "finishReason" or "finish" not in reply.omit}


def _content(reply: Reply, state: str | None) -> dict:
    parts: list[dict] = []
    if reply.reasoning is not None:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.content is not None:
        parts.append({"text": reply.content})
    for i, call in enumerate(reply.tool_calls):
        function = {"id": call.id, "name": call.name, "args": argument_value(call.arguments)}
        part: dict[str, Any] = {"functionCall": function}
        parts.append(part if state is None or i else part | {"thoughtSignature": state})
    return {"role": "model", "parts": parts} if parts else {"role": "model"}


WIRE = Wire(
    name="gemini-generate",
    base_suffix="",
    claims=lambda path: _PATH.fullmatch(path) is not None,
    parse=parse,
    render=render,
    error=error,
    headers=lambda id_: [("x-gemini-service-tier", "standard")],
    overflow=overflow,
    missing_continuation=missing_continuation,
)
