"""From status and error body to the kind of a failure."""

from __future__ import annotations

import json

import pytest

from replaykit.transports.failures import error_under_200, read_error, retry_after, status_failure

from .examples import encoded

OVERFLOWS = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": "too big",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    "OpenAI Responses": (
        400,
        {"error": {"message": "Your input exceeds the context window of this model.", "code": None}},
    ),
    "vLLM flat": (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
    ),
    "vLLM decoder": (
        400,
        {"error": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 4096."}},
    ),
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"},
        },
    ),
    "Anthropic with output": (
        400,
        {"type": "error", "error": {"message": "input length and `max_tokens` exceed context limit: 199000"}},
    ),
    "Gemini": (
        400,
        {
            "error": {
                "code": 400,
                "status": "INVALID_ARGUMENT",
                "message": "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
            }
        },
    ),
    "Gemini in a list": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (4) exceeds the maximum number of tokens allowed (3).",
                }
            }
        ],
    ),
    "Mistral": (
        422,
        {
            "object": "error",
            "message": "Prompt contains 9 tokens and 0 draft tokens, too large for model with 8 maximum context length",
        },
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (9 tokens) exceeds the available context size (8 tokens)",
            }
        },
    ),
    "LM Studio": (400, {"error": "Trying to keep the first 9 tokens when context the overflows."}),
    "Ollama": (500, {"error": "input length exceeds maximum context length"}),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
    "xAI": (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    "Cohere": (400, {"id": "1", "message": "too many tokens: total number of tokens in the prompt cannot exceed 8"}),
    "SGLang": (400, {"message": "Requested token count exceeds the model's maximum context length of 202752 tokens."}),
    "GitHub": (413, {"error": {"code": "tokens_limit_reached", "message": "Request body too large"}}),
    "MiniMax": (400, {"error": {"message": "invalid params, context window exceeds limit (2013)"}}),
}


@pytest.mark.parametrize(("status", "body"), OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_a_context_overflow_is_known_in_every_spelling(status, body):
    assert status_failure(status, {}, encoded(body)).kind == "context_overflow"


KINDS = {
    "rate limit that speaks of tokens": (
        429,
        {"error": {"message": "Too many tokens: maximum context length is shared"}},
        "rate_limit",
    ),
    "rate limit code with 400": (
        400,
        {"error": {"code": "rate_limit_exceeded", "message": "reduce the length of the messages"}},
        "status",
    ),
    "quota": (429, {"error": {"code": "insufficient_quota"}}, "rate_limit"),
    "key": (401, {"error": {"code": "invalid_api_key"}}, "auth"),
    "permission": (403, None, "auth"),
    "Gemini key": (
        400,
        {"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}},
        "auth",
    ),
    "unavailable": (503, "<html>", "overloaded"),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded"),
    "OpenAI temperature": (400, {"error": {"param": "temperature", "code": "unsupported_value"}}, "capability"),
    "OpenAI max_tokens": (
        400,
        {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model."}},
        "capability",
    ),
    "Anthropic deprecated": (400, {"error": {"message": "temperature is deprecated for this model"}}, "capability"),
    "Anthropic extra": (400, {"error": {"message": "temperature: Extra inputs are not permitted"}}, "capability"),
    "Anthropic both": (
        400,
        {"error": {"message": "temperature and top_p cannot both be specified for this model."}},
        "capability",
    ),
    "Mistral extra": (
        422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        "capability",
    ),
    "plain 400": (400, {"error": {"message": "bad"}}, "status"),
    "not found": (404, b"", "status"),
    "server": (500, {"error": {"message": "oops"}}, "status"),
    "gateway": (502, "<html>", "status"),
    "redirect": (307, b"", "redirect_refused"),
}


@pytest.mark.parametrize(("status", "body", "kind"), KINDS.values(), ids=KINDS.keys())
def test_a_status_has_one_kind(status, body, kind):
    failure = status_failure(status, {}, body if isinstance(body, bytes) else encoded(body))
    assert (failure.kind, failure.status) == (kind, status)


@pytest.mark.parametrize("status", [200, 201, 299])
def test_a_success_is_no_failure(status):
    assert status_failure(status, {}, b"") is None


UNDER_200 = {
    "rate limit": ({"error": {"message": "upstream busy", "code": 429}}, "rate_limit"),
    "overload": ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "overloaded"),
    "overflow": ({"error": {"code": "context_length_exceeded"}}, "context_overflow"),
    "key": ({"error": {"code": 401}}, "auth"),
    "anything else": ({"error": {"message": "no"}}, "malformed"),
}


@pytest.mark.parametrize(("body", "kind"), UNDER_200.values(), ids=UNDER_200.keys())
def test_an_error_under_200_has_the_kind_of_its_code(body, kind):
    assert error_under_200(read_error(body)).kind == kind


WAITS = {
    "seconds": ({"Retry-After": "2"}, 2.0),
    "fraction": ({"retry-after": ["1.5"]}, 1.5),
    "milliseconds first": ({"retry-after": "9", "Retry-After-Ms": "250"}, 0.25),
    "date": ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
    "date in the past": ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    "zero": ({"retry-after": "0"}, 0.0),
    "negative": ({"retry-after": "-5"}, 0.0),
    "garbage": ({"retry-after": "soon"}, None),
    "not finite": ({"retry-after": "inf"}, None),
    "absent": ({}, None),
}


@pytest.mark.parametrize(("headers", "seconds"), WAITS.values(), ids=WAITS.keys())
def test_retry_after_is_read_in_every_form(headers, seconds):
    assert retry_after(headers, now_s=100.0) == seconds


def test_retry_info_of_gemini_is_read_from_the_body():
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]
    failure = status_failure(429, {}, encoded({"error": {"code": 429, "message": "slow", "details": details}}))
    assert failure.retry_after_s == 34.07


HOSTILE = [
    None,
    [],
    [None],
    [[]],
    7,
    "text",
    {"error": []},
    {"error": {"message": 5, "code": {}, "details": [7]}},
    {"detail": {"a": 1}},
]


@pytest.mark.parametrize("body", HOSTILE, ids=repr)
def test_a_strange_error_body_is_still_a_failure(body):
    assert status_failure(500, {}, encoded(body)).kind == "status"


def test_the_message_is_one_line_of_bounded_length():
    text = "a\r\n\x1b[31mred\u202e" + "x" * 5000
    message = status_failure(500, {}, json.dumps({"error": {"message": text}}).encode()).message
    assert len(message) < 320 and message.isprintable()
