"""The guard: no socket is opened in it, by whatever way, and none is opened outside less easily."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from replaykit.errors import OfflineViolation
from replaykit.offline import offline


def connect(family: int, address: object) -> None:
    with socket.socket(family) as ours:
        ours.connect(address)


def serve() -> None:
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))


def send_a_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.sendto(b"x", ("127.0.0.1", 9))


def fetch() -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open("http://127.0.0.1:9/", timeout=1).close()


async def stream() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


WAYS = {
    "a connection": lambda: connect(socket.AF_INET, ("127.0.0.1", 9)),
    "a local one": lambda: connect(socket.AF_UNIX, "/tmp/no-such-socket"),
    "a server": serve,
    "a datagram": send_a_datagram,
    "a name": lambda: socket.getaddrinfo("localhost", 80),
    "an address": lambda: socket.getnameinfo(("127.0.0.1", 80), 0),
    "a URL": fetch,
    "a coroutine": lambda: asyncio.run(stream()),
    "a program": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "a shell": lambda: os.system("true"),
}


@pytest.mark.parametrize("attempt", WAYS.values(), ids=WAYS.keys())
def test_every_way_to_the_outside_is_an_error(attempt):
    with pytest.raises(OfflineViolation, match="a replay is offline"), offline():
        attempt()


def swallowed(attempt) -> None:
    try:
        attempt()
    except Exception:
        pass


@pytest.mark.parametrize("attempt", WAYS.values(), ids=WAYS.keys())
def test_a_swallowed_attempt_is_an_error_all_the_same(attempt):
    with pytest.raises(OfflineViolation), offline():
        swallowed(attempt)


def in_a_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


sees_threads = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 does not tell of started threads")


@sees_threads
def test_a_thread_that_is_started_inside_is_held_too():
    with pytest.raises(OfflineViolation), offline():
        in_a_thread(lambda: swallowed(WAYS["a connection"]))


@sees_threads
def test_so_is_a_thread_of_such_a_thread():
    with pytest.raises(OfflineViolation), offline():
        in_a_thread(lambda: in_a_thread(lambda: swallowed(WAYS["a name"])))


def test_a_thread_from_before_is_left_alone():
    began, end, opened = threading.Event(), threading.Event(), []

    def open_one() -> None:
        began.wait(5)
        with socket.create_server(("127.0.0.1", 0)) as server:
            opened.append(server.getsockname()[1])
        end.set()

    other = threading.Thread(target=open_one)
    other.start()
    with offline():
        began.set()
        end.wait(5)
    other.join()
    assert opened


def test_guards_nest_and_each_says_what_happened_in_it():
    with offline():
        with pytest.raises(OfflineViolation), offline():
            swallowed(WAYS["a name"])


def test_afterwards_sockets_work_again():
    with offline():
        pass
    with socket.create_server(("127.0.0.1", 0)):
        pass
