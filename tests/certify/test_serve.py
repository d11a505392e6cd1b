"""``replaykit controls serve``: the provider alone, until interrupted."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen, list[str], Path]]:
    """The process, the lines it printed, its journal."""
    journal = tmp_path / "journal.jsonl"
    command = [
        sys.executable,
        "-u",
        "-m",
        "replaykit",
        "controls",
        "serve",
        "--journal",
        str(journal),
        "--seat",
        "judge",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, [process.stdout.readline() for _ in range(13)], journal
        finally:
            if process.poll() is None:
                process.kill()


def ask(address: str, path: str) -> dict:
    """One chat request."""
    host, port, base = re.match(r"http://([^:/]+):(\d+)(.*)", address).groups()
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]})
        connection.request(
            "POST", base + path, body, {"content-type": "application/json", "authorization": "Bearer secret-key-1"}
        )
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_it_prints_an_address_for_each_wire_and_seat_and_answers_there(served) -> None:
    _, lines, _ = served
    addresses = {tuple(line.split()[:2]): line.split()[2] for line in lines[:12]}
    assert len(addresses) == 12
    answer = ask(addresses["openai-chat", "customer"], "/chat/completions")
    assert answer["choices"][0]["message"]["content"].startswith("Hello")


def test_the_bare_address_answers_as_the_seat_that_was_named(served) -> None:
    bare = re.search(r"http://\S+", served[1][12]).group()
    assert ask(bare, "/chat/completions")["choices"][0]["message"]["content"] == '{"results": []}'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_ends_it_and_the_journal_holds_no_key(served, number) -> None:
    process, lines, journal = served
    ask(lines[0].split()[2], "/chat/completions")
    process.send_signal(number)
    assert "1 requests were answered" in process.communicate(timeout=15)[0]
    assert "secret-key-1" not in journal.read_text() and '"status":200' in journal.read_text()
