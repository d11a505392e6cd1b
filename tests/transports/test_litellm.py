"""The optional LiteLLM transport, against a loopback server."""

from __future__ import annotations

import sys
import time
import warnings

import pytest

from replaykit.errors import UsageError
from replaykit.seats import SeatFailure
from replaykit.transports import load

from .conftest import ask_for
from .examples import CHAT, HISTORY, TOOLS, encoded
from .loopback import Loopback, response, silence

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("litellm")


def seat(server, **arguments):
    return load("litellm")(base_url=server.url, model="openai/m-1", key="k-canary-1", **arguments)


def test_it_asks_through_the_library_and_reads_the_reply(library, exchanges):
    with Loopback([response(encoded(CHAT))]) as server:
        reply = seat(server).ask(ask_for(*HISTORY, tools=TOOLS, tool_choice="auto", deadline_s=20.0), exchanges.append)
    assert reply.content == "On it." and reply.tool_calls[0].arguments == '{"code":"K7", "day":"Fri"}'
    assert exchanges == [] and "wire_unseen" in seat(server).capabilities.rewrites


def test_a_status_is_a_failure_after_one_attempt(library, exchanges):
    with Loopback([response(b'{"error":{"message":"bad key k-canary-1"}}', "500 Oops")]) as server:
        with pytest.raises(SeatFailure) as caught:
            seat(server).ask(ask_for(deadline_s=20.0), exchanges.append)
        assert len(server.seen) == 1
    assert "k-canary-1" not in str(caught.value)


def test_the_caller_is_told_at_the_deadline(library, exchanges):
    with Loopback([silence(1.5)]) as server:
        started = time.monotonic()
        with pytest.raises(SeatFailure) as caught:
            seat(server).ask(ask_for(deadline_s=0.5), exchanges.append)
        assert caught.value.kind == "deadline" and time.monotonic() - started < 1.2


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UsageError, match=r"install replaykit\[litellm\]"):
        load("litellm")(base_url="http://h", model="m")
