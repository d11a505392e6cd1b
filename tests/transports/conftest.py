from __future__ import annotations

from collections.abc import Iterator

import pytest

from replaykit.seats import TransportRequest, WireExchange
from replaykit.transports.sender import Sender


@pytest.fixture
def sender() -> Iterator[Sender]:
    with Sender() as sender:
        yield sender


@pytest.fixture
def exchanges() -> list[WireExchange]:
    return []


def ask_for(*messages: dict, **changes: object) -> TransportRequest:
    """A request with sensible values for what a test does not care about."""
    values = {
        "seat": "learner",
        "number": 1,
        "model": "m-1",
        "messages": list(messages) or [{"role": "user", "content": "hello"}],
        "tools": None,
        "tool_choice": None,
        "settings": {"temperature": 0.0, "top_p": 1.0, "max_output_tokens": 4096, "seed": 626729},
        "deadline_s": 2.0,
    }
    return TransportRequest(**(values | changes))
