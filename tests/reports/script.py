"""Episodes made up for the reports: written through the journal, so no engine is needed."""

from __future__ import annotations

from pathlib import Path

from replaykit import canonical
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, SeatRequest, WireExchange
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

TOOLS = ("cancel_pending_order", "find_user_id_by_email", "get_order_details", "transfer_to_human_agents")
HEADER = {
    "panel": "retail/2",
    "fleet_digest": "f" * 64,
    "engine": {"kind": "made-up", "distribution": "tau2-made-up", "version": "1", "revision": "unknown"},
    "settings": {"version": "tau3-text/1"},
    "budget": {"requests": 201},
    "roster": {
        "customer": {"model": "customer-model", "transport": "scripted"},
        "judge": {"model": "judge-model", "transport": "scripted"},
    },
    "arm": {
        "name": "made-up",
        "learner": {"model": "learner-model", "transport": "scripted", "control": "control:made-up"},
    },
    "seeds": {"case": 300, "trial": 626729},
    "controls": "made-up",
    "created_by": {"tool": "replaykit", "version": "0"},
    "created_at": "2026-01-01T00:00:00+00:00",
}
SCHEMAS = [{"type": "function", "function": {"name": name, "description": f"The tool {name}."}} for name in TOOLS]


class Script:
    """Writes an episode message by message: what a seat says is a request, an exchange and a reply.

    Args:
        path: The cassette.
        header: Members that differ from `HEADER`.
    """

    def __init__(self, path: Path, **header: object) -> None:
        self.path = path
        self.journal = Journal.create(path, {**HEADER, **header}, Redactor())
        self.trajectory: list[dict] = []
        self._native: list[dict] = [{"role": "system", "content": "You are an agent. <policy>Be kind.</policy>"}]
        self._number = 0
        self._heard("assistant", "Hi! How can I help you today?")

    def customer(self, text: str) -> Script:
        """The customer says something."""
        self._reply("customer", SeatReply(text, finish_reason="stop"), self._flipped(), None)
        self._heard("user", text)
        return self

    def learner(self, text: str | None = None, *calls: tuple[str, dict]) -> Script:
        """The learner says something, or calls tools."""
        asked = [
            {"id": f"call_{self._number}_{i}", "name": name, "arguments": arguments, "requestor": "assistant"}
            for i, (name, arguments) in enumerate(calls)
        ]
        made = tuple(ReplyCall(c["id"], c["name"], canonical.line(c["arguments"]).decode()) for c in asked)
        self._reply("learner", SeatReply(text, made, "tool_calls" if made else "stop"), list(self._native), SCHEMAS)
        self._heard("assistant", text, asked or None)
        return self

    def result(self, content: str, error: bool = False) -> Script:
        """A tool's result for the last call."""
        call_id = self.trajectory[-1]["tool_calls"][0]["id"]
        message = {"role": "tool", "id": call_id, "content": content, "requestor": "assistant", "error": error}
        self.trajectory.append(message)
        self._native.append({"role": "tool", "content": content, "tool_call_id": call_id})
        return self

    def judge(self, text: str) -> Script:
        """The judge replies."""
        self._reply("judge", SeatReply(text), [{"role": "user", "content": "Judge."}], None)
        return self

    def fails(self, seat: str, kind: str, message: str) -> Script:
        """A request that got no usable reply."""
        request = self._request(seat, list(self._native), None)
        self.journal.failure(request.number, SeatFailure(kind, message))
        return self

    def asks(self, seat: str = "learner") -> Script:
        """A request without an answer: the recorder died."""
        self._request(seat, list(self._native), SCHEMAS)
        return self

    def interrupt(self) -> Path:
        """Leave it without an end."""
        self.journal.abandon()
        return self.path

    def end(self, **result: object) -> Path:
        """Write the footer; members of the result that differ are named."""
        states = result.pop("policy_states", {"turns": [], "final": {}})
        self.journal.close({"result": self._result() | result, "policy_states": states})
        return self.path

    def _result(self) -> dict:
        return {
            "trajectory": self.trajectory,
            "termination": "user_stop",
            "steps": len(self.trajectory) - 1,
            "errors": sum(bool(m.get("error")) for m in self.trajectory),
            "initial_db_hash": "0" * 64,
            "final_db_hash": "1" * 64,
            "reward": 1.0,
            "reward_info": {"reward_basis": ["DB"], "breakdown": {"DB": 1.0}},
            "learner_state": [],
            "customer_state": [],
            "reference_actions": [],
            "lost_turn": None,
            "diagnostics": [],
            "seed": 626729,
            "db_changes": {},
        }

    def _heard(self, role: str, text: str | None, calls: list | None = None) -> None:
        self.trajectory.append({"role": role, "content": text, "tool_calls": calls})
        message = {"role": role, "content": text}
        if calls:
            message["tool_calls"] = [_native_call(call) for call in calls]
        self._native.append(message)

    def _flipped(self) -> list[dict]:
        roles = {"assistant": "user", "user": "assistant"}
        said = [m for m in self.trajectory if m["role"] in roles and not m["tool_calls"]]
        return [{"role": "system", "content": "You are a customer."}] + [
            {"role": roles[m["role"]], "content": m["content"]} for m in said
        ]

    def _request(self, seat: str, messages: list, tools: list | None) -> SeatRequest:
        self._number += 1
        choice = "auto" if tools else None
        request = SeatRequest(seat, self._number, f"{seat}-model", messages, tools, choice, {"temperature": 0.0})
        self.journal.request(request)
        return request

    def _reply(self, seat: str, reply: SeatReply, messages: list, tools: list | None) -> None:
        request = self._request(seat, messages, tools)
        self.journal.exchange(request.number, _exchange(request, reply))
        self.journal.reply(request.number, reply)


def _native_call(call: dict) -> dict:
    function = {"name": call["name"], "arguments": canonical.line(call["arguments"]).decode()}
    return {"id": call["id"], "name": call["name"], "function": function, "type": "function"}


def _exchange(request: SeatRequest, reply: SeatReply) -> WireExchange:
    asked = canonical.line({"model": request.model, "messages": request.messages, "temperature": 0.0})
    answer = canonical.line({"id": f"r{request.number}", "choices": [{"message": reply.to_dict()}]})
    headers = {"content-type": ["application/json"]}
    return WireExchange(
        1,
        {"method": "POST", "uri": "http://127.0.0.1:9/v1/chat/completions", "headers": headers, "body": asked},
        {"status": {"code": 200, "message": "OK"}, "headers": headers, "body": answer},
        timing={"total_s": 0.01},
    )


