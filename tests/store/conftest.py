"""A small made-up episode, written through the journal; the store's tests need no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatReply, SeatRequest, WireExchange
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

HEADER = {
    "panel": "airline/0", "fleet_digest": "f" * 64, "engine": {"distribution": "made-up", "version": "1"},
    "settings": {"version": "tau3-text/1"}, "budget": {"requests": 201}, "roster": {"name": "made-up"},
    "arm": {"name": "made-up"}, "seeds": {"case": 300, "trial": 626729}, "controls": "made-up",
    "created_by": {"tool": "tests"}, "created_at": "2026-01-01T00:00:00+00:00",
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "get_user", "description": "Get the user with this id, if any."}}]
RESULT = {
    "trajectory": [], "termination": "user_stop", "steps": 4, "errors": 0, "initial_db_hash": "0" * 64,
    "final_db_hash": "1" * 64, "reward": 1.0, "reward_info": None, "learner_state": [], "customer_state": [],
    "reference_actions": [], "lost_turn": None, "diagnostics": [{"name": "judge.all_true_default"}], "seed": 626729,
}  # fmt: skip


class Episode:
    """A conversation in which learner and customer take turns; each turn is a request, an exchange and a reply."""

    def __init__(self) -> None:
        self.messages = {
            "learner": [{"role": "system", "content": "You are an agent. Follow the policy to the letter."}],
            "customer": [{"role": "system", "content": "You are a customer who wants a refund at once."}],
        }
        self.number = 0

    def turns(self, count: int) -> Iterator[tuple[SeatRequest, WireExchange, SeatReply]]:
        """The next ``count`` requests with their exchanges and replies."""
        for _ in range(count):
            self.number += 1
            seat = "customer" if self.number % 2 else "learner"
            yield self._turn(seat)

    def _turn(self, seat: str) -> tuple[SeatRequest, WireExchange, SeatReply]:
        tools = TOOLS if seat == "learner" else None
        arguments = {"temperature": 0.0, "seed": 626729}
        request = SeatRequest(
            seat, self.number, "model-a", list(self.messages[seat]), tools, "auto" if tools else None, arguments
        )
        reply = SeatReply(f"Turn {self.number} of the {seat}, a text long enough to be shared.", finish_reason="stop")
        for name, messages in self.messages.items():
            role = "assistant" if name == seat else "user"
            messages.append({"role": role, "content": reply.content})
        return request, exchange_of(request, reply), reply


def exchange_of(request: SeatRequest, reply: SeatReply) -> WireExchange:
    """The wire exchange of a turn, as a chat provider would have it."""
    body = {"model": request.model, "messages": request.messages, "temperature": 0.0}
    if request.tools:
        body["tools"] = request.tools
    sent = canonical.line(body)
    message = {"role": "assistant", "content": reply.content}
    came = canonical.line({"id": f"r{request.number}", "choices": [{"index": 0, "message": message}]})
    headers = {"Content-Type": ["application/json"], "Content-Length": [str(len(sent))]}
    return WireExchange(
        1,
        {"method": "POST", "uri": "http://127.0.0.1:8080/v1/chat/completions", "headers": headers, "body": sent},
        {"status": {"code": 200, "message": "OK"}, "headers": {"content-type": ["application/json"]}, "body": came},
        timing={"total_s": 0.01},
    )


def write_turns(journal: Journal, episode: Episode, count: int) -> None:
    """Write the next turns of an episode into a journal."""
    for request, exchange, reply in episode.turns(count):
        journal.request(request)
        journal.exchange(request.number, exchange)
        journal.reply(request.number, reply)
        if request.seat == "learner":
            journal.state(request.number // 2, canonical.digest(request.number // 6))


@pytest.fixture
def episode() -> Episode:
    """A fresh episode."""
    return Episode()


@pytest.fixture
def header() -> dict:
    """A cassette's header."""
    return dict(HEADER)


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Path]:
    """A function that records an episode of some requests and gives the cassette's path."""

    def make(count: int = 4, name: str = "a.cassette.jsonl", close: bool = True, secrets: tuple[str, ...] = ()) -> Path:
        path = tmp_path / name
        with Journal.create(path, HEADER, Redactor(secrets)) as journal:
            write_turns(journal, Episode(), count)
            if close:
                journal.close({"result": RESULT, "policy_states": [{"authenticated": False}], "tokens": {"prompt": 7}})
        return path

    return make


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., Journal]:
    """A function that opens a journal on a new file."""

    def make(name: str = "a.cassette.jsonl", secrets: tuple[str, ...] = ()) -> Journal:
        return Journal.create(tmp_path / name, HEADER, Redactor(secrets))

    return make


@pytest.fixture
def turns() -> Callable[[Journal, Episode, int], None]:
    """The function that writes turns."""
    return write_turns


@pytest.fixture
def result() -> dict:
    """How the made-up episode ends."""
    return dict(RESULT)


@pytest.fixture
def calling_reply() -> SeatReply:
    """A reply with a tool call."""
    call = ReplyCall("call_1", "get_user", '{"user_id": "mia_1"}')
    return SeatReply(None, (call,), "tool_calls", side={"call_1": {"signature": "x"}})
