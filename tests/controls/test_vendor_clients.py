"""The vendors' own clients as referees: they parse the replies and errors of the provider over loopback."""

from __future__ import annotations

import json
import warnings

import pytest

from replaykit.controls import Action, Fault, Scenario, Schedule, reference, scripted

SCENARIO = Scenario((Action("find_user", {"zip": "19122", "n": 1.5}),), ("42",))
LEARNER = reference(SCENARIO)
TOOL = {"type": "object", "properties": {"zip": {"type": "string"}}}


@pytest.fixture
def openai(provider):
    sdk = pytest.importorskip("openai", reason="the referees extra is not installed")
    with sdk.OpenAI(api_key="k", base_url=provider.base_url("case", "learner"), max_retries=0) as client:
        client.errors = sdk
        yield client


@pytest.fixture
def anthropic(provider):
    sdk = pytest.importorskip("anthropic", reason="the referees extra is not installed")
    url = provider.base_url("case", "learner", "anthropic-messages")
    with sdk.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        client.errors = sdk
        yield client


@pytest.fixture
def gemini(provider):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the package warns of at import is not ours
        genai = pytest.importorskip("google.genai", reason="the referees extra is not installed")
        errors = pytest.importorskip("google.genai.errors")
    url = provider.base_url("case", "learner", "gemini-generate")
    client = genai.Client(api_key="k", http_options={"base_url": url})
    client.errors = errors
    yield client
    client.close()


def chat(client, *history):
    messages = [{"role": "user", "content": "Hi"}, *history]
    tools = [{"type": "function", "function": {"name": "find_user", "parameters": TOOL}}]
    return client.chat.completions.create(model="m-1", messages=messages, tools=tools)


def respond(client, *history):
    items = [{"role": "user", "content": "Hi"}, *history]
    tools = [{"type": "function", "name": "find_user", "parameters": TOOL, "strict": False}]
    return client.responses.create(model="m-1", input=items, tools=tools, store=False)


def message(client, *history):
    messages = [{"role": "user", "content": "Hi"}, *history]
    tools = [{"name": "find_user", "input_schema": TOOL}]
    return client.messages.create(model="m-1", max_tokens=64, messages=messages, tools=tools)


def generate(client, *history):
    declaration = {"name": "find_user", "description": "d", "parameters_json_schema": TOOL}
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, *history]
    config = {"tools": [{"function_declarations": [declaration]}], "temperature": 0.0, "seed": 7}
    return client.models.generate_content(model="m-1", contents=contents, config=config)


def test_the_openai_client_plays_a_chat_episode(case, openai):
    case(identities=LEARNER)
    first = chat(openai).choices[0]
    call = first.message.tool_calls[0]
    assert (first.finish_reason, call.function.arguments) == ("tool_calls", '{"zip": "19122", "n": 1.5}')
    own = first.message.model_dump(include={"role", "content", "tool_calls"})
    second = chat(openai, own, {"role": "tool", "tool_call_id": call.id, "content": "{}"})
    assert second.choices[0].message.content == "Here is the outcome: 42"
    assert second.usage.total_tokens == second.usage.prompt_tokens + second.usage.completion_tokens


def test_the_openai_client_plays_a_responses_episode(case, openai):
    case(identities=LEARNER)
    call = respond(openai).output[0]
    assert (call.type, call.name) == ("function_call", "find_user")
    assert json.loads(call.arguments) == {"zip": "19122", "n": 1.5}
    own = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    second = respond(openai, own, {"type": "function_call_output", "call_id": call.call_id, "output": "{}"})
    assert (second.output_text, second.status) == ("Here is the outcome: 42", "completed")


def test_the_anthropic_client_plays_an_episode(case, anthropic):
    case(identities=LEARNER)
    first = message(anthropic)
    call = first.content[0]
    assert (first.stop_reason, call.input) == ("tool_use", {"zip": "19122", "n": 1.5})
    use = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
    own = {"role": "assistant", "content": [use]}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "{}"}
    second = message(anthropic, own, {"role": "user", "content": [result]})
    assert (second.content[0].text, second.stop_reason) == ("Here is the outcome: 42", "end_turn")


def test_the_gemini_client_plays_an_episode(case, gemini):
    case(identities=LEARNER)
    first = generate(gemini)
    call = first.function_calls[0]
    assert (call.name, call.args) == ("find_user", {"zip": "19122", "n": 1.5})
    response = {"function_response": {"id": call.id, "name": call.name, "response": {"output": "{}"}}}
    second = generate(gemini, first.candidates[0].content, {"role": "user", "parts": [response]})
    assert (second.text, second.model_version) == ("Here is the outcome: 42", "m-1")


CLIENTS = {"openai": (chat, respond), "anthropic": (message,), "gemini": (generate,)}
ASKS = [pytest.param(sdk, ask, id=ask.__name__) for sdk, asks in CLIENTS.items() for ask in asks]


def status_of(sdk, error):
    return error.code if sdk == "gemini" else error.status_code


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503, 529])
@pytest.mark.parametrize(("sdk", "ask"), ASKS)
def test_every_client_reads_the_error_body(case, request, sdk, ask, status):
    case(Schedule({"learner": {1: Fault("status", {"status": status})}}), identities=LEARNER)
    client = request.getfixturevalue(sdk)
    wanted = client.errors.APIError if sdk == "gemini" else client.errors.APIStatusError
    with pytest.raises(wanted) as caught:
        ask(client)
    assert status_of(sdk, caught.value) == status
    assert f"answers {status}" in str(caught.value)


@pytest.mark.parametrize(("sdk", "ask"), ASKS)
def test_every_client_reads_that_a_prompt_does_not_fit(case, request, provider, sdk, ask):
    case(Schedule({"learner": {1: Fault("overflow")}}), identities=LEARNER)
    client = request.getfixturevalue(sdk)
    wanted = client.errors.APIError if sdk == "gemini" else client.errors.APIStatusError
    with pytest.raises(wanted) as caught:
        ask(client)
    assert status_of(sdk, caught.value) == 400


@pytest.mark.parametrize(
    ("sdk", "ask", "finish"),
    [
        ("openai", chat, lambda r: r.choices[0].finish_reason),
        ("openai", respond, lambda r: r.incomplete_details.reason),
        ("anthropic", message, lambda r: r.stop_reason),
        ("gemini", generate, lambda r: r.candidates[0].finish_reason.value),
    ],
)
def test_a_cut_reply_says_so_in_the_words_of_the_wire(case, request, sdk, ask, finish):
    case(identities={"learner": scripted("learner", [{"content": "half", "finish_reason": "length"}])})
    words = {chat: "length", respond: "max_output_tokens", message: "max_tokens", generate: "MAX_TOKENS"}
    assert finish(ask(request.getfixturevalue(sdk))) == words[ask]


@pytest.mark.parametrize(
    ("sdk", "ask", "sign", "expected"),
    [
        ("openai", chat, lambda r: r.choices[0].message.refusal, "I must not."),
        ("openai", respond, lambda r: r.output[0].content[0].refusal, "I must not."),
        ("anthropic", message, lambda r: r.stop_reason, "refusal"),
        ("gemini", generate, lambda r: r.candidates[0].finish_reason.value, "PROHIBITED_CONTENT"),
    ],
)
def test_a_refusal_is_told_apart(case, request, sdk, ask, sign, expected):
    case(identities={"learner": scripted("learner", [{"refusal": "I must not."}])})
    assert sign(ask(request.getfixturevalue(sdk))) == expected


@pytest.mark.parametrize(
    ("sdk", "ask", "calls"),
    [
        ("openai", chat, lambda r: [(c.id, c.function.name) for c in r.choices[0].message.tool_calls]),
        ("openai", respond, lambda r: [(c.call_id, c.name) for c in r.output[1:]]),
        ("anthropic", message, lambda r: [(c.id, c.name) for c in r.content[1:]]),
        ("gemini", generate, lambda r: [(c.id, c.name) for c in r.function_calls]),
    ],
)
def test_text_and_two_calls_keep_their_order(case, request, sdk, ask, calls):
    two = [{"id": f"c{i}", "name": "find_user", "arguments": "{}"} for i in (1, 2)]
    case(identities={"learner": scripted("learner", [{"content": "On it.", "tool_calls": two}])})
    assert calls(ask(request.getfixturevalue(sdk))) == [("c1", "find_user"), ("c2", "find_user")]
