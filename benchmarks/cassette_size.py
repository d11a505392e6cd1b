"""How big a cassette is, beside the YAML that vcrpy writes for the same wire exchanges; and what recording costs.

    python benchmarks/cassette_size.py [--json]

The conversation is made up but has the shape of an airline episode: a system prompt of 8,000 characters, fourteen
tools, two seats that see the whole history at every request, as many tool calls as texts from the learner, and the
lengths that published tau2 runs have: about 250 characters a learner's text, 150 a customer's, 750 a tool result.
A cassette holds more than the YAML does: the native requests, the replies in normal form, the policy states, the
trajectory and both final conversation states.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatReply, SeatRequest, WireExchange, normalise_message
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

LENGTHS = (10, 30, 60, 120, 200)
_WORDS = tuple(
    """agent airline amount answer baggage basic booking business cabin cancel card certificate change class confirm
    customer date delay details economy fare flight free gift guideline hours insurance itinerary leave member must
    name number offer one passenger payment policy price reason refund request reservation return round rule seat
    segment silver status ticket time total transfer travel trip update upgrade user within without yes""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a seat with all that came of it."""

    request: SeatRequest
    exchange: WireExchange
    reply: SeatReply


@dataclass(slots=True)
class Talk:
    """A made-up conversation that grows turn by turn, always the same for a seed."""

    seed: int = 300
    learner: list[dict] = field(default_factory=list)
    customer: list[dict] = field(default_factory=list)
    trajectory: list[dict] = field(default_factory=list)
    _random: random.Random = field(default_factory=random.Random)

    def turns(self, count: int) -> Iterator[Turn]:
        """The first ``count`` requests: customer and learner in turn, the learner with as many calls as texts."""
        self._random.seed(self.seed)
        self.learner.append({"role": "system", "content": self._text(8_000)})
        self.customer.append({"role": "system", "content": self._text(2_500)})
        tools, number = [self._tool(n) for n in range(14)], 0
        self._say("learner", "Hi! How can I help you today?")
        while number < count:
            for seat, kit in (("customer", None), ("learner", tools)):
                calls = self._random.choice((0, 0, 1, 1, 1, 3)) if seat == "learner" else 0
                for step in (*["call"] * calls, "say"):
                    number += 1
                    if number <= count:
                        yield self._turn(number, seat, kit, step)

    def result(self) -> dict:
        """What the episode ended in, as the recorder stores it."""
        return {
            "trajectory": self.trajectory, "termination": "user_stop", "steps": len(self.trajectory), "errors": 0,
            "initial_db_hash": "0" * 64, "final_db_hash": "1" * 64, "reward": 1.0, "reward_info": {"db": 1.0},
            "learner_state": list(self.trajectory),
            "customer_state": [m for m in self.trajectory if m["role"] != "tool"],
            "reference_actions": [], "lost_turn": None, "diagnostics": [], "seed": 626729,
        }  # fmt: skip

    def _turn(self, number: int, seat: str, tools: list[dict] | None, step: str) -> Turn:
        messages = list(self.learner if seat == "learner" else self.customer)
        arguments = {"temperature": 0.0, "seed": 626729}
        request = SeatRequest(seat, number, "model-a", messages, tools, "auto" if tools else None, arguments)
        wanted = f'{{"reservation_id": "{self._token(6)}"}}'
        call = ReplyCall(f"call_{self._token(20)}", "get_reservation_details", wanted)
        length = self._random.randint(60, 240) if seat == "customer" else self._random.randint(100, 400)
        content = None if step == "call" else self._text(length)
        usage = {"prompt_tokens": 4_000 + number, "completion_tokens": 60}
        reply_id = f"chatcmpl-{self._token(29)}"
        if step == "call":
            reply = SeatReply(None, (call,), "tool_calls", usage, "model-a", reply_id)
        else:
            reply = SeatReply(content, (), "stop", usage, "model-a", reply_id)
        exchange = _exchange(request, reply)
        if step == "call":
            self._call(call)
        else:
            self._say(seat, content)
        return Turn(request, exchange, reply)

    def _say(self, seat: str, text: str) -> None:
        self.learner.append({"role": "user", "content": text} if seat == "customer" else _spoken(text))
        self.customer.append(_spoken(text) if seat == "customer" else {"role": "user", "content": text})
        role = "user" if seat == "customer" else "assistant"
        self.trajectory.append({"role": role, "content": text, "tool_calls": None})

    def _call(self, call: ReplyCall) -> None:
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "name": call.name, "function": function, "type": "function"}]
        legs = [{"flight": self._token(6), "price": self._random.randint(50, 900)} for _ in range(4)]
        note = self._text(self._random.randint(100, 1_000))
        result = canonical.line({"reservation_id": self._token(6), "legs": legs, "note": note}).decode()
        self.learner.append({"role": "assistant", "content": None, "tool_calls": calls})
        self.learner.append({"role": "tool", "content": result, "tool_call_id": call.id})
        plain = {"id": call.id, "name": call.name, "arguments": json.loads(call.arguments), "requestor": "assistant"}
        self.trajectory.append({"role": "assistant", "content": None, "tool_calls": [plain]})
        self.trajectory.append(
            {"role": "tool", "id": call.id, "content": result, "requestor": "assistant", "error": False}
        )

    def _tool(self, number: int) -> dict:
        parameters = {self._token(8): {"type": "string", "description": self._text(90)} for _ in range(4)}
        schema = {"type": "object", "properties": parameters, "required": list(parameters)}
        function = {"name": f"tool_{number}", "description": self._text(160), "parameters": schema}
        return {"type": "function", "function": function}

    def _words(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(count))

    def _text(self, length: int) -> str:
        return self._words(length // 6)[:length]

    def _token(self, length: int) -> str:
        return "".join(self._random.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(length))


def _spoken(text: str) -> dict:
    return {"role": "assistant", "content": text, "tool_calls": None}


def _exchange(request: SeatRequest, reply: SeatReply) -> WireExchange:
    messages = [normalise_message(m) for m in request.messages]
    settings = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 4096, "seed": 626729}
    body = {"model": request.model, "messages": messages, **settings}
    if request.tools:
        body |= {"tools": request.tools, "tool_choice": "auto"}
    message = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        call = reply.tool_calls[0]
        function = {"name": call.name, "arguments": call.arguments}
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    answer = canonical.line({"id": reply.id, "object": "chat.completion", "created": 1_700_000_000 + request.number,
                             "model": reply.model, "choices": [choice], "usage": reply.usage})  # fmt: skip
    sent = canonical.line(body)
    return WireExchange(
        1,
        {"method": "POST", "uri": _ADDRESS, "body": sent, "headers": _headers(_SENT, len(sent))},
        {"status": {"code": 200, "message": "OK"}, "body": answer, "headers": _headers(_CAME, len(answer))},
        timing={"connect_s": 0.0, "total_s": 0.012},
    )


_SENT = {"host": "127.0.0.1:8080", "accept": "*/*", "accept-encoding": "identity", "connection": "keep-alive",
         "user-agent": "python-httpx/0.28.1", "content-type": "application/json"}  # fmt: skip
_ADDRESS = "http://127.0.0.1:8080/v1/chat/completions"
_CAME = {"server": "uvicorn", "date": "Mon, 01 Jan 2026 00:00:00 GMT", "content-type": "application/json"}


def _headers(usual: dict[str, str], length: int) -> dict[str, list[str]]:
    return {name: [value] for name, value in (usual | {"content-length": str(length)}).items()}


def header() -> dict:
    """A cassette's header of usual size."""
    identity = {"distribution": "made-up", "version": "1", "data_digests": dict.fromkeys(_WORDS[:12], "a" * 64)}
    return {
        "panel": "airline/0", "fleet_digest": "f" * 64, "engine": identity, "settings": {"version": "tau3-text/1"},
        "budget": {"requests": 201}, "roster": {"name": "made-up"}, "arm": {"name": "made-up"},
        "seeds": {"case": 300, "trial": 626729}, "controls": "made-up conversation",
        "created_by": {"replaykit": "benchmark"}, "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def record(path: Path, count: int) -> tuple[list[WireExchange], list[tuple[float, float]]]:
    """Record the conversation; gives its exchanges and, for each request, the recorder's seconds by wall and CPU."""
    talk, exchanges, spent = Talk(), [], []
    journal = Journal.create(path, header(), Redactor(["sk-made-up-key-0123456789abcdef"]))
    for turn in talk.turns(count):
        began = time.perf_counter(), time.thread_time()
        journal.request(turn.request)
        journal.exchange(turn.request.number, turn.exchange)
        journal.reply(turn.request.number, turn.reply)
        if turn.request.seat == "learner":
            journal.state(turn.request.number, canonical.digest(turn.request.number // 8))
        spent.append((time.perf_counter() - began[0], time.thread_time() - began[1]))
        exchanges.append(turn.exchange)
    journal.close({"result": talk.result(), "policy_states": [{"authenticated": True}], "tokens": {"prompt": 1}})
    return exchanges, spent


def vcr_yaml(exchanges: list[WireExchange]) -> bytes:
    """What vcrpy writes for the same exchanges."""
    from vcr.request import Request
    from vcr.serialize import serialize
    from vcr.serializers import yamlserializer

    requests, responses = [], []
    for exchange in exchanges:
        headers = {name: values[0] for name, values in exchange.request["headers"].items()}
        requests.append(Request(exchange.request["method"], exchange.request["uri"], exchange.request["body"], headers))
        reply = exchange.response
        responses.append({"status": reply["status"], "headers": reply["headers"], "body": {"string": reply["body"]}})
    return serialize({"requests": requests, "responses": responses}, yamlserializer).encode("utf-8")


def measure(count: int) -> dict[str, float]:
    """One row: sizes in bytes, ratios to vcrpy's YAML, milliseconds for a request."""
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder, "a.cassette.jsonl"), Path(folder, "b.cassette.jsonl.zst")
        exchanges, spent = record(plain, count)
        record(packed, count)
        yaml = len(vcr_yaml(exchanges))
        began = time.thread_time()
        reader.read(plain)
        read_s = time.thread_time() - began
        sizes = plain.stat().st_size, packed.stat().st_size
    return {
        "requests": count, "vcr_yaml_bytes": yaml, "plain_bytes": sizes[0], "zstd_bytes": sizes[1],
        "plain_ratio": yaml / sizes[0], "zstd_ratio": yaml / sizes[1],
        "record_wall_ms": _median_ms([wall for wall, _ in spent]),
        "record_cpu_ms": _median_ms([cpu for _, cpu in spent]),
        "record_cpu_last_ms": _median_ms([cpu for _, cpu in spent[-10:]]),
        "read_ms": 1000 * read_s,
    }  # fmt: skip


def _median_ms(seconds: list[float]) -> float:
    return 1000 * sorted(seconds)[len(seconds) // 2]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    rows = [measure(count) for count in LENGTHS]
    if parser.parse_args().json:
        print(json.dumps(rows, indent=1))
        return
    print("requests  vcrpy YAML B    plain B  ratio     zstd B  ratio"
          "  record ms a request: wall, CPU, CPU of the last ten  read CPU ms")
    for row in rows:
        print(
            f"{row['requests']:8}  {row['vcr_yaml_bytes']:12,}  {row['plain_bytes']:9,}  {row['plain_ratio']:4.1f}x"
            f"  {row['zstd_bytes']:9,}  {row['zstd_ratio']:4.0f}x  {row['record_wall_ms']:24.3f}"
            f", {row['record_cpu_ms']:.3f}, {row['record_cpu_last_ms']:.3f}       {row['read_ms']:9.1f}"
        )


if __name__ == "__main__":
    main()
