"""A control provider for each test, clients that see raw bytes, and a check that nothing is left behind."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from replaykit.controls import ControlProvider, one_exchange

CHAT = {"model": "m-1", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and t.name.startswith("control")]
    assert left == []


@pytest.fixture
def provider():
    with ControlProvider(entropy=b"fixed", scale=0.01) as running:
        yield running


@pytest.fixture
def case(provider):
    """Registers a case with the one-exchange controls and a schedule, and gives its name."""

    def register(schedule=None, name="case", identities=None, **options):
        provider.add_case(name, identities or one_exchange(), schedule, **options)
        return name

    return register


def chat_request(path: str = "/case/learner/v1/chat/completions", body: object = CHAT, headers: str = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


@pytest.fixture
def raw(provider):
    """Sends bytes on a new connection; gives all bytes it gets and how that ended: open, closed or reset.

    Open means that the provider has done with the exchange, or wrote nothing for a second.
    """

    def exchange(data: bytes | None = None) -> tuple[bytes, str]:
        with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as sock:
            sock.sendall(chat_request() if data is None else data)
            return _read(sock, provider)

    return exchange


def _read(sock: socket.socket, provider: ControlProvider) -> tuple[bytes, str]:
    sock.settimeout(0.05)
    received, last = b"", time.monotonic()
    while True:
        try:
            data = sock.recv(65536)
        except TimeoutError:
            done = bool(provider.journal) and provider.settle(0)
            if done or time.monotonic() - last > 1:
                return received, "open"
            continue
        except ConnectionResetError:
            return received, "reset"
        if not data:
            return received, "closed"
        received, last = received + data, time.monotonic()


@pytest.fixture
def post(raw):
    """Posts a body to a path and gives status and decoded reply body."""

    def exchange(path: str, body: object, headers: str = "") -> tuple[int, dict]:
        received, _ = raw(chat_request(path, body, headers + "connection: close\r\n"))
        head, _, reply = received.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(reply)

    return exchange
