"""Wire exchanges in vcrpy's terms."""

from __future__ import annotations

import subprocess
import sys

import pytest

from replaykit.seats import WireExchange
from replaykit.transports.vcr_form import from_vcr, to_vcr

EXCHANGE = WireExchange(
    1,
    {"method": "POST", "uri": "http://h/v1", "headers": {"x-a": ["1"]}, "body": b"\xff{}"},
    {"status": {"code": 200, "message": "OK"}, "headers": {"Set-Cookie": ["a=1", "b=2"]}, "body": b"\x00\xe9"},
)


def test_an_exchange_goes_to_vcr_and_back():
    assert from_vcr(*to_vcr(EXCHANGE)) == EXCHANGE


def test_an_exchange_without_response_goes_to_vcr_and_back():
    lost = WireExchange(2, EXCHANGE.request)
    assert from_vcr(*to_vcr(lost), attempt=2) == lost


def test_repeated_request_headers_are_joined():
    sent = EXCHANGE.request | {"headers": {"x-a": ["1", "2"]}}
    request, _ = to_vcr(WireExchange(1, sent))
    assert request.headers["X-A"] == "1, 2"


def test_text_bodies_of_foreign_cassettes_become_bytes():
    vcr = pytest.importorskip("vcr.request")
    response = {"status": {"code": 200, "message": ""}, "headers": {"a": "1"}, "body": {"string": "é"}}
    exchange = from_vcr(vcr.Request("POST", "http://h", "ü", {}), response)
    assert exchange.request["body"] == "ü".encode() and exchange.response["body"] == "é".encode()
    assert exchange.response["headers"] == {"a": ["1"]}


def test_plain_vcr_writes_and_reads_it(tmp_path):
    yaml = pytest.importorskip("vcr.serializers.yamlserializer")
    serialize = pytest.importorskip("vcr.serialize")
    request, response = to_vcr(EXCHANGE)
    text = serialize.serialize({"requests": [request], "responses": [response]}, yaml)
    requests, responses = serialize.deserialize(text, yaml)
    assert from_vcr(requests[0], responses[0]) == EXCHANGE


def test_nothing_is_imported_or_patched_before_it_is_needed():
    code = "import sys, replaykit.transports.vcr_form; print('vcr' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
