"""The control provider: addresses, ordinals, nonces, threads, and a clean stop."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from replaykit.controls import ControlProvider, Fault, Schedule, one_exchange, scripted
from replaykit.controls.answering import nonce
from replaykit.errors import UsageError

from .conftest import CHAT, chat_request

HISTORY = [{"role": "assistant", "content": "Hi! How can I help you today?"}, *CHAT["messages"]]


def content(reply: dict) -> str:
    return reply["choices"][0]["message"]["content"]


def test_each_seat_has_its_own_control(case, post):
    case()
    said = {seat: content(post(f"/case/{seat}/v1/chat/completions", CHAT)[1]) for seat in one_exchange()}
    assert said == {
        "learner": "I can help with that.",
        "customer": "Hello, I need help with a request.",
        "judge": '{"results": []}',
    }


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/case",
        "/case/learner",
        "/case/learner/v1/files",
        "/other/learner/v1/chat/completions",
        "/case/x/v1/responses",
    ],
)
def test_another_address_is_not_found_and_nobody_is_counted(case, post, provider, path):
    case()
    assert post(path, CHAT)[0] == 404
    assert provider.request_count() == 0


@pytest.mark.parametrize("prefix", ["", "/v1", "/v1beta"])
def test_the_version_in_the_path_may_be_missing(case, post, prefix):
    case()
    assert post(f"/case/learner{prefix}/chat/completions", CHAT)[0] == 200


def test_a_redundant_tool_name_is_refused_by_a_strict_case_only(case, post):
    call = {"id": "a", "type": "function", "name": "t", "function": {"name": "t", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "a", "content": ""}
    own = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"model": "m", "messages": [*CHAT["messages"], own, result]}
    case(name="strict")
    case(name="lenient", strict=False)
    assert post("/strict/learner/v1/chat/completions", body)[0] == 400
    assert post("/lenient/learner/v1/chat/completions", body)[0] == 200


def test_the_reply_carries_the_nonce_of_case_seat_and_ordinal(case, post):
    case()
    post("/case/learner/v1/chat/completions", CHAT)
    _, second = post("/case/learner/v1/chat/completions", CHAT)
    assert second["id"] == "chatcmpl-" + nonce(b"fixed", "case", "learner", 2)


def test_the_judge_carries_the_nonce_beside_its_results_if_asked(case, post):
    case(identities=one_exchange(nonce_member="control"))
    _, reply = post("/case/judge/v1/chat/completions", CHAT)
    assert json.loads(content(reply)) == {"results": [], "control": nonce(b"fixed", "case", "judge", 1)}


def test_a_prompt_beyond_the_context_gets_the_words_of_the_wire(case, post, provider):
    case(context_tokens=2)
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 12}]}
    status, reply = post("/case/learner/v1/chat/completions", body)
    assert (status, reply["error"]["code"]) == (400, "context_length_exceeded")
    assert "3 tokens" in provider.journal[0].problem


@pytest.mark.parametrize(("key", "status"), [("right", 200), ("wrong", 401)])
def test_a_case_may_want_a_key(case, post, key, status):
    case(key="right")
    assert post("/case/learner/v1/chat/completions", CHAT, f"authorization: Bearer {key}\r\n")[0] == status


def test_ordinals_are_counted_by_case_and_seat(case, post, provider):
    case(Schedule({"learner": {2: Fault("status", {"status": 503})}}))
    case(name="other")
    paths = ["/case/learner", "/case/judge", "/other/learner", "/case/learner"]
    assert [post(p + "/v1/chat/completions", CHAT)[0] for p in paths] == [200, 200, 200, 503]
    assert (provider.request_count("case"), provider.request_count(seat="learner")) == (3, 3)


def test_faults_that_nobody_met_are_told(case, post, provider):
    fault = Fault("status", {"status": 500})
    case(Schedule({"learner": {1: fault, 3: fault}, "judge": {1: fault}}))
    assert provider.unmet("case") == [("learner", 1), ("learner", 3), ("judge", 1)]
    post("/case/judge/v1/responses", {})
    post("/case/learner/v1/responses", {})
    assert provider.unmet("case") == [("learner", 3)]


def test_a_wrong_method_is_answered_in_the_form_of_the_wire(case, raw):
    case()
    received, _ = raw(b"GET /case/learner/v1/responses HTTP/1.1\r\nhost: x\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST / HTTP/1.1\r\n: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
        (b"x" * 70_000, b"431"),
    ],
)
def test_what_is_not_http_is_turned_away(provider, raw, data, status):
    received, end = raw(data)
    assert received.startswith(b"HTTP/1.1 " + status)
    assert end == "closed" or data.startswith(b"x")


def test_a_chunked_request_is_read(case, raw):
    case()
    body = json.dumps(CHAT).encode()
    chunks = b"%x\r\n%s\r\n%x;note=1\r\n%s\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    received, _ = raw(b"POST /case/learner/v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + chunks)
    assert b"I can help with that." in received


def test_one_connection_carries_many_requests(case, provider):
    case()
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5)
    for _ in range(3):
        connection.request("POST", "/case/learner/v1/chat/completions", json.dumps(CHAT))
        assert connection.getresponse().read()
    connection.close()
    assert {e.connection for e in provider.journal} == {1}
    assert len(provider.journal) == 3


def test_eight_threads_at_once_get_their_own_replies(provider):
    names = [f"case-{i}" for i in range(8)]
    for name in names:
        provider.add_case(name, {"learner": scripted("learner", [{"content": f"{name} {turn}"} for turn in range(5)])})

    def talk(name):
        history, heard = list(HISTORY), []
        connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
        for _ in range(5):
            body = json.dumps({"model": "m", "messages": history})
            connection.request("POST", f"/{name}/learner/v1/chat/completions", body)
            heard.append(content(json.loads(connection.getresponse().read())))
            history += [{"role": "assistant", "content": heard[-1]}, {"role": "user", "content": "go on"}]
        connection.close()
        return heard

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, names)) == [[f"{name} {turn}" for turn in range(5)] for name in names]


@pytest.mark.parametrize("kind", ["silence", "dribble", "late"])
def test_the_stop_ends_blocked_connections_at_once(kind):
    options = {"headers_s": 60, "body_s": 70} if kind == "late" else {}
    with ControlProvider() as provider:
        provider.add_case("case", one_exchange(), Schedule(always={"learner": Fault(kind, options)}))
        clients = [socket.create_connection(("127.0.0.1", provider.port)) for _ in range(3)]
        for client in clients:
            client.sendall(chat_request())
        while provider.request_count() < 3:
            time.sleep(0.005)
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert [e.outcome for e in provider.journal] == ["stopped"] * 3
    for client in clients:
        client.close()


def test_the_stop_ends_a_connection_whose_client_does_not_read():
    with ControlProvider() as provider:
        provider.add_case("case", {"learner": scripted("learner", [{"content": "x" * 20_000_000}])})
        client = socket.create_connection(("127.0.0.1", provider.port))
        client.sendall(chat_request())
        while provider.request_count() < 1:
            time.sleep(0.005)
        time.sleep(0.2)
    assert not provider.journal[0].fully_written
    client.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files through /proc")
def test_nothing_stays_open_after_the_exit():
    before = len(os.listdir("/proc/self/fd"))
    with ControlProvider() as provider:
        provider.add_case("case", one_exchange())
        with socket.create_connection(("127.0.0.1", provider.port)) as client:
            client.sendall(chat_request())
            client.recv(1)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [t for t in threading.enumerate() if t.name.startswith("control")]


def test_after_the_exit_nobody_listens():
    with ControlProvider() as provider:
        port = provider.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with pytest.raises(UsageError, match="does not serve"):
        _ = provider.port


def test_a_taken_port_is_named(provider):
    with pytest.raises(UsageError, match=str(provider.port)), ControlProvider(port=provider.port):
        pass


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ä"])
def test_a_name_that_no_url_can_hold_is_refused(provider, name):
    with pytest.raises(UsageError, match="cannot name a case"):
        provider.add_case(name, one_exchange())


def test_a_name_is_given_once(case):
    case()
    with pytest.raises(UsageError, match="registered already"):
        case()


def test_a_control_sits_at_its_own_seat_only(provider):
    with pytest.raises(UsageError, match="cannot sit at the seat 'judge'"):
        provider.add_case("case", {"judge": one_exchange()["learner"]})


@pytest.mark.parametrize(("seat", "wire"), [("referee", "openai-chat"), ("judge", "smoke-signals")])
def test_there_is_no_url_for_an_unknown_seat_or_wire(provider, seat, wire):
    with pytest.raises(UsageError, match=f"{seat}|{wire}"):
        provider.base_url("case", seat, wire)
