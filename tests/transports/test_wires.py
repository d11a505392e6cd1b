"""What all four wires promise, and what each makes of a native history."""

from __future__ import annotations

import json

import pytest

from replaykit.errors import UsageError
from replaykit.seats import ReplyCall, SeatFailure, SeatReply
from replaykit.transports import load
from replaykit.transports.wire import WireTransport

from .conftest import ask_for
from .examples import ANTHROPIC, GEMINI, HISTORY, REPLIES, RESPONSES, TOOLS, call, encoded, result
from .loopback import Loopback, response

WIRES = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate")
FULL = {"tools": TOOLS, "tool_choice": "auto"}


def transport(name: str, base_url: str = "http://h", model: str | None = "m", **arguments: object) -> WireTransport:
    return load(name)(base_url=base_url, model=model, **arguments)


def read(name: str, body: object, number: int = 1) -> SeatReply:
    return transport(name).from_wire(200, {}, encoded(body), ask_for(number=number))


@pytest.fixture(params=WIRES)
def name(request) -> str:
    return request.param


def test_the_same_reply_reads_the_same_on_every_wire(name):
    found = read(name, REPLIES[name])
    assert (found.content, found.finish_reason, found.model) == ("On it.", "tool_calls", "m-2026")
    assert [(c.id, c.name, json.loads(c.arguments)) for c in found.tool_calls] == [
        ("call_b1", "move_booking", {"code": "K7", "day": "Fri"})
    ]
    assert (found.usage["prompt_tokens"], found.usage["completion_tokens"]) == (91, 22)
    assert found.id


def test_a_request_goes_out_and_its_reply_comes_back(name, sender, exchanges):
    with Loopback([response(encoded(REPLIES[name]))]) as server:
        seat = transport(name, server.url, key="k-123", sender=sender)
        reply = seat.ask(ask_for(*HISTORY, **FULL), exchanges.append)
    assert reply.content == "On it."
    (exchange,) = exchanges
    assert json.loads(server.seen[0].body) == seat.to_wire(ask_for(*HISTORY, **FULL))
    assert exchange.request["body"] == server.seen[0].body and exchange.failure is None


def test_the_key_is_in_one_header_and_nowhere_else(name, sender, exchanges):
    with Loopback([response(encoded(REPLIES[name]))]) as server:
        seat = transport(name, server.url, key="k-canary", sender=sender)
        seat.ask(ask_for(*HISTORY, **FULL), exchanges.append)
    head = server.seen[0].head
    assert head.count(b"k-canary") == 1 and b"k-canary" not in head.split(b"\r\n")[0] + server.seen[0].body
    assert "k-canary" not in json.dumps(seat.identity())


def test_a_failure_is_recorded_with_its_response(name, sender, exchanges):
    answer = response(b'{"error":{"message":"slow down"}}', "429 Too Many", retry_after="3")
    with Loopback([answer]) as server, pytest.raises(SeatFailure) as caught:
        transport(name, server.url, sender=sender).ask(ask_for(), exchanges.append)
    assert (caught.value.kind, caught.value.status, caught.value.retry_after_s) == ("rate_limit", 429, 3.0)
    assert exchanges[0].failure == caught.value.to_dict() and exchanges[0].response["status"]["code"] == 429


def test_bad_pairing_is_refused_before_anything_is_sent(name, sender, exchanges):
    with Loopback([response(b"{}")]) as server, pytest.raises(SeatFailure) as caught:
        transport(name, server.url, sender=sender).ask(ask_for(HISTORY[3], result("call_2")), exchanges.append)
    assert caught.value.kind == "pairing" and server.connections == 0 and exchanges == []


@pytest.mark.parametrize("tools", [None, []])
def test_without_tools_there_is_no_trace_of_tools(name, tools):
    body = transport(name).to_wire(ask_for(tools=tools))
    assert not {"tools", "tool_choice", "toolConfig"} & set(body)


def test_settings_that_do_not_go_out_are_declared(name):
    seat = transport(name)
    request = ask_for(settings={"temperature": 0.0, "top_p": 0.875, "max_output_tokens": 777, "seed": 300})
    sent = json.dumps(seat.to_wire(request))
    values = {"temperature": "0.0", "top_p": "0.875", "max_output_tokens": "777", "seed": "300"}
    assert {k for k, v in values.items() if v not in sent} == set(seat.capabilities.not_carried) & set(values)


def test_a_setting_can_be_omitted_and_is_then_declared(name):
    seat = transport(name, dialect={"omit": ["temperature", "top_p"]})
    assert {"temperature", "top_p"} <= set(seat.capabilities.not_carried)
    assert "emperature" not in json.dumps(seat.to_wire(ask_for()))


def test_every_text_of_the_history_arrives_unchanged(name):
    sent = json.loads(json.dumps(transport(name).to_wire(ask_for(*HISTORY, **FULL))))

    def texts(value: object) -> list[str]:
        if isinstance(value, dict):
            return [t for v in value.values() for t in texts(v)]
        if isinstance(value, list):
            return [t for v in value for t in texts(v)]
        return [value] if isinstance(value, str) else []

    found = texts(sent)
    for message in HISTORY:
        if message["content"]:
            assert message["content"] in found


def test_a_longer_history_begins_with_the_shorter(name):
    key = {"openai-responses": "input", "gemini-generate": "contents"}.get(name, "messages")
    short = transport(name).to_wire(ask_for(*HISTORY[:3]))[key]
    long = transport(name).to_wire(ask_for(*HISTORY))[key]
    assert long[: len(short)] == short


def test_repeated_ids_still_pair_each_result_with_its_call(name):
    messages = [{"role": "user", "content": "x"}]
    for number in range(3):
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call("call:0", arguments=f'{{"n": {number}}}')]},
            result("call:0", f"result {number}"),
        ]
    first, second = (transport(name).to_wire(ask_for(*messages)) for _ in range(2))
    text = json.dumps(first).replace('\\"', '"')
    places = [text.index(s) for n in range(3) for s in (f'"n": {n}', f"result {n}")]
    assert first == second and places == sorted(places)


def test_the_identity_names_everything_that_decides_the_wire(name):
    seat = transport(name, "https://host.example/base/", headers={"X-Team": "t"}, body_fields={"extra": 1})
    identity = seat.identity()
    assert (identity["transport"], identity["base_url"], identity["model"]) == (name, "https://host.example/base", "m")
    assert identity["header_names"] == ["X-Team"] and identity["body_fields"] == {"extra": 1}
    assert identity["wire_version"] and len(identity["code_digest"]) == 64
    assert identity["capabilities"] == seat.capabilities.to_dict()


def test_the_code_digest_tells_the_wires_apart():
    assert len({transport(n).identity()["code_digest"] for n in WIRES}) == 4


def test_model_of_the_request_is_sent_when_the_transport_has_none(name):
    seat = transport(name, model=None)
    assert "m-1" in json.dumps(seat.to_wire(ask_for())) + seat.url(ask_for())


BAD_ADDRESSES = {
    "no scheme": "host/v1",
    "ftp": "ftp://host",
    "password": "https://user:pw@host/v1",
    "key in query": "https://host/v1?api-key=abc",
}


@pytest.mark.parametrize("address", BAD_ADDRESSES.values(), ids=BAD_ADDRESSES.keys())
def test_an_address_with_a_credential_or_without_a_host_is_refused(name, address):
    with pytest.raises(UsageError) as caught:
        transport(name, address)
    assert "pw" not in str(caught.value) and "abc" not in str(caught.value)


def test_a_query_in_the_address_is_kept_behind_the_path(name):
    seat = transport(name, "https://host/base?api-version=2026")
    assert seat.url(ask_for()).endswith("?api-version=2026") and "base/" in seat.url(ask_for())


BAD_ARGUMENTS = {
    "framing header": {"headers": {"Content-Length": "1"}},
    "number as header": {"headers": {"x-a": 1}},
    "second credential": {"key": "k", "headers": {"Authorization": "Bearer x"}},
    "unknown option": {"dialect": {"colour": "red"}},
    "omitted unknown setting": {"dialect": {"omit": ["top_k"]}},
    "own field": {"body_fields": {"tools": []}},
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_arguments_that_cannot_hold_are_refused(name, arguments):
    with pytest.raises(UsageError):
        transport(name, **arguments)


def test_calls_cut_at_the_token_limit_are_finished_by_length(sender, exchanges):
    def cut(arguments: str, spent: int) -> str | None:
        message = {"role": "assistant", "content": None, "tool_calls": [call("c", arguments=arguments)]}
        body = {
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {"completion_tokens": spent},
        }
        with Loopback([response(encoded(body))]) as server:
            seat = transport("openai-chat", server.url, sender=sender)
            return seat.ask(ask_for(settings={"max_output_tokens": 16}), exchanges.append).finish_reason

    assert cut('{"order_id": "#W1", "items": ["a', 16) == "length"
    assert cut('{"order_id": "#W1", "items": ["a', 9) == "tool_calls"
    assert cut("{}", 16) == "tool_calls"


# anthropic-messages


def anthropic(*messages: dict, dialect: dict | None = None, **changes: object) -> dict:
    return transport("anthropic-messages", dialect=dialect).to_wire(ask_for(*messages, **changes))


def test_anthropic_turns_alternate_and_begin_with_the_user():
    sent = anthropic(*HISTORY, **FULL)
    assert sent["system"] == HISTORY[0]["content"]
    assert [m["role"] for m in sent["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert sent["messages"][0] == {"role": "user", "content": "."}
    assert sent["messages"][4]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "moved"},
        {"type": "tool_result", "tool_use_id": "call_2", "content": ""},
    ]


def test_anthropic_results_come_before_the_text_of_the_same_turn():
    sent = anthropic({"role": "user", "content": "a"}, HISTORY[3], *HISTORY[4:6], {"role": "user", "content": "and?"})
    assert [b["type"] for b in sent["messages"][-1]["content"]] == ["tool_result", "tool_result", "text"]


def test_anthropic_has_no_text_block_that_shows_nothing():
    blank = {"role": "assistant", "content": " \n", "tool_calls": [call("c")]}
    sent = anthropic({"role": "user", "content": " "}, blank, result("c"))
    assert sent["messages"][0]["content"] == "(no text)"
    assert [b["type"] for b in sent["messages"][1]["content"]] == ["tool_use"]


def test_anthropic_sampling_follows_the_version():
    assert anthropic()["temperature"] == 0.0 and "top_p" not in anthropic()
    assert "temperature" not in anthropic(dialect={"version": "2026-10-21"})
    with pytest.raises(UsageError, match="2023-06-01, 2026-10-21"):
        anthropic(dialect={"version": "2024-01-01"})


def test_anthropic_sends_version_and_exactly_one_credential():
    headers = transport("anthropic-messages", key="k").headers()
    assert (
        headers["anthropic-version"] == "2023-06-01" and headers["x-api-key"] == "k" and "authorization" not in headers
    )
    bearer = transport("anthropic-messages", key="k", dialect={"authorisation": "bearer"}).headers()
    assert bearer["authorization"] == "Bearer k" and "x-api-key" not in bearer


def test_anthropic_thinking_goes_back_in_its_place():
    seat = transport("anthropic-messages")
    reply = seat.from_wire(200, {}, encoded(ANTHROPIC))
    native = {"role": "assistant", "content": "On it.", "tool_calls": [call("call_b1")]}
    request = ask_for({"role": "user", "content": "x"}, native, result("call_b1"), side=reply.side)
    assert seat.to_wire(request)["messages"][1]["content"] == ANTHROPIC["content"]
    assert len(transport("anthropic-messages", model="other").to_wire(request)["messages"][1]["content"]) == 2


ANTHROPIC_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    None: None,
}


@pytest.mark.parametrize(("word", "finish"), ANTHROPIC_STOPS.items(), ids=str)
def test_anthropic_stop_reasons(word, finish):
    body = ANTHROPIC | {"content": [{"type": "text", "text": "x"}], "stop_reason": word}
    assert read("anthropic-messages", body).finish_reason == finish


def test_anthropic_needs_an_output_limit():
    with pytest.raises(SeatFailure) as caught:
        anthropic(settings={})
    assert caught.value.kind == "capability"


# openai-responses


def test_responses_items_are_flat_and_nothing_is_stored():
    sent = transport("openai-responses").to_wire(ask_for(*HISTORY, **FULL))
    assert sent["instructions"] == HISTORY[0]["content"] and sent["store"] is False
    kinds = [i.get("type") or i["role"] for i in sent["input"]]
    outputs = ["function_call_output"] * 2
    assert kinds == ["assistant", "user", "function_call", "function_call", *outputs, "assistant", "user"]
    assert all("id" not in item for item in sent["input"]) and all(t["strict"] is False for t in sent["tools"])


def test_responses_reasoning_goes_back_in_its_place():
    seat = transport("openai-responses", dialect={"reasoning": "encrypted"})
    body = json.loads(json.dumps(RESPONSES))
    body["output"][1]["phase"] = "commentary"
    reply = seat.from_wire(200, {}, encoded(body))
    native = {"role": "assistant", "content": "On it.", "tool_calls": [call("call_b1")]}
    sent = seat.to_wire(ask_for(native, result("call_b1"), side=reply.side))
    assert sent["input"][0] == RESPONSES["output"][0]
    assert sent["input"][1] == {"role": "assistant", "content": "On it.", "phase": "commentary"}
    assert sent["include"] == ["reasoning.encrypted_content"]


RESPONSES_ENDS = {
    "completed": ({"output": RESPONSES["output"][:2]}, "stop"),
    "token limit": ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
    "filter": ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
    "steered": ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "steered"),
    "incomplete, no reason": ({"status": "incomplete"}, "incomplete"),
    "cut call": ({"output": [RESPONSES["output"][2] | {"status": "incomplete"}]}, "length"),
    "refusal": ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}, "refusal"),
}


@pytest.mark.parametrize(("change", "finish"), RESPONSES_ENDS.values(), ids=RESPONSES_ENDS.keys())
def test_responses_ends(change, finish):
    assert read("openai-responses", RESPONSES | change).finish_reason == finish


# gemini-generate


def gemini(*messages: dict, dialect: dict | None = None, **changes: object) -> dict:
    return transport("gemini-generate", dialect=dialect).to_wire(ask_for(*messages, **changes))


def test_gemini_turns_and_names():
    sent = gemini(*HISTORY, **FULL)
    assert [c["role"] for c in sent["contents"]] == ["user", "model", "user", "model", "user", "model", "user"]
    assert sent["systemInstruction"] == {"parts": [{"text": HISTORY[0]["content"]}]}
    assert sent["contents"][4]["parts"] == [
        {"functionResponse": {"name": "move_booking", "response": {"output": "moved"}}},
        {"functionResponse": {"name": "list_all", "response": {"output": ""}}},
    ]
    assert sent["contents"][3]["parts"][0] == {
        "functionCall": {"name": "move_booking", "args": {"code": "K7", "day": "Fri"}}
    }
    assert sent["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}


def test_gemini_model_and_version_are_in_the_address():
    seat = transport("gemini-generate", "http://h", "tuned/x", key="k", dialect={"version": "v1"})
    assert seat.url(ask_for()) == "http://h/v1/models/tuned%2Fx:generateContent"
    assert seat.headers()["x-goog-api-key"] == "k"


def test_gemini_signature_and_issued_id_go_back_to_their_call():
    seat = transport("gemini-generate")
    reply = seat.from_wire(200, {}, encoded(GEMINI), ask_for())
    native = {"role": "assistant", "content": "On it.", "tool_calls": [call("call_b1")]}
    sent = seat.to_wire(ask_for({"role": "user", "content": "x"}, native, result("call_b1"), side=reply.side))
    assert sent["contents"][1]["parts"][1] == GEMINI["candidates"][0]["content"]["parts"][2]
    assert sent["contents"][2]["parts"][0]["functionResponse"]["id"] == "call_b1"


def test_gemini_ids_that_were_not_issued_are_made_by_rule_and_not_sent():
    parts = [{"functionCall": {"name": "list_all"}}, {"functionCall": {"name": "list_all", "args": {}}}]
    body = {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": parts}}]}
    reply = read("gemini-generate", body, number=7)
    assert reply.tool_calls == (ReplyCall("g7_0", "list_all", "{}"), ReplyCall("g7_1", "list_all", "{}"))
    assert reply.side == {}


def test_gemini_missing_signatures_can_be_skipped_in_the_current_turn_only():
    old = [{"role": "assistant", "content": None, "tool_calls": [call("a")]}, result("a")]
    new = [{"role": "assistant", "content": None, "tool_calls": [call("b"), call("c")]}, result("b"), result("c")]
    user = {"role": "user", "content": "x"}
    sent = gemini(user, *old, user, *new, dialect={"missing_signature": "skip"})
    signed = [["thoughtSignature" in p for p in c["parts"]] for c in sent["contents"] if c["role"] == "model"]
    assert signed == [[False], [True, False]]


def test_gemini_schemas_lose_what_the_wire_refuses_and_keep_property_names():
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {"examples": {"const": 1}, "$schema": {"enum": [{"const": 2}], "examples": [3]}},
    }
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": schema}}
    (declared,) = gemini(tools=[tool])["tools"][0]["functionDeclarations"]
    assert declared == {
        "name": "f",
        "description": "f",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"examples": {"enum": [1]}, "$schema": {"enum": [{"const": 2}]}},
        },
    }


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_gemini_refuses_a_seed_that_does_not_fit(seed):
    with pytest.raises(SeatFailure) as caught:
        gemini(settings={"seed": seed})
    assert caught.value.kind == "capability"


def test_gemini_generation_fields_join_the_settings():
    seat = transport("gemini-generate", body_fields={"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}})
    config = seat.to_wire(ask_for())["generationConfig"]
    assert config["temperature"] == 0.0 and config["thinkingConfig"] == {"thinkingBudget": 0}
    with pytest.raises(UsageError):
        transport("gemini-generate", body_fields={"generationConfig": {"topP": 1}})


GEMINI_ENDS = {
    "blocked prompt": ({"promptFeedback": {"blockReason": "SAFETY"}}, "content_filter"),
    "safety": ({"candidates": [{"finishReason": "SAFETY"}]}, "content_filter"),
    "limit": ({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "a"}]}}]}, "length"),
    "bad call": ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "MALFORMED_FUNCTION_CALL"),
    "thoughts only": (
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "a", "thought": True}]}}]},
        "stop",
    ),
}


@pytest.mark.parametrize(("body", "finish"), GEMINI_ENDS.values(), ids=GEMINI_ENDS.keys())
def test_gemini_ends(body, finish):
    reply = read("gemini-generate", body)
    assert reply.finish_reason == finish and not reply.tool_calls


def item(**members: object) -> dict:
    return {"status": "completed", "output": [members]}


def candidate(**members: object) -> dict:
    return {"candidates": [members]}


MALFORMED = {
    "anthropic-messages": {
        "no content": {"type": "message"},
        "block null": {"content": [None]},
        "input text": {"content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]},
        "announced call": {"content": [], "stop_reason": "tool_use"},
    },
    "openai-responses": {
        "no status": {"output": []},
        "queued": {"status": "queued", "output": []},
        "failed": {"status": "failed", "error": {"code": "server_error"}},
        "no output": {"status": "completed", "output": None},
        "call without id": item(type="function_call", name="f"),
        "strange part": item(type="message", content=[{"type": "x"}]),
        "details text": {"status": "incomplete", "incomplete_details": "x", "output": 5},
    },
    "gemini-generate": {
        "nothing": {},
        "two candidates": {"candidates": GEMINI["candidates"] * 2},
        "candidate null": {"candidates": [None]},
        "parts text": candidate(content={"parts": "a"}),
        "args list": candidate(content={"parts": [{"functionCall": {"name": "f", "args": [1]}}]}),
        "no content": candidate(finishReason="STOP"),
        "feedback text": {"promptFeedback": "no"},
    },
}
CASES = {f"{name} {case}": (name, body) for name, cases in MALFORMED.items() for case, body in cases.items()}


@pytest.mark.parametrize(("name", "body"), CASES.values(), ids=CASES.keys())
def test_what_is_no_reply_of_the_wire_is_malformed(name, body):
    with pytest.raises(SeatFailure) as caught:
        read(name, body)
    assert caught.value.kind == "malformed"


def test_a_failed_response_with_a_rate_limit_is_a_rate_limit():
    with pytest.raises(SeatFailure) as caught:
        read("openai-responses", {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}})
    assert caught.value.kind == "rate_limit"
