"""Each fault as the bytes that a raw socket client sees."""

from __future__ import annotations

import email.utils
import json
import time

import pytest

from replaykit.controls import Fault, Schedule

from .conftest import chat_request

BODY = (
    b'{"id":"chatcmpl-%(id)s","object":"chat.completion","created":1790000000,"model":"m-1",'
    b'"system_fingerprint":"fp_control","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"I can help with that.","refusal":null},"logprobs":null,"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":6,"total_tokens":7}}'
)


@pytest.fixture
def under(case, raw, provider):
    """What a client sees when its first request meets a fault; also the well-formed body it would have seen."""

    def see(kind, options=None, data=None):
        case(Schedule({"learner": {1: Fault(kind, options or {})}}))
        received, end = raw(data)
        head, _, body = received.partition(b"\r\n\r\n")
        good = BODY % {b"id": provider.journal[0].nonce.encode()}
        return head, body, end, good

    return see


def head_of(length: int, nonce: str, more: bytes = b"", content_type: bytes = b"application/json") -> bytes:
    start = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\nx-request-id: req_%s%s" % (content_type, nonce.encode(), more)
    return start + b"\r\ncontent-length: %d" % length


def test_without_a_fault_the_reply_is_whole_and_the_connection_stays(case, raw, provider):
    case()
    received, end = raw()
    nonce = provider.journal[0].nonce
    good = BODY % {b"id": nonce.encode()}
    assert received == head_of(len(good), nonce) + b"\r\n\r\n" + good
    assert end == "open"


@pytest.mark.parametrize(
    ("kind", "options", "body", "claimed", "end"),
    [
        ("half_body", {}, lambda g: g[: len(g) // 2], 0, "closed"),
        ("half_body", {"then": "silence"}, lambda g: g[: len(g) // 2], 0, "open"),
        ("reset_mid_body", {}, lambda g: g[: len(g) // 2], 0, "reset"),
        ("close_after_headers", {}, lambda g: b"", 0, "closed"),
        ("wrong_length", {}, lambda g: g, 64, "closed"),
        ("wrong_length", {"by": -10}, lambda g: g, -10, "closed"),
        ("idle_close", {"after_s": 1}, lambda g: g, 0, "closed"),
        ("late", {"headers_s": 2, "body_s": 4}, lambda g: g, 0, "open"),
        ("dribble", {"for_s": 20}, lambda g: g, 0, "open"),
        ("invalid_utf8", {}, lambda g: b'{"\xff\xfe' + g[2:], 2, "open"),
        ("byte_order_mark", {}, lambda g: b"\xef\xbb\xbf" + g, 3, "open"),
    ],
)
def test_a_broken_body_is_exactly_this(under, provider, kind, options, body, claimed, end):
    head, seen, ended, good = under(kind, options)
    assert (seen, ended) == (body(good), end)
    assert head == head_of(len(good) + claimed, provider.journal[0].nonce)


@pytest.mark.parametrize(
    ("kind", "end"), [("reset_before_headers", "reset"), ("close_without_reply", "closed"), ("silence", "open")]
)
def test_nothing_is_written(under, provider, kind, end):
    head, body, ended, _ = under(kind)
    assert (head, body, ended) == (b"", b"", end)
    assert provider.journal[0].response == b""
    assert not provider.journal[0].fully_written


def test_chunks_have_no_end(under):
    head, body, end, good = under("unterminated_chunks")
    assert head.endswith(b"transfer-encoding: chunked")
    assert body == b"%x\r\n%s\r\n" % (len(good), good)
    assert end == "closed"


def test_a_cut_body_has_the_right_length_of_the_wrong_text(under, provider):
    head, body, _, good = under("cut_json", {"keep": 0.25})
    assert body == good[: len(good) // 4]
    assert head == head_of(len(body), provider.journal[0].nonce)


def test_an_empty_body_says_so(under, provider):
    head, body, _, _ = under("empty_body")
    assert (head, body) == (head_of(0, provider.journal[0].nonce), b"")


def test_the_gzip_lie_is_only_a_lie_of_the_header(under, provider):
    head, body, _, good = under("gzip_lie")
    assert body == good
    assert head == head_of(len(good), provider.journal[0].nonce, b"\r\ncontent-encoding: gzip")


@pytest.mark.parametrize(
    ("kind", "options", "content_type", "begins"),
    [
        ("html", {}, b"text/html; charset=utf-8", b"<!DOCTYPE html>"),
        ("event_stream", {}, b"text/event-stream", b'data: {"id"'),
        ("wrong_type", {"content_type": "image/png"}, b"image/png", b'{"id"'),
        ("raw", {"body": "[1]", "content_type": "text/x"}, b"text/x", b"[1]"),
    ],
)
def test_another_type_under_200(under, provider, kind, options, content_type, begins):
    head, body, _, _ = under(kind, options)
    assert head == head_of(len(body), provider.journal[0].nonce, content_type=content_type)
    assert body.startswith(begins)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529])
def test_a_status_comes_with_the_error_body_of_the_wire(under, status):
    head, body, end, _ = under("status", {"status": status})
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert str(status) in json.loads(body)["error"]["message"]
    assert end == "open"


def test_an_error_under_200_is_an_error_body_all_the_same(under):
    head, body, _, _ = under("error_under_200")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(body)["error"]["type"] == "server_error"


@pytest.mark.parametrize("value", ["2", "0", "3600", "soon, maybe"])
def test_retry_after_goes_out_as_it_is(under, value):
    head, _, _, _ = under("status", {"status": 429, "retry_after": value})
    assert f"\r\nretry-after: {value}\r\n".encode() in head


def test_retry_after_as_a_date_lies_that_far_ahead(under):
    before = time.time()
    head, _, _, _ = under("status", {"status": 429, "retry_after_date_s": 2})
    line = next(v for v in head.decode().split("\r\n") if v.startswith("retry-after: "))
    at = email.utils.parsedate_to_datetime(line.removeprefix("retry-after: ")).timestamp()
    assert before + 2 <= at <= time.time() + 3.1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(("target", "origin"), [("self", ""), ("http://127.0.0.1:9/", "http://127.0.0.1:9")])
def test_a_redirect_keeps_the_path(under, status, target, origin):
    head, _, _, _ = under("redirect", {"status": status, "target": target})
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert f"\r\nlocation: {origin}/case/learner/v1/chat/completions\r\n".encode() in head


@pytest.mark.parametrize("place", ["content", "nested"])
def test_the_credential_is_echoed_in_the_reply(under, place):
    data = chat_request(headers="Authorization: Bearer sk-canary\r\n")
    _, body, _, _ = under("echo", {"place": place}, data)
    assert "sk-canary" in json.loads(body)["choices"][0]["message"]["content"]


def test_the_credential_is_echoed_in_an_error_and_in_a_header(under):
    data = chat_request(headers="Authorization: Bearer sk-canary\r\n")
    head, body, _, _ = under("echo_error", {}, data)
    assert head.startswith(b"HTTP/1.1 401 ")
    assert b"x-error-json: eyJ" in head
    assert "sk-canary" in json.loads(body)["error"]["message"]


def test_a_patch_changes_the_due_reply_only_where_it_says(under):
    _, body, _, _ = under("patch", {"patch": {"finish_reason": "length", "served_model": "other"}})
    reply = json.loads(body)
    assert (reply["choices"][0]["finish_reason"], reply["model"]) == ("length", "other")
    assert reply["choices"][0]["message"]["content"] == "I can help with that."


@pytest.mark.parametrize(
    ("reply", "choices"),
    [
        ({"empty": True}, []),
        ({"content": "a", "alternatives": [{"content": "b"}]}, ["a", "b"]),
        ({"content": None}, [None]),
        ({"content": ""}, [""]),
        ({"content": " \n"}, [" \n"]),
    ],
)
def test_a_reply_of_the_schedule_replaces_the_due_one(under, reply, choices):
    _, body, _, _ = under("reply", {"reply": reply})
    assert [c["message"]["content"] for c in json.loads(body)["choices"]] == choices


@pytest.mark.parametrize(
    ("omit", "absent"), [("model", '"model"'), ("id", '"id"'), ("usage", '"usage"'), ("finish", "finish_")]
)
def test_a_member_can_be_left_out(under, omit, absent):
    _, body, _, _ = under("patch", {"patch": {"omit": [omit]}})
    assert absent not in body.decode()


def test_late_headers_and_body_keep_their_times(case, raw, provider):
    case(Schedule({"learner": {1: Fault("late", {"headers_s": 10, "body_s": 20})}}))
    raw()
    times = provider.journal[0].times
    assert times["response_first"] - times["request"] >= 0.1
    assert times["response_last"] - times["request"] >= 0.2
    assert times["response_last"] - times["request"] < 2


def test_the_next_request_on_the_connection_is_healthy_again(case, raw, provider):
    case(Schedule({"learner": {1: Fault("status", {"status": 500})}}))
    received, _ = raw(chat_request() + chat_request())
    assert [e.status for e in provider.journal] == [500, 200]
    assert received.count(b"HTTP/1.1 ") == 2
