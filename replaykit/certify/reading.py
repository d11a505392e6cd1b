"""What a request says in its wire, independent of the transports: settings, tools, and the history as atoms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from replaykit.certify.profile import Profile

_NAMES = {
    "openai-chat": {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "seed": "seed",
        "stop": "stop",
    },
    "openai-responses": {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_output_tokens"},
    "anthropic-messages": {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_output_tokens",
        "stop_sequences": "stop",
    },
    "gemini-generate": {
        "temperature": "temperature",
        "topP": "top_p",
        "maxOutputTokens": "max_output_tokens",
        "seed": "seed",
        "stopSequences": "stop",
    },
}
_FRAME = {
    "openai-chat": {"model", "messages", "tools", "tool_choice"},
    "openai-responses": {"model", "input", "instructions", "tools", "tool_choice"},
    "anthropic-messages": {"model", "messages", "system", "tools", "tool_choice"},
    "gemini-generate": {"contents", "systemInstruction", "tools", "toolConfig"},
}
# Members that a declared rewrite adds, with the value they must have.
_DECLARED = {("openai-responses", "store"): ("not_stored", False)}
LEFT_OUT_BY = {"gemini-generate": ("schema_keywords", {"$schema", "discriminator", "examples"})}


def settings(body: dict, profile: Profile) -> dict[str, Any]:
    """The settings in a body, under their native names."""
    holder = body.get("generationConfig", {}) if profile.wire == "gemini-generate" else body
    names = _NAMES[profile.wire]
    return {names[k]: v for k, v in holder.items() if k in names}


def undeclared_members(body: dict, profile: Profile) -> list[str]:
    """Members of a body that are neither its frame, nor a setting, nor added by a declared rewrite."""
    if profile.wire == "gemini-generate":
        inner = [f"generationConfig.{k}" for k in body.get("generationConfig", {}) if k not in _NAMES[profile.wire]]
        return inner + [k for k in body if k not in _FRAME[profile.wire] | {"generationConfig"}]
    known = _FRAME[profile.wire] | set(_NAMES[profile.wire])
    return [k for k, v in body.items() if k not in known and not _is_declared(k, v, profile)]


def tools(body: dict, profile: Profile) -> list[dict]:
    """The tools of a body as ``{"name", "description", "parameters"}``."""
    given = body.get("tools") or []
    if profile.wire == "openai-chat":
        return [t["function"] for t in given]
    if profile.wire == "openai-responses":
        return [{k: t[k] for k in t if k not in ("type", "strict")} for t in given]
    if profile.wire == "anthropic-messages":
        return [{("parameters" if k == "input_schema" else k): v for k, v in t.items()} for t in given]
    declarations = [d for t in given for d in t.get("functionDeclarations", [])]
    return [{("parameters" if k == "parametersJsonSchema" else k): v for k, v in d.items()} for d in declarations]


def expected_tools(native: Sequence[dict], profile: Profile) -> list[dict]:
    """What the wire must hold for these native tools, under the declared rewrites."""
    functions = [dict(t["function"]) for t in native]
    if "no_parameters" in profile.rewrites:
        for function in functions:
            if not function["parameters"].get("properties"):
                del function["parameters"]
    left_out = LEFT_OUT_BY.get(profile.wire)
    if left_out and left_out[0] in profile.rewrites:
        for function in functions:
            if "parameters" in function:
                function["parameters"] = _without(function["parameters"], left_out[1])
    return functions


def atoms(messages: Sequence[dict]) -> list[tuple]:
    """A history as a flat list that merging turns does not change: texts by role, calls, results with their call.

    Args:
        messages: Normal form: a call is ``{"id", "name", "arguments"}`` or native (``function`` inside).
    """
    found: list[tuple] = []
    waiting: list[tuple[str, int]] = []
    count = 0
    for message in messages:
        if message["role"] == "tool":
            at = next((i for i, (id_, _) in enumerate(waiting) if id_ == message["tool_call_id"]), None)
            answers = waiting.pop(at)[1] if at is not None else -1
            found.append(("result", answers, message["content"] or ""))
            continue
        if message.get("content"):
            found.append((message["role"], message["content"]))
        for call in message.get("tool_calls") or ():
            function = call.get("function", call)
            waiting.append((call["id"], count))
            found.append(("call", count, function["name"], _value(function["arguments"])))
            count += 1
    return found


def expected_atoms(native: Sequence[dict], profile: Profile) -> list[tuple]:
    """The atoms that the wire must hold for a native history, under the declared rewrites."""
    expected = atoms(native)
    if "no_text" in profile.rewrites and profile.wire in ("anthropic-messages", "gemini-generate"):
        expected = [
            _shown(atom)
            for atom in expected
            if atom[0] != "assistant" or str(atom[1]).strip() or profile.wire != "anthropic-messages"
        ]
    return expected


def wire_atoms(messages: Sequence[dict], native: Sequence[dict], profile: Profile) -> list[tuple]:
    """The atoms of a parsed request without the leading user turn that the transport declares."""
    found = atoms(messages)
    first = next((m for m in native if m["role"] != "system"), None)
    if "leading_user_turn" not in profile.rewrites or first is None or first["role"] != "assistant":
        return found
    text = profile.dialect.get("leading_user", ".")
    at = next((i for i, a in enumerate(found) if a[0] != "system"), None)
    return found[:at] + found[at + 1 :] if at is not None and found[at] == ("user", text) else found


def joined(found: Sequence[tuple]) -> list[tuple]:
    """Atoms with neighbouring texts of one role joined, as a control reads a merged turn; calls keep their places."""
    out: list[tuple] = []
    for atom in found:
        if out and atom[0] in ("user", "assistant", "system") and out[-1][0] == atom[0]:
            out[-1] = (atom[0], out[-1][1] + atom[1])
        else:
            out.append(atom)
    return out


def _is_declared(key: str, value: Any, profile: Profile) -> bool:
    declared = _DECLARED.get((profile.wire, key))
    return declared is not None and declared[0] in profile.rewrites and declared[1] == value


def _shown(atom: tuple) -> tuple:
    return (atom[0], "(no text)") if atom[0] == "user" and not atom[1].strip() else atom


def _value(arguments: Any) -> Any:
    try:
        return json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments, sort_keys=False)
    except ValueError:
        return arguments


def _without(schema: Any, names: set[str], inside_properties: bool = False) -> Any:
    if isinstance(schema, list):
        return [_without(s, names) for s in schema]
    if not isinstance(schema, dict):
        return schema
    if inside_properties:
        return {k: _without(v, names) for k, v in schema.items()}
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "const":
            kept["enum"] = [value]
        elif key in ("enum", "default", "required"):
            kept[key] = value
        elif key not in names:
            kept[key] = _without(value, names, key in ("properties", "$defs", "definitions"))
    return kept
