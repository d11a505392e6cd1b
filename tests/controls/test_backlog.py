"""A listener with a full queue."""

from __future__ import annotations

import socket

import pytest

from replaykit.controls.backlog import FullBacklog
from replaykit.errors import Incomplete


@pytest.fixture
def full():
    try:
        with FullBacklog() as listener:
            yield listener
    except Incomplete as reason:
        pytest.skip(str(reason))


def test_a_connection_attempt_hangs(full):
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", full.port), timeout=0.3)


def test_nobody_is_left_after_the_exit():
    try:
        with FullBacklog() as listener:
            port = listener.port
    except Incomplete as reason:
        pytest.skip(str(reason))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
