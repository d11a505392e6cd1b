"""The sender: one attempt, one deadline, one record."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from replaykit.seats import SeatFailure, SeatReply
from replaykit.transports import bodies
from replaykit.transports.sender import Sender

from .loopback import Loopback, dribble, response, silence, then_close, then_reset

OK = response(b'{"ok":1}')
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def read(status: int, headers: dict, body: bytes) -> SeatReply:
    bodies.reply_object(status, headers, body)
    return SeatReply(content=body.decode("latin-1"))


def post(sender, server, exchanges, body=b"{}", deadline_s=2.0, **headers):
    return sender.post(
        server.url, {"content-type": "application/json", **headers}, body, read, exchanges.append, deadline_s=deadline_s
    )


def failure(sender, server, exchanges, **arguments) -> SeatFailure:
    with pytest.raises(SeatFailure) as caught:
        post(sender, server, exchanges, **arguments)
    assert exchanges[-1].failure == caught.value.to_dict()
    return caught.value


def test_records_exactly_what_was_sent_and_received(sender, exchanges):
    with Loopback([OK]) as server:
        reply = post(sender, server, exchanges, body=b'{"a":1}', authorization="Bearer k")
    (exchange,) = exchanges
    assert reply.content == '{"ok":1}'
    assert exchange.request["body"] == server.seen[0].body == b'{"a":1}'
    sent = {line.split(b":")[0].decode() for line in server.seen[0].head.split(b"\r\n")[1:]}
    assert sent == set(exchange.request["headers"])
    assert exchange.response == {
        "status": {"code": 200, "message": "OK"},
        "headers": {"content-type": ["application/json"], "content-length": ["8"]},
        "body": b'{"ok":1}',
    }
    assert exchange.failure is None and exchange.attempt == 1


def test_measures_connecting_only_when_it_connects(sender, exchanges):
    with Loopback([OK]) as server:
        post(sender, server, exchanges)
        post(sender, server, exchanges)
    assert set(exchanges[0].timing) == {"connect_s", "sent_s", "headers_s", "total_s"}
    assert set(exchanges[1].timing) == {"sent_s", "headers_s", "total_s"}


def test_keeps_repeated_response_headers(sender, exchanges):
    with Loopback([OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n")]) as server:
        post(sender, server, exchanges)
        post(sender, server, exchanges)
    assert exchanges[0].response["headers"]["Set-Cookie"] == ["a=1", "b=2"]
    assert server.seen[1].header("cookie") is None


def test_adds_no_header_of_its_own(sender, exchanges):
    with Loopback([OK]) as server:
        post(sender, server, exchanges)
    names = {line.split(b":")[0].lower() for line in server.seen[0].head.split(b"\r\n")[1:]}
    assert names == {b"host", b"content-type", b"content-length"}


SLOW = {
    "silence before the response": silence(1.5),
    "one byte at a time in the head": dribble(OK, 0.05),
    "one byte at a time in the body": dribble(b"x" * 1000, 0.05, HEAD),
    "one chunk at a time without end": dribble(b"1\r\nx\r\n" * 300, 0.02, CHUNKED),
    "interim responses without end": dribble(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, 0.01),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW.keys())
def test_the_deadline_holds_for_the_whole_request(sender, exchanges, answer):
    with Loopback([answer]) as server:
        started = time.monotonic()
        error = failure(sender, server, exchanges, deadline_s=0.4)
        assert 0.35 < time.monotonic() - started < 0.9
    assert error.kind == "deadline"
    assert "0.4 seconds" in error.message


def test_a_peer_that_does_not_read_is_cut_at_the_deadline(sender, exchanges):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(SeatFailure, match="ran out while sending") as caught:
            sender.post(url, {}, b"x" * 50_000_000, read, exchanges.append, deadline_s=0.4)
    assert caught.value.kind == "deadline"
    assert time.monotonic() - started < 1.0


def test_a_full_backlog_is_cut_at_the_deadline(sender, exchanges):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        fillers = [_start_connecting(listener.getsockname()) for _ in range(4)]
        started = time.monotonic()
        with pytest.raises(SeatFailure) as caught:
            sender.post(
                f"http://127.0.0.1:{listener.getsockname()[1]}", {}, b"{}", read, exchanges.append, deadline_s=0.4
            )
        assert time.monotonic() - started < 0.9
        for filler in fillers:
            filler.close()
    assert caught.value.kind == "deadline" and exchanges[0].response is None


def _start_connecting(address) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address)
    return sock


BROKEN = {
    "reset before the head": then_reset(b""),
    "closed before the head": b"",
    "half a head": then_close(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "reset in the body": then_reset(HEAD + b"{"),
    "length larger than the body": then_close(response(b'{"ok":1}', length=99)),
    "chunked without end": then_close(CHUNKED + b'8\r\n{"ok":1}\r\n'),
    "bad chunk size": CHUNKED + b"zz\r\n",
    "not HTTP": b"SSH-2.0-x\r\n\r\n",
    "two lengths": OK.replace(b"\r\n\r\n", b"\r\ncontent-length: 7\r\n\r\n"),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_exchange_is_no_reply_and_the_next_request_works(sender, exchanges, answer):
    with Loopback([answer, OK]) as server:
        error = failure(sender, server, exchanges)
        assert error.kind == "unreachable"
        assert exchanges[0].response is None
        assert post(sender, server, exchanges).content == '{"ok":1}'
    assert len(server.seen) == 2 and len(exchanges) == 2


def test_the_part_that_arrived_is_kept(sender, exchanges):
    with Loopback([then_reset(HEAD + b'{"half":')]) as server:
        error = failure(sender, server, exchanges)
    assert exchanges[0].partial == b'{"half":'
    assert error.status == 200


def test_refused_connection_is_unreachable(sender, exchanges):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(SeatFailure, match="while connecting") as caught:
        sender.post(url, {}, b"{}", read, exchanges.append)
    assert caught.value.kind == "unreachable" and len(exchanges) == 1


def test_an_unknown_name_is_unreachable(sender, exchanges):
    with pytest.raises(SeatFailure, match="cannot be resolved") as caught:
        sender.post("http://nowhere.invalid/v1", {}, b"{}", read, exchanges.append)
    assert caught.value.kind == "unreachable" and len(exchanges) == 1


def test_a_resolver_that_hangs_is_cut_at_the_deadline(sender, exchanges, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: time.sleep(1.0))
    started = time.monotonic()
    with pytest.raises(SeatFailure) as caught:
        sender.post("http://slow.invalid/v1", {}, b"{}", read, exchanges.append, deadline_s=0.3)
    assert caught.value.kind == "deadline" and time.monotonic() - started < 0.7


def test_a_post_is_never_sent_again_when_the_peer_closes_after_reading_it(sender, exchanges):
    with Loopback([OK, b"", OK]) as server:
        post(sender, server, exchanges)
        error = failure(sender, server, exchanges)
    assert error.kind == "unreachable"
    assert len(server.seen) == 2


def test_an_idle_connection_closed_by_the_peer_is_replaced_without_a_failure(sender, exchanges):
    with Loopback([then_close(OK), OK]) as server:
        post(sender, server, exchanges)
        time.sleep(0.05)
        post(sender, server, exchanges)
    assert [s.connection for s in server.seen] == [1, 2]


def test_connections_are_used_again(sender, exchanges):
    with Loopback([OK]) as server:
        for _ in range(3):
            post(sender, server, exchanges)
    assert server.connections == 1


def test_no_request_starts_on_a_connection_that_is_too_old(exchanges):
    with Loopback([OK]) as server, Sender(max_connection_age_s=0.2) as sender:
        for _ in range(4):
            post(sender, server, exchanges)
            time.sleep(0.08)
    connections = [s.connection for s in server.seen]
    assert connections[0] == connections[1] == 1 and connections[-1] == 2


TRAILING = {
    "a second response": OK + response(b'{"stale":1}'),
    "bytes beyond the length": OK + b"garbage",
    "a response after the last chunk": CHUNKED + b'8\r\n{"ok":1}\r\n0\r\n\r\n' + response(b'{"stale":1}'),
}


@pytest.mark.parametrize("answer", TRAILING.values(), ids=TRAILING.keys())
def test_bytes_after_a_response_never_answer_the_next_request(sender, exchanges, answer):
    with Loopback([answer, response(b'{"fresh":1}')]) as server:
        assert post(sender, server, exchanges).content == '{"ok":1}'
        assert post(sender, server, exchanges).content == '{"fresh":1}'
    assert server.connections == 2


def test_a_clean_chunked_response_keeps_its_connection(sender, exchanges):
    answer = b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b'4;x=y\r\n{"ok\r\n4\r\n":1}\r\n0\r\n\r\n'
    with Loopback([answer]) as server:
        for _ in range(2):
            assert post(sender, server, exchanges).content == '{"ok":1}'
    assert server.connections == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "304 Not", "307 Temporary", "308 Permanent"])
def test_redirects_are_refused_and_the_key_goes_nowhere_else(sender, exchanges, status):
    with Loopback([OK]) as other, Loopback([response(b"", status, location=other.url)]) as server:
        error = failure(sender, server, exchanges, authorization="Bearer k")
        assert error.kind == "redirect_refused" and error.status == int(status[:3])
        assert len(server.seen) == 1 and other.connections == 0


@pytest.mark.parametrize("location", ["http://[bad", "\xff://x", "javascript:alert(1)", "", "http://h:999999/"])
def test_a_redirect_to_nowhere_is_still_a_redirect(sender, exchanges, location):
    with Loopback([response(b"", "302 Found", location=location)]) as server:
        assert failure(sender, server, exchanges).kind == "redirect_refused"


def test_proxy_variables_are_ignored(exchanges, monkeypatch):
    with Loopback([OK]) as tripwire, Loopback([OK]) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, tripwire.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with Sender() as sender:
            post(sender, server, exchanges)
        assert tripwire.connections == 0 and len(server.seen) == 1


def test_a_body_that_is_too_large_is_cut(exchanges):
    with Loopback([response(b"x" * 300_000)]) as server, Sender(max_response_bytes=100_000) as sender:
        error = failure(sender, server, exchanges)
    assert error.kind == "malformed" and "larger than 100000 bytes" in error.message
    assert len(exchanges[0].partial) < 300_000


def test_a_gzip_body_is_stored_raw_and_read_decoded(sender, exchanges):
    packed = gzip.compress(b'{"ok":1}')
    with Loopback([response(packed, content_encoding="gzip")]) as server:
        post(sender, server, exchanges)
    assert exchanges[0].response["body"] == packed


UNUSABLE = {
    "gzip label on plain text": response(b'{"ok":1}', content_encoding="gzip"),
    "an encoding nobody asked for": response(b'{"ok":1}', content_encoding="br"),
    "cut gzip": response(gzip.compress(b'{"ok":1}')[:-6], content_encoding="gzip"),
    "HTML": response(b"<html>busy</html>", content_type="text/html"),
    "event stream": response(b'data: {"ok":1}\n\n', content_type="text/event-stream"),
    "empty": response(b""),
    "invalid UTF-8": response(b'{"ok":"\xff"}'),
    "byte order mark": response(b'\xef\xbb\xbf{"ok":1}'),
    "cut JSON": response(b'{"ok":'),
    "NaN": response(b'{"ok":NaN}'),
    "two values": response(b'{"ok":1}{"ok":2}'),
    "a list": response(b"[1]"),
    "deep nesting": response(b"[" * 100_000),
    "an error object": response(b'{"error":{"message":"broken"}}'),
    "no content": response(b"", "204 No Content"),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_success_status_without_a_reply_is_malformed(sender, exchanges, answer):
    with Loopback([answer]) as server:
        assert failure(sender, server, exchanges).kind == "malformed"
    assert exchanges[0].response is not None


KEY = "canary-3f9a77c1"
ECHOES = {
    "in the error text": response(b'{"error":{"message":"bad key ' + KEY.encode() + b'"}}', "401 Unauthorized"),
    "in the content type": response(b"{}", content_type=f"text/{KEY}"),
    "in base64": response(b'{"error":{"message":"got Y2FuYXJ5LTNmOWE3N2Mx"}}', "400 Bad"),
    "in a header the log shows": response(b'{"error":"no"}', "403 Forbidden", x_echo=KEY),
}


@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES.keys())
def test_an_echoed_key_reaches_no_message_and_no_log(sender, exchanges, caplog, answer):
    caplog.set_level(logging.DEBUG)
    sender.secrets.keep(KEY)
    with Loopback([answer]) as server:
        error = failure(sender, server, exchanges, authorization=f"Bearer {KEY}")
    assert KEY not in f"{error} {error!r} {exchanges[0].failure} {caplog.text}"
    assert "Y2FuYXJ5LTNmOWE3N2Mx" not in error.message
    assert error.__cause__ is None


@pytest.mark.parametrize("value", ["a\nb", "a\x00b", "clé"])
def test_a_header_that_http_cannot_carry_is_refused_without_quoting_it(sender, exchanges, value):
    with Loopback([OK]) as server:
        with pytest.raises(SeatFailure) as caught:
            post(sender, server, exchanges, authorization=value)
        assert server.seen == []
    assert caught.value.kind == "unsendable" and value not in str(caught.value)


def test_the_record_is_made_once_even_when_reading_the_reply_is_interrupted(sender, exchanges):
    def interrupted(*_response):
        raise KeyboardInterrupt

    with Loopback([OK]) as server, pytest.raises(KeyboardInterrupt):
        sender.post(server.url, {}, b"{}", interrupted, exchanges.append)
    assert len(exchanges) == 1 and exchanges[0].failure is None and exchanges[0].response["body"] == b'{"ok":1}'


def test_an_interruption_of_ours_is_no_failure_of_the_provider(sender, exchanges, monkeypatch):
    def interrupted(*_request):
        raise KeyboardInterrupt

    monkeypatch.setattr(sender, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sender.post("http://127.0.0.1:1/v1", {}, b"{}", read, exchanges.append)
    assert (len(exchanges), exchanges[0].failure, exchanges[0].response) == (1, None, None)


def test_many_threads_share_one_sender_without_mixing_replies(sender):
    def echo(sock, body):
        sock.sendall(response(body))

    with Loopback([OK]) as server:
        server.take = lambda seen: lambda sock: echo(sock, seen.body)

        def one(number: int) -> bool:
            own: list = []
            body = b'{"n":%d,"pad":"%s"}' % (number, b"x" * (number % 7) * 1000)
            reply = post(sender, server, own, body=body)
            return reply.content.encode() == body == own[0].response["body"] and len(own) == 1

        with ThreadPoolExecutor(12) as pool:
            assert all(pool.map(one, range(120)))
    assert 1 < server.connections <= 12


def test_a_deadline_in_one_thread_leaves_the_others_alone(sender):
    with Loopback([OK]) as server:
        server.take = lambda seen: silence(0.8) if seen.body == b"slow" else response(b'{"ok":1}')
        outcome: list[str] = []

        def slow() -> None:
            with pytest.raises(SeatFailure) as caught:
                post(sender, server, [], body=b"slow", deadline_s=0.3)
            outcome.append(caught.value.kind)

        thread = threading.Thread(target=slow)
        thread.start()
        for _ in range(5):
            assert post(sender, server, []).content == '{"ok":1}'
            time.sleep(0.08)
        thread.join()
    assert outcome == ["deadline"]


def test_closing_ends_the_waiting_of_other_threads_at_once(exchanges):
    failures: list[SeatFailure] = []

    def wait(sender: Sender, url: str) -> None:
        try:
            sender.post(url, {}, b"{}", None, exchanges.append, deadline_s=30)
        except SeatFailure as failure:
            failures.append(failure)

    with Loopback([silence(8)]) as server:
        sender = Sender()
        threads = [threading.Thread(target=wait, args=(sender, server.url)) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(server.seen) < 3:
            time.sleep(0.01)
        began = time.monotonic()
        sender.close()
        for thread in threads:
            thread.join(10)
        assert time.monotonic() - began < 4 and {f.kind for f in failures} == {"unreachable"} and len(failures) == 3
