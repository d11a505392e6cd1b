"""What each wire accepts and refuses, in its own words."""

from __future__ import annotations

import copy
import json
import re

import pytest

from replaykit.controls import Call, Reply, scripted
from replaykit.controls.wires import WIRES, RequestLine, Stamp, WireRefusal
from replaykit.controls.wires.wire import to_bytes

CALL = {"id": "call_0", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "policy"},
        {"role": "assistant", "content": "Hi! How can I help you today?"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_0", "content": ""},
    ],
    "tools": [{"type": "function", "function": {"name": "find", "description": "d", "parameters": {}}}],
    "tool_choice": "auto",
}
RESPONSES = {
    "model": "m",
    "instructions": "policy",
    "input": [
        {"role": "assistant", "content": "Hi! How can I help you today?"},
        {"role": "user", "content": "Hello"},
        {"type": "function_call", "call_id": "call_0", "name": "find", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "call_0", "output": ""},
    ],
    "tools": [{"type": "function", "name": "find", "description": "d", "parameters": {}, "strict": False}],
    "tool_choice": "auto",
}
MESSAGES = {
    "model": "m",
    "max_tokens": 4096,
    "system": "policy",
    "messages": [
        {"role": "user", "content": "."},
        {"role": "assistant", "content": "Hi! How can I help you today?"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "find", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": ""}]},
    ],
    "tools": [{"name": "find", "description": "d", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto"},
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "policy"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "."}]},
        {"role": "model", "parts": [{"text": "Hi! How can I help you today?"}]},
        {"role": "user", "parts": [{"text": "Hello"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"output": ""}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "find", "description": "d"}]}],
    "generationConfig": {"temperature": 0.0, "seed": 3},
}
GOOD = {
    "openai-chat": ("/chat/completions", CHAT),
    "openai-responses": ("/responses", RESPONSES),
    "anthropic-messages": ("/messages", MESSAGES),
    "gemini-generate": ("/models/m:generateContent", GEMINI),
}


def parse(wire, body, strict=True, version="2023-06-01"):
    line = RequestLine("POST", GOOD[wire][0], {"anthropic-version": version} if version else {})
    return WIRES[wire].parse(line, body, strict)


def changed(wire, *path_and_value):
    """The good body of a wire with one member set (or, for None as the last path part, appended)."""
    *path, last, value = path_and_value
    body = copy.deepcopy(GOOD[wire][1])
    at = body
    for part in path:
        at = at[part]
    at.append(value) if last is None else at.__setitem__(last, value)
    return body


@pytest.mark.parametrize("wire", GOOD)
def test_every_wire_reads_the_same_conversation(wire):
    asked = parse(wire, GOOD[wire][1])
    own = [m for m in asked.messages if m["content"] != "."]
    assert [m["role"] for m in own] == ["system", "assistant", "user", "assistant", "tool"]
    assert own[3]["tool_calls"][0]["arguments"] == '{"a": 1}'
    assert own[3]["tool_calls"][0]["id"] == own[4]["tool_call_id"]
    assert asked.model == "m"


@pytest.mark.parametrize("wire", GOOD)
def test_every_wire_finds_the_same_place_in_the_script(wire):
    learner = scripted("learner", [{"content": "first"}, {"content": "second"}])
    assert learner.reply(parse(wire, GOOD[wire][1]).messages).content == "second"


REFUSED = [
    ("openai-chat", ("messages", 3, "tool_calls", 0, "name", "find"), r"'messages\[3\]\.tool_calls\[0\]\.name'"),
    ("openai-chat", ("messages", 2, "timestamp", "x"), r"'messages\[2\]\.timestamp'"),
    ("openai-chat", ("tools", []), "empty array"),
    ("openai-chat", ("top_k", 1), "'top_k'"),
    ("openai-chat", ("messages", 3, "tool_calls", []), "empty array"),
    ("openai-chat", ("messages", 4, "content", None), "expected a string, got null"),
    ("openai-chat", ("messages", 4, "tool_call_id", "call_9"), "preceding message"),
    ("openai-chat", ("messages", None, CHAT["messages"][3]), "must be followed"),
    ("openai-chat", ("messages", []), "non-empty"),
    ("openai-chat", ("stream", True), "streaming"),
    ("openai-responses", ("seed", 1), "'seed'"),
    ("openai-responses", ("max_tokens", 1), "'max_tokens'"),
    ("openai-responses", ("input", 2, "id", "call_0"), "begins with 'fc'"),
    ("openai-responses", ("input", 3, "call_id", "call_9"), "No tool call found"),
    ("openai-responses", ("input", 2, "function", {}), r"'input\[2\]\.function'"),
    ("openai-responses", ("tools", 0, "function", {}), r"'tools\[0\]\.function'"),
    ("anthropic-messages", ("seed", 1), "seed: Extra inputs"),
    ("anthropic-messages", ("messages", 2, "name", "x"), r"messages\.2\.name: Extra inputs"),
    ("anthropic-messages", ("messages", 2, "content", ""), "non-empty"),
    ("anthropic-messages", ("messages", 4, "content", 0, "tool_use_id", "call_9"), "unexpected tool_use_id"),
    ("anthropic-messages", ("messages", 4, "content", "later"), "without tool_result"),
    ("anthropic-messages", ("messages", None, {"role": "assistant", "content": "Well"}), "prefill"),
    ("anthropic-messages", ("messages", None, {"role": "user", "content": "Well"}), "alternate"),
    ("anthropic-messages", ("messages", 0, "role", "system"), "role"),
    ("anthropic-messages", ("messages", 3, "content", 0, "input", "[1]"), "valid dictionary"),
    ("anthropic-messages", ("messages", 3, "content", 0, "id", "a:0"), "pattern"),
    ("anthropic-messages", ("tools", 0, "input_schema", {}), "input_schema.type"),
    ("anthropic-messages", ("tools", 0, "description", None), "valid string"),
    ("gemini-generate", ("temperature", 0), 'Unknown name "temperature"'),
    ("gemini-generate", ("contents", 2, "parts", 0, "text", ""), "oneof field"),
    ("gemini-generate", ("contents", 2, "parts", []), "must not be empty"),
    ("gemini-generate", ("contents", 3, "role", "assistant"), "valid role"),
    ("gemini-generate", ("contents", 4, "parts", 0, "functionResponse", "id", "call_0"), "does not match"),
    ("gemini-generate", ("contents", 4, "parts", 0, "functionResponse", "name", "other"), "does not match"),
    ("gemini-generate", ("contents", 4, "parts", None, GEMINI["contents"][4]["parts"][0]), "is equal to the number"),
    ("gemini-generate", ("contents", 3, "parts", 0, "functionCall", "arguments", "{}"), 'Unknown name "arguments"'),
    ("gemini-generate", ("contents", None, {"role": "model", "parts": [{"text": "x"}]}), "ends with a user turn"),
    ("gemini-generate", ("generationConfig", "seed", 2**31), "INT32"),
    ("gemini-generate", ("tools", 0, "functionDeclarations", 0, "parameters", {"$ref": "x"}), r"\$ref"),
]


@pytest.mark.parametrize(("wire", "change", "says"), REFUSED)
def test_a_strict_wire_refuses(wire, change, says):
    with pytest.raises(WireRefusal, match=says) as caught:
        parse(wire, changed(wire, *change))
    assert caught.value.status == 400


LENIENT = [
    ("openai-chat", ("messages", 3, "tool_calls", 0, "name", "find")),
    ("openai-responses", ("seed", 1)),
    ("anthropic-messages", ("seed", 1)),
    ("gemini-generate", ("temperature", 0)),
]


@pytest.mark.parametrize(("wire", "change"), LENIENT)
def test_a_lenient_wire_overlooks_unknown_members(wire, change):
    assert parse(wire, changed(wire, *change), strict=False).model == "m"


@pytest.mark.parametrize(
    ("version", "settings", "says"),
    [
        (None, {}, "header is required"),
        ("2020-01-01", {}, "not a valid version"),
        ("2026-10-21", {"temperature": 1.0}, "temperature: Extra inputs"),
        ("2023-06-01", {"temperature": 0.0, "top_p": 1.0}, "cannot both be specified"),
    ],
)
def test_the_messages_wire_follows_its_version(version, settings, says):
    with pytest.raises(WireRefusal, match=says):
        parse("anthropic-messages", MESSAGES | settings, version=version)


def test_the_gemini_wire_reads_snake_case_but_leaves_arguments_alone():
    call = {"function_call": {"name": "find", "args": {"a_b": 1}}}
    body = changed("gemini-generate", "contents", 3, "parts", 0, call)
    body["system_instruction"] = body.pop("systemInstruction")
    asked = parse("gemini-generate", body)
    assert asked.messages[0] == {"role": "system", "content": "policy"}
    assert asked.messages[4]["tool_calls"][0]["arguments"] == '{"a_b": 1}'


STAMP = Stamp("n0", "m", 1, 1)
OBJECTS = {
    "anthropic-messages": b'"input":%s}',
    "gemini-generate": b'"args":%s}',
}


@pytest.mark.parametrize("wire", OBJECTS)
@pytest.mark.parametrize(
    "text", ['{"b": 1.0, "a": 1e3, "c": -0, "d": 9007199254740993}', '{"a":1,"a":2}', "[1]", "null", "NaN"]
)
def test_argument_text_that_is_json_survives_byte_for_byte(wire, text):
    reply = Reply(tool_calls=(Call("c", "find", text), Call("d", "find", text)))
    data = to_bytes(WIRES[wire].render(reply, STAMP))
    assert data.count(OBJECTS[wire] % text.encode()) == 2


@pytest.mark.parametrize("wire", OBJECTS)
@pytest.mark.parametrize("text", ["", '{"a": ', '{"a":1}{"a":2}', '{"a": "\ud800"}'])
def test_argument_text_that_is_no_json_becomes_a_string(wire, text):
    data = to_bytes(WIRES[wire].render(Reply(tool_calls=(Call("c", "find", text),)), STAMP))
    assert OBJECTS[wire] % json.dumps(text).encode() in data


@pytest.mark.parametrize("wire", ["openai-responses", "anthropic-messages"])
def test_a_wire_without_choices_has_no_second_one(wire):
    with pytest.raises(WireRefusal, match="no second choice"):
        WIRES[wire].render(Reply("a", alternatives=(Reply("b"),)), STAMP)


@pytest.mark.parametrize("wire", GOOD)
@pytest.mark.parametrize(
    ("member", "words"),
    [("id", "n0"), ("model", '"m"'), ("usage", "sage"), ("finish", '"stop"|completed"|end_turn|STOP')],
)
def test_each_wire_can_leave_a_member_out(wire, member, words):
    full, less = (to_bytes(WIRES[wire].render(Reply("x", omit=o), STAMP)).decode() for o in ((), (member,)))
    assert len(re.findall(words, less)) < len(re.findall(words, full))


@pytest.mark.parametrize("wire", GOOD)
@pytest.mark.parametrize("body", [None, [], "x", {}, {"model": 1}, {"model": "m", "messages": [1], "max_tokens": 1}])
def test_no_body_breaks_a_wire(wire, body):
    with pytest.raises(WireRefusal):
        parse(wire, body)
