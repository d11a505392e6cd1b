"""HTTP archives: every exchange is there, in HAR's own members."""

from __future__ import annotations

import base64
import json

from replaykit import exchange
from replaykit.interchange import har
from replaykit.seats import WireExchange
from replaykit.store import reader

ENTRY = {"startedDateTime", "time", "request", "response", "cache", "timings"}
REQUEST = {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"}
RESPONSE = {
    "status",
    "statusText",
    "httpVersion",
    "cookies",
    "headers",
    "content",
    "redirectURL",
    "headersSize",
    "bodySize",
}
ABOUT = {"version": "1", "started": "2026-01-01T00:00:00+00:00", "title": "airline/0"}


def test_every_exchange_is_an_entry_with_the_members_that_har_requires(recording, tmp_path):
    (path,) = recording("retail/2")
    assert exchange.export_har(path, tmp_path / "t.har") == 15
    log = json.loads((tmp_path / "t.har").read_text())["log"]
    sent = [(r.seat, e) for r in reader.read(path).requests for e in r.exchanges]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "replaykit")
    for entry, (seat, one) in zip(log["entries"], sent, strict=True):
        assert entry.keys() >= ENTRY
        assert entry["request"].keys() >= REQUEST
        assert entry["response"].keys() >= RESPONSE
        assert entry["_seat"] == seat
        assert entry["request"]["postData"]["text"].encode() == one.request["body"]
        assert entry["response"]["content"]["text"].encode() == one.response["body"]


def made(**members) -> dict:
    """The entry of one exchange."""
    request = {"method": "POST", "uri": "http://127.0.0.1/v1?a=1&b=", "headers": {}, "body": b"{}"}
    return har.document([("learner", 1, WireExchange(1, request, **members))], ABOUT)["log"]["entries"][0]


def test_an_attempt_without_a_response_has_status_0_and_says_why():
    entry = made(failure={"kind": "deadline", "message": "late"}, partial=b"ha")
    assert (entry["response"]["status"], entry["_error"], entry["response"]["content"]["text"]) == (0, "deadline", "ha")
    assert entry["request"]["queryString"] == [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]


def test_a_body_that_is_no_text_is_base64():
    content = made(response={"status": {"code": 200, "message": "OK"}, "headers": {}, "body": b"\xff\x00"})["response"][
        "content"
    ]
    assert base64.b64decode(content["text"]) == b"\xff\x00"
    assert content["encoding"] == "base64"
