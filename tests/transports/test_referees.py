"""The vendors' own SDKs judge what we send and confirm what we read; they are referees that we did not write."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import pytest

from replaykit.transports import load

from .conftest import ask_for
from .examples import ANTHROPIC, CHAT, GEMINI, HISTORY, RESPONSES, TOOLS, call, encoded, result

pydantic = pytest.importorskip("pydantic")

SECOND_TURN = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": "On it.", "tool_calls": [call("call_b1")]},
    result("call_b1"),
]


def sent(name: str, reply: dict, **dialect: Any) -> list[dict]:
    """The bodies of a first turn, of a long history, and of a turn that gives the provider its own members back."""
    seat = load(name)(base_url="http://h", model="m", dialect=dialect)
    side = seat.from_wire(200, {}, encoded(reply), ask_for()).side
    requests = [
        ask_for(settings={"temperature": 0.0, "top_p": 1.0, "max_output_tokens": 5, "seed": 7, "stop": ["x"]}),
        ask_for(*HISTORY, tools=TOOLS, tool_choice="auto"),
        ask_for(*SECOND_TURN, tools=TOOLS, tool_choice="auto", side=side),
    ]
    return [seat.to_wire(r) for r in requests]


def settled(value: Any) -> Any:
    """Lazy iterables as lists, so that everything inside is validated; keys unknown to the type are gone by now."""
    if isinstance(value, dict):
        return {k: settled(v) for k, v in value.items()}
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return value
    return [settled(v) for v in value]


def judged(kind: Any, body: dict) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judge = pydantic.TypeAdapter(kind)  # must outlive its lazy iterables
        return settled(judge.validate_python(body))


@pytest.mark.parametrize("max_tokens", ["max_tokens", "max_completion_tokens"])
def test_openai_types_accept_chat_bodies(max_tokens):
    types = pytest.importorskip("openai.types.chat.completion_create_params")
    for body in sent("openai-chat", CHAT, max_tokens=max_tokens):
        assert judged(types.CompletionCreateParamsNonStreaming, body) == body


def test_openai_types_notice_a_key_too_many():
    types = pytest.importorskip("openai.types.chat.completion_create_params")
    body = {
        "model": "m",
        "messages": [{"role": "assistant", "content": None, "tool_calls": [call("c") | {"name": "f"}]}],
    }
    assert judged(types.CompletionCreateParamsNonStreaming, body) != body


@pytest.mark.parametrize("reasoning", ["omit", "encrypted"])
def test_openai_types_accept_responses_bodies(reasoning):
    types = pytest.importorskip("openai.types.responses.response_create_params")
    for body in sent("openai-responses", RESPONSES, reasoning=reasoning):
        assert judged(types.ResponseCreateParamsNonStreaming, body) == body


def test_anthropic_types_accept_bodies_of_the_current_version():
    types = pytest.importorskip("anthropic.types.message_create_params")
    for body in sent("anthropic-messages", ANTHROPIC, version="2026-10-21"):
        assert judged(types.MessageCreateParamsNonStreaming, body) == body


def test_anthropic_types_differ_from_the_old_version_by_temperature_alone():
    types = pytest.importorskip("anthropic.types.message_create_params")
    for body in sent("anthropic-messages", ANTHROPIC):
        accepted = judged(types.MessageCreateParamsNonStreaming, body)
        assert body == accepted | ({"temperature": 0.0} if "temperature" in body else {})


def test_google_types_accept_generate_bodies():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        types = pytest.importorskip("google.genai.types")
    kinds = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    for body in sent("gemini-generate", GEMINI, missing_signature="skip"):
        assert set(body) <= set(kinds)
        for key, value in body.items():
            pydantic.TypeAdapter(kinds[key]).validate_python(value)


def test_openai_reads_the_chat_reply_as_we_do():
    types = pytest.importorskip("openai.types.chat")
    theirs = types.ChatCompletion.model_validate(CHAT).choices[0].message
    ours = load("openai-chat")(base_url="http://h").from_wire(200, {}, encoded(CHAT))
    assert theirs.content == ours.content
    assert [(c.id, c.function.name, c.function.arguments) for c in theirs.tool_calls] == [
        (c.id, c.name, c.arguments) for c in ours.tool_calls
    ]


def test_openai_reads_the_response_as_we_do():
    types = pytest.importorskip("openai.types.responses")
    theirs = types.Response.model_validate(RESPONSES)
    ours = load("openai-responses")(base_url="http://h").from_wire(200, {}, encoded(RESPONSES))
    assert theirs.output_text == ours.content and theirs.output[2].call_id == ours.tool_calls[0].id


def test_anthropic_reads_the_message_as_we_do():
    types = pytest.importorskip("anthropic.types")
    theirs = types.Message.model_validate(ANTHROPIC).content
    ours = load("anthropic-messages")(base_url="http://h").from_wire(200, {}, encoded(ANTHROPIC))
    assert theirs[1].text == ours.content and theirs[2].id == ours.tool_calls[0].id


def test_google_reads_the_reply_as_we_do():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        types = pytest.importorskip("google.genai.types")
    theirs = types.GenerateContentResponse.model_validate(GEMINI)
    ours = load("gemini-generate")(base_url="http://h").from_wire(200, {}, encoded(GEMINI), ask_for())
    assert [c.id for c in theirs.function_calls] == [c.id for c in ours.tool_calls]
