"""The provider's own account: raw bytes, times, who left, and a file without credentials."""

from __future__ import annotations

import base64
import json
import socket
import time

import pytest

from replaykit.controls import ControlProvider, Fault, Schedule, one_exchange
from replaykit.controls.journal import mask

from .conftest import chat_request


def wait_for(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen within five seconds")


def test_the_journal_holds_the_raw_bytes_of_both_directions(case, raw, provider):
    case()
    sent = chat_request(headers="X-Odd:  Value \r\n")
    received, _ = raw(sent)
    (exchange,) = provider.journal
    assert (exchange.request, exchange.response) == (sent, received)
    assert (exchange.case, exchange.seat, exchange.wire, exchange.ordinal) == ("case", "learner", "openai-chat", 1)
    assert (exchange.outcome, exchange.fully_written, exchange.status) == ("answered", True, 200)
    assert exchange.identity == "control:one-exchange/learner/scripted-learner"


def test_times_never_run_backwards(case, raw, provider):
    case()
    raw()
    times = provider.journal[0].times
    order = [times[k] for k in ("first_byte", "request", "response_first", "response_last", "end")]
    assert order == sorted(order)
    assert provider.connections[0].opened_s <= order[0]


def test_a_client_that_has_its_reply_finds_it_entered(case, provider):
    case()
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as client:
        for number in range(1, 51):
            client.sendall(chat_request())
            while b"total_tokens" not in client.recv(65536):
                pass
            latest = provider.journal[-1]
            assert (latest.number, latest.fully_written, latest.outcome) == (number, True, "answered")


def test_a_request_that_breaks_off_keeps_the_bytes_that_came(case, provider):
    case()
    with socket.create_connection(("127.0.0.1", provider.port)) as client:
        client.sendall(chat_request()[:-7])
    wait_for(lambda: provider.journal and provider.settle(0))
    (exchange,) = provider.journal
    assert exchange.request == chat_request()[:-7]
    assert (exchange.request_complete, exchange.ordinal, exchange.outcome) == (False, None, "client_left")
    assert provider.request_count() == 0


def test_the_time_at_which_a_waiting_client_leaves_is_kept(case, provider):
    case(Schedule({"learner": {1: Fault("silence")}}))
    with socket.create_connection(("127.0.0.1", provider.port)) as client:
        client.sendall(chat_request())
        wait_for(provider.request_count)
        time.sleep(0.2)
        left = time.monotonic()
    assert provider.settle(2)
    (exchange,) = provider.journal
    assert exchange.outcome == "client_left"
    assert exchange.times["end"] - left < 0.5
    assert exchange.times["end"] - exchange.times["request"] >= 0.2


def test_a_client_that_resets_in_the_middle_has_left(case, provider):
    case(Schedule({"learner": {1: Fault("dribble", {"for_s": 3000})}}))
    client = socket.create_connection(("127.0.0.1", provider.port))
    client.sendall(chat_request())
    client.recv(10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.close()
    assert provider.settle(2)
    assert provider.journal[0].outcome == "client_left"
    assert not provider.journal[0].fully_written


def test_who_closed_a_connection_is_kept(case, raw, provider):
    case(Schedule({"learner": {1: Fault("idle_close")}}))
    raw()
    with socket.create_connection(("127.0.0.1", provider.port)):
        pass
    wait_for(lambda: all(c.closed_by for c in provider.connections) and len(provider.connections) == 2)
    assert [c.closed_by for c in provider.connections] == ["provider", "client"]


def test_the_fault_of_an_exchange_is_entered_with_its_options(case, raw, provider):
    case(Schedule({"learner": {1: Fault("half_body", {"keep": 0.1})}}))
    raw()
    (exchange,) = provider.journal
    assert exchange.fault == {"kind": "half_body", "options": {"keep": 0.1, "then": "close"}}
    assert exchange.outcome == "closed"


def test_the_file_has_a_line_for_each_exchange_and_no_credential(tmp_path):
    path = tmp_path / "journal.jsonl"
    with ControlProvider(journal_path=path, secrets=["sk-canary"], keep_bytes=False) as provider:
        provider.add_case("case", one_exchange(), Schedule({"learner": {1: Fault("echo")}}))
        with socket.create_connection(("127.0.0.1", provider.port)) as client:
            client.sendall(chat_request(headers="Authorization: Bearer sk-canary\r\n"))
            client.recv(65536)
    (line,) = map(json.loads, path.read_text("utf-8").splitlines())
    assert b"Authorization: [masked]\r\n" in base64.b64decode(line["request"])
    assert b"You sent [masked] to me." in base64.b64decode(line["response"])
    assert provider.journal[0].request == b""


@pytest.mark.parametrize(
    "header",
    ["authorization: Bearer k-1", "X-Api-Key: k-1", "x-goog-api-key:k-1", "Cookie: k-1", "Proxy-Authorization: k-1"],
)
def test_credential_headers_are_masked_whatever_their_value(header):
    data = f"POST / HTTP/1.1\r\nhost: x\r\n{header}\r\naccept: y\r\n\r\nx-api-key: body".encode()
    masked = mask(data)
    assert b"k-1" not in masked
    assert masked.endswith(b"[masked]\r\naccept: y\r\n\r\nx-api-key: body")
