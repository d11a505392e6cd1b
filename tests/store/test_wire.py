"""Wire bodies come back byte for byte, take little room, and agree with their headers."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
import zstandard

from replaykit import canonical
from replaykit.errors import EvidenceError
from replaykit.seats import WireExchange
from replaykit.store import lines, reader
from replaykit.store.agreement import check_agreement


def exchange(sent: bytes, came: bytes | None = b"", headers: dict | None = None) -> WireExchange:
    length = {"content-length": [str(len(sent))]}
    request = {"method": "POST", "uri": "http://127.0.0.1/v1", "headers": length, "body": sent}
    answer = {"status": {"code": 200, "message": "OK"}, "headers": headers or {}, "body": came}
    return WireExchange(1, request, None if came is None else answer)


@pytest.fixture
def stored(begin, episode):
    """A function that stores exchanges of one request and reads them back."""

    def store(*exchanges: WireExchange) -> tuple[WireExchange, ...]:
        with begin() as journal:
            journal.request(next(episode.turns(1))[0])
            for one in exchanges:
                journal.exchange(1, one)
        return reader.read(journal.path).requests[0].exchanges

    return store


BODIES = {
    "empty": b"",
    "compact": b'{"a":[1,2.5,true,null],"b":"\xc3\xa4"}',
    "spaced": b'{"a": [1, 2], "b": "\xc3\xa4"}',
    "ascii": b'{"a":"\\u00e4"}',
    "default": b'{"a": "\\u00e4", "b": [1, 2]}',
    "indented": b'{\n  "a": 1\n}',
    "a member twice": b'{"a":1,"a":2}',
    "exponent": b'{"a":1e5}',
    "escaped slash": b'{"a":"\\/"}',
    "not a number": b'{"a":NaN}',
    "half a surrogate": b'{"a":"ok \\ud83d"}',
    "a pair as escapes": b'{"a":"ok \\ud83d\\ude00"}',
    "a list": b'[{"a":1}]',
    "an empty object": b"{}",
    "a number": b"42",
    "text": "no JSON: \u2028 \x00 ü".encode(),
    "events": b'data: {"a":1}\n\ndata: [DONE]\n\n',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "binary": bytes(range(256)),
    "deep": b'{"a":' * 40 + b"1" + b"}" * 40,
    "very deep": b"[" * 5000 + b"]" * 5000,
    "a reference's form": b'{"$":3}',
    "a reference's form inside": b'{"a":{"$":[1]},"b":[{"$":0}]}',
    "empty keys": b'{"":{"~":1,"/":2}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_request_and_response_bodies_come_back_byte_for_byte(stored, body):
    other = b'{"other":1}'
    found = stored(exchange(body, body), exchange(body, body), exchange(other, body))
    assert [(e.request["body"], e.response["body"]) for e in found] == [(body, body), (body, body), (other, body)]


def grown(*texts: str, **more) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], "temperature": 0.0, **more}


SERIES = {
    "grows": [grown("a"), grown("a", "b"), grown("a", "b", "c", "d")],
    "is sent again": [grown("a"), grown("a"), grown("a")],
    "shrinks": [grown("a", "b"), grown("a")],
    "changes within": [grown("a", "b"), grown("x", "b"), grown("x", "b", "c")],
    "changes behind the list": [grown("a", seed=1), grown("a", "b", seed=2), grown("a", "b", "c", seed=2)],
    "gains a member": [grown("a"), grown("a", "b", seed=1)],
    "changes deep within": [grown("a", deep={"x": {"y": [1, {"z": z}]}}) for z in (1, 1.0, True, [1])],
    "in another order": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "other kinds": [{"a": [{"b": 1}]}, {"a": []}, {"a": None}, {"a": [1]}, {"a": {"b": 1}}],
    "starts empty": [grown(), grown("a"), grown("a", "b")],
    "two growing lists": [grown("a", input=[{"i": 1}]), grown("a", "b", input=[{"i": 1}, {"i": 2}])],
    "an item that looks like the end": [grown("a"), grown("a", '"}],"temperature":0.0}')],
}


@pytest.mark.parametrize("form", canonical.WIRE_FORMS)
@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_a_series_of_bodies_comes_back_byte_for_byte(stored, series, form):
    sent = [canonical.wire(value, form) for value in series]
    assert [e.request["body"] for e in stored(*map(exchange, sent))] == sent


def test_bodies_that_are_no_plain_json_come_back_and_take_little_room(begin, episode):
    texts = [f"{'start ' * 500}{'more ü ' * n}{' end' * 200}" for n in (1, 5, 3, 3, 80)]
    sent = [*(json.dumps({"text": text, "n": n}, indent=2).encode() for n, text in enumerate(texts)), b"\xff", b"other"]
    with begin() as journal:
        journal.request(next(episode.turns(1))[0])
        for body in sent:
            journal.exchange(1, exchange(body))
    assert [e.request["body"] for e in reader.read(journal.path).requests[0].exchanges] == sent
    assert journal.path.stat().st_size < sum(map(len, sent)) / 2


def test_answers_of_one_shape_come_back_byte_for_byte(stored):
    answers = [{"id": f"r{n}", "n": n, "choices": [{"text": "x" * n, "logprobs": None}]} for n in (1, 2, 2, 30)]
    came = [canonical.wire(value, form) for value in answers for form in canonical.WIRE_FORMS]
    found = stored(*(exchange(b"{}", one) for one in came))
    assert [e.response["body"] for e in found] == came


def test_an_exchange_without_a_response_keeps_what_arrived(stored):
    failure = {"kind": "unreachable", "message": "cut"}
    cut = WireExchange(2, exchange(b"{}").request, None, failure, {"total_s": 0.5}, b'{"ha')
    assert stored(cut) == (cut,)


COMPRESSED = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}


@pytest.mark.parametrize(("label", "compress"), COMPRESSED.items(), ids=COMPRESSED)
def test_a_compressed_response_is_stored_plain_and_without_its_label(stored, label, compress):
    raw = compress(b'{"ok":1}')
    headers = {"Content-Encoding": [label], "content-length": [str(len(raw))]}
    response = stored(exchange(b"{}", raw, headers))[0].response
    assert (response["body"], response["headers"]) == (b'{"ok":1}', {"content-length": ["8"]})


def test_a_response_that_nobody_here_can_decode_is_withheld_and_says_so(begin, episode):
    with begin() as journal:
        journal.request(next(episode.turns(1))[0])
        journal.exchange(1, exchange(b"{}", b"\x01secret\x02", {"content-encoding": ["br"]}))
    assert b"secret" not in journal.path.read_bytes()
    body = reader.read(journal.path).requests[0].exchange_records[0][1]["response"]["body"]
    assert (body["bytes"], body["digest"]) == (8, canonical.sha256(b"\x01secret\x02"))


AGREE = {
    "plain": ({"content-type": ["application/json"]}, b'{"ok":1}'),
    "its length": ({"Content-Length": ["8"]}, b'{"ok":1}'),
    "compressed with its label": ({"content-encoding": ["gzip"]}, gzip.compress(b'{"ok":1}')),
    "compressed twice": ({"content-encoding": ["gzip, gzip"]}, gzip.compress(gzip.compress(b"x"))),
    "empty with a label": ({"content-encoding": ["gzip"], "content-length": ["0"]}, b""),
    "identity": ({"content-encoding": ["identity"]}, b"x"),
}


@pytest.mark.parametrize(("headers", "body"), AGREE.values(), ids=AGREE)
def test_body_and_headers_that_agree_are_accepted(headers, body):
    check_agreement("response", headers, lambda: body)


DISAGREE = {
    "a label on a plain body": ({"content-encoding": ["gzip"]}, b'{"ok":1}'),
    "another label": ({"Content-Encoding": ["deflate"]}, gzip.compress(b"{}")),
    "a cut body": ({"content-encoding": ["gzip"]}, gzip.compress(b"{}")[:-4]),
    "bytes behind the end": ({"content-encoding": ["gzip"]}, gzip.compress(b"{}") + b"x"),
    "another length": ({"content-length": ["999"]}, b'{"ok":1}'),
    "two lengths": ({"content-length": ["8", "9"]}, b'{"ok":1}'),
}


@pytest.mark.parametrize(("headers", "body"), DISAGREE.values(), ids=DISAGREE)
def test_body_and_headers_that_disagree_are_refused(headers, body):
    with pytest.raises(ValueError, match="the response's content-"):
        check_agreement("response", headers, lambda: body)


def test_a_cassette_whose_body_and_headers_disagree_is_refused_at_load(record):
    path = record(2)
    records = [json.loads(row) for row in path.read_bytes().splitlines()]
    heads = [value for value in records[2]["new"] if isinstance(value, dict) and "status" in value]
    heads[0]["headers"]["content-encoding"] = ["gzip"]
    total, out = "replaykit.cassette/1", b""
    for row in records[:5]:
        line, total = lines.write({key: value for key, value in row.items() if key != "sum"}, total)
        out += line
    path.write_bytes(out)
    with pytest.raises(EvidenceError, match="content-encoding 'gzip' does not fit its body"):
        reader.read(path)
