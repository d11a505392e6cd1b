"""No secret reaches a file; what is no secret stays as it is."""

from __future__ import annotations

import base64
import copy
import json
import re
from urllib.parse import quote

import pytest

from replaykit import canonical
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, WireExchange
from replaykit.store import reader
from replaykit.store.redaction import PLACEHOLDER, Redactor

SECRET = 'CANARY-"7\\é/+ key-0123456789'
KNOWN = Redactor([SECRET, "CANARY-short-one"])
DIGITS = "0123456789abcdefABCDEF"

SPELLINGS = {
    "plain": SECRET,
    "in JSON": json.dumps(SECRET)[1:-1],
    "in JSON, not ASCII": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "in JSON in JSON": json.dumps(json.dumps({"k": SECRET})),
    "in an address": quote(SECRET, safe=""),
    "in an address, lower case": re.sub("%..", lambda escape: escape.group().lower(), quote(SECRET, safe="")),
    "in base64": base64.b64encode(SECRET.encode()).decode(),
    "in basic authorization": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "in base64, shifted": base64.b64encode(f"ab{SECRET}c".encode()).decode(),
    "in base64 for addresses": base64.urlsafe_b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_a_known_secret_is_found_in_every_spelling(text):
    clean = KNOWN.text(f"before {text} after")
    assert PLACEHOLDER in clean and clean.startswith("before ") and clean.endswith(" after")
    assert "CANARY" not in clean and "0123456789" not in clean


SHAPED = {
    "openai": "sk-" + DIGITS * 2,
    "openai project": "sk-proj-" + DIGITS * 2,
    "anthropic": "sk-ant-api03-" + DIGITS * 2,
    "google": "AIza" + (DIGITS * 2)[:35],
    "hugging face": "hf_" + DIGITS * 2,
    "nvidia": "nvapi-" + DIGITS * 2,
    "github": "ghp_" + (DIGITS * 2)[:36],
    "github, fine": "github_pat_" + DIGITS * 3,
    "aws": "AKIA" + "ABCDEFGH01234567",
    "slack": "xoxb-123456789012-abcdefghij",
    "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXNpZw",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "cut pem": "-----BEGIN PRIVATE KEY-----\nMIIEow",
}


@pytest.mark.parametrize("key", SHAPED.values(), ids=SHAPED)
def test_what_is_shaped_like_a_key_is_taken_out(key):
    assert Redactor().text(f"use {key}") == f"use {PLACEHOLDER}"


KEPT_PART = {
    "Authorization: Bearer abcdefgh12345678": f"Authorization: Bearer {PLACEHOLDER}",
    "https://user:pass@host.test/v1": f"https://{PLACEHOLDER}@host.test/v1",
    "postgres://admin:pa55@db:5432/x": f"postgres://{PLACEHOLDER}@db:5432/x",
}


@pytest.mark.parametrize(("text", "clean"), KEPT_PART.items(), ids=KEPT_PART)
def test_what_stands_around_a_credential_stays(text, clean):
    assert Redactor().text(text) == clean


INNOCENT = [
    "chatcmpl-B2x9QfT7yVnKp0aLmZcR4dEsWuGh",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    "call_7GZND2FLGW7FRSB69BES",
    "a task-oriented-assistant-with-many-hyphens-2024",
    "the risk-averse-customer-with-2-bags-and-more",
    "sk-learn",
    "Bearer responsibilities of the agent",
    "http://127.0.0.1:8080/v1/chat/completions",
    "mail mia.li3818@example.com at 10:30",
    "gift_card_7219486",
    "certificate_7504069",
    "credit_card_4421486",
    "550e8400-e29b-41d4-a716-446655440000",
    "GhpQ_x and AIzawa",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_key_stays(text):
    assert KNOWN.text(text) == text


def test_redacting_twice_changes_nothing_more():
    texts = [*SPELLINGS.values(), *SHAPED.values(), *KEPT_PART]
    once = [KNOWN.text(text) for text in texts]
    assert [KNOWN.text(text) for text in once] == once
    value = {"authorization": "x y z", SECRET: [{"a": texts}]}
    assert KNOWN.value(KNOWN.value(value)) == KNOWN.value(value)


@pytest.mark.parametrize("length", [8, 12, len(SECRET) - 1, len(SECRET)])
def test_a_body_that_breaks_off_within_a_secret_keeps_no_part_of_it(length):
    assert KNOWN.cut(f"data: {SECRET[:length]}") == f"data: {PLACEHOLDER}"


def test_a_body_that_breaks_off_elsewhere_stays():
    assert KNOWN.cut('{"a": "CANA') == '{"a": "CANA'


def test_a_value_is_redacted_on_a_copy_in_keys_and_texts():
    value = {"a": [SECRET, 1, {SECRET: None}], "b": ("x", SECRET)}
    before = copy.deepcopy(value)
    assert KNOWN.value(value) == {"a": [PLACEHOLDER, 1, {PLACEHOLDER: None}], "b": ["x", PLACEHOLDER]}
    assert value == before


def test_a_secret_in_a_value_nested_however_deep_is_taken_out():
    value = {"secret": SECRET}
    for _ in range(600):
        value = [value]
    assert "CANARY" not in json.dumps(KNOWN.value(value)) and PLACEHOLDER in json.dumps(KNOWN.value(value))


def test_a_value_without_a_secret_comes_back_as_the_same_object():
    value = {"a": [1, "text", {"b": None}], "password_rules": "none"}
    assert KNOWN.value(value) is value


FIELDS = ["api_key", "API-Key", "Authorization", "access_token", "password", "client_secret", "x-api-key"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_member_named_like_a_credential_loses_its_text(name):
    assert Redactor().value({"outer": {name: "hunter2"}}) == {"outer": {name: PLACEHOLDER}}
    assert "hunter2" not in Redactor().body(f'data: {{"{name}": "hunter2"')


def test_a_schema_that_describes_a_password_stays():
    schema = {"properties": {"password": {"type": "string"}}}
    assert Redactor().value(schema) is schema


def test_secrets_too_short_to_be_told_from_words_are_left_alone():
    assert Redactor(["the", ""]).text("the policy") == "the policy"


def test_the_longest_of_overlapping_secrets_goes_first():
    assert Redactor(["secret-one", "secret-one-and-two"]).text("secret-one-and-two") == PLACEHOLDER


def test_headers_are_kept_by_an_allow_list_without_case():
    headers = {"AUTHORIZATION": ["x"], "x-Api-Key": ["y"], "Content-TYPE": ["application/json"], "Cookie": ["z"]}
    assert KNOWN.headers(headers, "request") == {"Content-TYPE": ["application/json"]}


def test_every_value_of_a_repeated_header_is_redacted():
    headers = {"X-Request-Id": ["a", SECRET], "Set-Cookie": ["a=1", "b=2"], "OpenAI-Organization": ["org"]}
    assert KNOWN.headers(headers, "response") == {"X-Request-Id": ["a", PLACEHOLDER]}


ADDRESSES = {
    "https://h.test/v1?key=AbC123&alt=sse": f"https://h.test/v1?key={PLACEHOLDER}&alt=sse",
    "https://h.test/v1?a=1&access_token=t#f": f"https://h.test/v1?a=1&access_token={PLACEHOLDER}#f",
    "https://me:pw@h.test/": f"https://{PLACEHOLDER}@h.test/",
    "https://h.test/v1?monkey=banana": "https://h.test/v1?monkey=banana",
}


@pytest.mark.parametrize(("uri", "clean"), ADDRESSES.items(), ids=ADDRESSES)
def test_addresses_lose_their_credentials(uri, clean):
    assert Redactor().uri(uri) == clean


def leaky_exchange(canary: str, body: bytes | None = None) -> WireExchange:
    messages = [{"role": "user", "content": f"my key is {canary}"}]
    sent = canonical.line({"model": "m", "messages": messages, canary: canary})
    return WireExchange(
        1,
        {
            "method": "POST",
            "uri": f"https://{canary}:x@h.test/v1?key={quote(canary)}",
            "headers": {"AUTHORIZATION": [f"Bearer {canary}"], "x-Api-Key": [canary], "user-agent": [canary]},
            "body": sent,
        },
        {
            "status": {"code": 401, "message": f"no {canary}"},
            "headers": {"Set-Cookie": [canary, canary], "x-request-id": [canary], "Content-Length": ["1"]},
            "body": canonical.line({"error": f"wrong key {canary}"}) if body is None else body,
        },
        failure={"kind": "auth", "message": f"wrong key {canary}"},
        partial=f'{{"echo": "{canary}'.encode(),
    )


ECHOES = {
    "JSON": None,
    "events": f'data: {{"error": {json.dumps(SECRET)}}}\n\n'.encode(),
    "JSON in JSON": canonical.line({"arguments": canonical.line({"k": SECRET}).decode()}),
    "binary": b"\xff\xfe" + SECRET.encode(),
    "base64": b"token " + base64.b64encode(b"x:" + SECRET.encode()),
}


@pytest.mark.parametrize("name", ["a.cassette.jsonl", "a.cassette.jsonl.zst"])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_canary_is_in_no_file_wherever_it_was_sent(begin, result, name, echo):
    message = {"role": "user", "content": f"I say {SECRET}"}
    with begin(name, (SECRET,)) as journal:
        journal.request(SeatRequest("learner", 1, SECRET, [message], [{"name": SECRET}], "auto", {"api_key": SECRET}))
        journal.exchange(1, leaky_exchange(SECRET, echo))
        journal.reply(1, SeatReply(SECRET, model=SECRET, side={"c": SECRET}))
        journal.request(SeatRequest("judge", 2, "m", [message], None, None, {}))
        journal.failure(2, SeatFailure("auth", f"wrong key {SECRET}"))
        journal.note({SECRET: SECRET})
        journal.close({"result": {**result, "reward_info": {"text": SECRET}}, "extra": SECRET})
    data = reader.load(journal.path).decode("utf-8")
    for spelling in SPELLINGS.values():
        assert spelling not in data
    assert "CANARY" not in data and KNOWN.text(data) == data
    reader.read(journal.path)


def test_body_and_headers_of_a_redacted_exchange_agree(begin, episode):
    with begin(secrets=(SECRET,)) as journal:
        journal.request(next(episode.turns(1))[0])
        journal.exchange(1, leaky_exchange(SECRET))
    exchange = reader.read(journal.path).requests[0].exchanges[0]
    assert exchange.response["headers"]["Content-Length"] == [str(len(exchange.response["body"]))]
    assert json.loads(exchange.request["body"])["messages"][0]["content"] == f"my key is {PLACEHOLDER}"


def test_what_is_recorded_is_redacted_and_what_is_live_is_not(begin, episode):
    exchange = leaky_exchange(SECRET)
    before = copy.deepcopy(exchange)
    reply = SeatReply(SECRET)
    with begin(secrets=(SECRET,)) as journal:
        journal.request(next(episode.turns(1))[0])
        journal.exchange(1, exchange)
        journal.reply(1, reply)
    assert (exchange, reply.content) == (before, SECRET)
    assert reader.read(journal.path).requests[0].outcome.content == PLACEHOLDER


def test_a_request_built_from_the_placeholder_has_the_digest_that_was_stored(begin):
    def request(said: str) -> SeatRequest:
        return SeatRequest("learner", 1, "m", [{"role": "user", "content": f"I say {said}"}], None, None, {})

    with begin("a.cassette.jsonl", (SECRET,)) as live:
        recorded = live.request(request(SECRET))
    with begin("b.cassette.jsonl") as again:
        assert again.request(request(PLACEHOLDER)) == recorded


def test_reading_and_writing_again_redacts_nothing_more(begin, episode, turns, record):
    cassette = reader.read(record(6, secrets=(SECRET,)))
    with begin("again.cassette.jsonl", (SECRET,)) as journal:
        for request in cassette.requests:
            journal.request(request.native)
            journal.exchange(request.number, request.exchanges[0])
            journal.reply(request.number, request.outcome)
    again = reader.read(journal.path)
    assert [r.exchanges for r in again.requests] == [r.exchanges for r in cassette.requests]
