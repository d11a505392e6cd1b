"""The chat wire: what goes out, what comes in."""

from __future__ import annotations

import json

import pytest

from replaykit.errors import UsageError
from replaykit.seats import SeatFailure
from replaykit.transports import bodies
from replaykit.transports.openai_chat import ChatDialect, OpenAIChat, from_wire, to_wire

from .conftest import ask_for
from .examples import CHAT, HISTORY, TOOLS, call, encoded, result


def reply(body: object, **headers: str):
    return from_wire(200, headers, body if isinstance(body, bytes) else encoded(body))


def with_message(finish: str | None = "stop", **message: object) -> dict:
    return {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}]}


def test_the_body_holds_nothing_but_what_is_declared():
    body = to_wire(ask_for(*HISTORY, tools=TOOLS, tool_choice="auto"))
    assert list(body) == ["model", "messages", "tools", "tool_choice", "temperature", "top_p", "max_tokens", "seed"]
    assert body["tools"] == TOOLS and body["messages"][3]["content"] is None
    assert [m["role"] for m in body["messages"]] == [m["role"] for m in HISTORY]
    assert [m["content"] for m in body["messages"]] == [m["content"] for m in HISTORY]


def test_falsy_settings_are_sent_with_their_type():
    body = to_wire(ask_for(settings={"temperature": 0.0, "seed": 0, "stop": []}))
    assert (
        json.dumps({k: body[k] for k in ("temperature", "seed", "stop")})
        == '{"temperature": 0.0, "seed": 0, "stop": []}'
    )


@pytest.mark.parametrize("tools", [None, []])
def test_without_tools_there_is_no_tool_key(tools):
    assert not {"tools", "tool_choice"} & set(to_wire(ask_for(tools=tools, tool_choice=None)))


def test_keys_that_are_not_on_the_list_are_not_forwarded():
    native = call("c") | {"name": "move_booking", "index": 0}
    message = {"role": "assistant", "content": None, "tool_calls": [native], "reasoning": "x", "refusal": None}
    body = to_wire(ask_for(message, result("c") | {"name": "move_booking"}))
    assert body["messages"] == [{"role": "assistant", "content": None, "tool_calls": [call("c")]}, result("c")]


FORMS = {"null": {"content": None}, "empty": {"content": ""}, "omit": {}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("native", [None, ""])
def test_no_text_beside_calls_has_one_form(form, native):
    message = {"role": "assistant", "content": native, "tool_calls": [call("c")]}
    sent = to_wire(ask_for(message, result("c")), ChatDialect(no_text=form))["messages"][0]
    assert sent == {"role": "assistant", **FORMS[form], "tool_calls": [call("c")]}


def test_the_dialect_renames_limit_and_system_role_and_omits_settings():
    dialect = ChatDialect(max_tokens="max_completion_tokens", system_role="developer", omit=("temperature", "top_p"))
    body = to_wire(ask_for({"role": "system", "content": "s"}), dialect)
    assert body["max_completion_tokens"] == 4096 and body["messages"][0]["role"] == "developer"
    assert not {"max_tokens", "temperature", "top_p"} & set(body)
    assert set(OpenAIChat("http://h", dialect=dialect).capabilities.not_carried) == {"temperature", "top_p"}


def test_extra_body_fields_are_added_and_cannot_replace_our_own():
    assert to_wire(ask_for(), reasoning_effort="none")["reasoning_effort"] == "none"
    with pytest.raises(UsageError, match="'temperature' is set by openai-chat itself"):
        OpenAIChat("http://h", body_fields={"temperature": 1})


def test_an_unknown_setting_is_refused_rather_than_dropped():
    with pytest.raises(SeatFailure, match="cannot carry the setting 'top_k'") as caught:
        to_wire(ask_for(settings={"top_k": 1}))
    assert caught.value.kind == "capability"


def test_the_wire_text_is_compact_and_keeps_every_character():
    assert bodies.encode({"a": "é\u2028", "b": [1, 2.0]}) == '{"a":"é\u2028","b":[1,2.0]}'.encode()


UNSENDABLE = {"lone surrogate": "ok \ud83d", "not finite": float("nan"), "foreign": {1, 2}}


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_what_cannot_be_encoded_is_unsendable(value):
    with pytest.raises(SeatFailure) as caught:
        bodies.encode({"messages": [{"content": value}]})
    assert caught.value.kind == "unsendable"


def test_a_lone_surrogate_is_named_by_its_place():
    with pytest.raises(SeatFailure, match="/messages/1/content"):
        bodies.encode({"messages": [{"content": "x"}, {"content": "\udc00"}]})


def test_a_reply_is_read_with_its_own_argument_text():
    found = reply(CHAT)
    assert found.content == "On it." and found.finish_reason == "tool_calls"
    assert found.tool_calls[0].to_dict() == {
        "id": "call_b1",
        "name": "move_booking",
        "arguments": '{"code":"K7", "day":"Fri"}',
    }
    assert (found.model, found.id, found.usage["prompt_tokens"], found.cost) == ("m-2026", "chatcmpl-x1", 91, None)


FINISHES = {
    "stop": ("stop", {"content": "x"}, "stop"),
    "stop beside calls": ("stop", {"tool_calls": [call("c")]}, "tool_calls"),
    "length": ("length", {"content": "x"}, "length"),
    "length beside calls": ("length", {"tool_calls": [call("c")]}, "length"),
    "filter": ("content_filter", {"content": None}, "content_filter"),
    "old word": ("function_call", {"tool_calls": [call("c")]}, "tool_calls"),
    "Mistral's word": ("model_length", {"content": "x"}, "length"),
    "unknown word": ("eos", {"content": "x"}, "eos"),
    "nothing said": (None, {"content": "x"}, None),
    "empty call list": ("stop", {"content": "x", "tool_calls": []}, "stop"),
}


@pytest.mark.parametrize(("word", "message", "finish"), FINISHES.values(), ids=FINISHES.keys())
def test_finish_reasons_have_normal_forms(word, message, finish):
    assert reply(with_message(word, **message)).finish_reason == finish


def test_a_refusal_is_no_empty_reply():
    found = reply(with_message("stop", content=None, refusal="I will not."))
    assert (found.finish_reason, found.content) == ("refusal", "I will not.")


CONTENTS = {
    "null": (None, None),
    "empty": ("", ""),
    "chunks": ([{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}], "a"),
}


@pytest.mark.parametrize(("content", "text"), CONTENTS.values(), ids=CONTENTS.keys())
def test_content_is_kept_as_it_came(content, text):
    assert reply(with_message(content=content)).content == text


def test_escaped_surrogate_pairs_are_one_character_and_halves_are_kept():
    assert reply(b'{"choices":[{"finish_reason":"stop","message":{"content":"\\ud83d\\ude00"}}]}').content == "😀"
    assert reply(b'{"choices":[{"finish_reason":"stop","message":{"content":"ok \\ud83d"}}]}').content == "ok \ud83d"


MALFORMED = {
    "choices null": {"id": None, "choices": None},
    "no choices": {"id": "x", "choices": []},
    "two choices": {"choices": CHAT["choices"] * 2},
    "message null": {"choices": [{"finish_reason": "stop", "message": None}]},
    "choice null": {"choices": [None]},
    "content number": with_message(content=5),
    "calls announced, none there": with_message("tool_calls", content="x", tool_calls=[]),
    "calls no list": with_message(tool_calls={"a": 1}),
    "call null": with_message(tool_calls=[None]),
    "arguments object": with_message(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]),
    "arguments null": with_message(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": None}}]),
    "no id": with_message(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
    "no name": with_message(tool_calls=[{"id": "c", "function": {"arguments": "{}"}}]),
    "custom tool": with_message(tool_calls=[{"id": "c", "type": "custom", "custom": {}}]),
    "old function call": with_message(function_call={"name": "f", "arguments": "{}"}),
    "flat error": {"object": "error", "message": "busy"},
    "error list": [{"error": {"message": "busy"}}],
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_reply_is_malformed(body):
    with pytest.raises(SeatFailure) as caught:
        reply(body)
    assert caught.value.kind == "malformed"


def test_a_wrong_argument_type_is_named_by_its_place():
    with pytest.raises(SeatFailure, match="/choices/0/message/tool_calls/0/function/arguments is an object, not text"):
        reply(MALFORMED["arguments object"])


USAGES = {
    "absent": ({}, None),
    "null": ({"usage": None}, None),
    "empty": ({"usage": {}}, None),
    "no counts": ({"usage": {"prompt_tokens": None, "completion_tokens": -1}}, None),
    "zero": ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, {"prompt_tokens": 0, "completion_tokens": 0}),
    "true is no count": ({"usage": {"prompt_tokens": True, "completion_tokens": 3}}, {"completion_tokens": 3}),
}


@pytest.mark.parametrize(("extra", "usage"), USAGES.values(), ids=USAGES.keys())
def test_usage_is_as_reported_or_not_reported(extra, usage):
    assert reply(with_message(content="x") | extra).usage == usage


def test_a_reported_cost_is_kept():
    assert reply(with_message(content="x") | {"usage": {"prompt_tokens": 1, "cost": 0.25}}).cost == 0.25


EXTRA = {"extra_content": {"google": {"thought_signature": "c2ln=="}}}


def side_of(transport: OpenAIChat) -> dict:
    message = with_message("tool_calls", tool_calls=[call("c") | EXTRA])
    return transport.from_wire(200, {}, encoded(message)).side


def test_unknown_members_of_a_call_go_back_to_their_provider_unchanged():
    transport = OpenAIChat("http://h/v1", "m")
    again = call("c", arguments='{"day": "Fri",  "code": "K7"}')
    sent = transport.to_wire(
        ask_for({"role": "assistant", "content": None, "tool_calls": [again]}, result("c"), side=side_of(transport))
    )
    assert sent["messages"][0]["tool_calls"] == [again | EXTRA]


OTHERS = {
    "another address": (OpenAIChat("http://other/v1", "m"), call("c")),
    "another model": (OpenAIChat("http://h/v1", "m2"), call("c")),
    "another call with the same id": (OpenAIChat("http://h/v1", "m"), call("c", arguments="{}")),
}


@pytest.mark.parametrize(("transport", "native"), OTHERS.values(), ids=OTHERS.keys())
def test_unknown_members_go_to_nobody_else(transport, native):
    side = side_of(OpenAIChat("http://h/v1", "m"))
    sent = transport.to_wire(
        ask_for({"role": "assistant", "content": None, "tool_calls": [native]}, result("c"), side=side)
    )
    assert sent["messages"][0]["tool_calls"] == [native]
