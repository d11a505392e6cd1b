"""Keys stay out of messages, in whatever form they come."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from replaykit.transports.redaction import Secrets

KEY = 'ke/y"\n+canary'
FORMS = {
    "plain": KEY,
    "in an address": quote(KEY, safe=""),
    "escaped": 'ke/y\\"\\n+canary',
    "base64": base64.b64encode(KEY.encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_known_secret_is_replaced_in_every_form(form):
    assert Secrets([KEY]).redact(f"<{form}>").replace("=", "") == "<[secret]>"


@pytest.mark.parametrize("text", ["sk-inval****ture", "AIzaSyA-0123456789", "Bearer abcdefgh12"])
def test_what_looks_like_a_key_is_replaced_unknown_or_not(text):
    assert Secrets().redact(f"bad {text}!") == "bad [secret]!"


def test_a_longer_secret_is_replaced_before_one_it_contains():
    assert Secrets(["abcd", "abcdefgh"]).redact("abcdefgh") == "[secret]"


@pytest.mark.parametrize("value", [None, "", "abc"])
def test_nothing_and_next_to_nothing_is_no_secret(value):
    secrets = Secrets()
    secrets.keep(value)
    assert secrets.redact("abc") == "abc"
