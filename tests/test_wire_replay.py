"""On the level of the wire, the transport's own code runs again on the recorded HTTP; a changed one is seen."""

from __future__ import annotations

import dataclasses
import json

import pytest

from replaykit import record_many
from replaykit.controls import identities
from replaykit.controls.faults import Fault, Schedule
from replaykit.controls.server import ControlProvider
from replaykit.replay import replay
from replaykit.seating import _control_scenario
from replaykit.store import reader
from replaykit.transports import anthropic_messages, gemini_generate, openai_chat, openai_responses

from .diff.rewriting import rewritten

WIRES = {
    "openai-chat": openai_chat.OpenAIChat,
    "openai-responses": openai_responses.OpenAIResponses,
    "anthropic-messages": anthropic_messages.AnthropicMessages,
    "gemini-generate": gemini_generate.GeminiGenerate,
}


@pytest.fixture
def recorded(runtime, fleet, tmp_path):
    """A function that records airline/7 over one wire at a control provider, and gives the cassette."""

    def record(wire: str = "openai-chat", schedule: Schedule | None = None):
        with ControlProvider() as provider:
            hosts = identities.reference(_control_scenario(runtime.scenarios("airline")["7"]))
            provider.add_case(wire, hosts, schedule)
            seat = '[{0}]\ntransport = "{1}"\nmodel = "control"\nbase_url = "{2}"\n'
            seats = [seat.format(s, wire, provider.base_url(wire, s, wire)) for s in ("learner", "customer", "judge")]
            arm = tmp_path / f"{wire}.toml"
            arm.write_text("".join(seats))
            plan = record_many.Plan(fleet, ("airline/7",), (300,), tmp_path / "rec", False, 1)
            return reader.read(record_many.run(plan, None, arm, record_many.Watch())[0].path)

    return record


@pytest.fixture
def again(runtime, fleet):
    """A function that replays on the level of the wire."""
    return lambda cassette: replay(cassette, runtime, fleet, "again", "wire")


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_an_unchanged_transport_builds_and_reads_the_same(recorded, again, wire):
    report = again(recorded(wire))
    assert (report.status, report.divergences) == ("equal", ())
    assert {"wire requests", "wire replies"} <= set(report.checked)


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_transport_that_writes_another_body_is_named_with_the_place(recorded, again, monkeypatch, wire):
    cassette = recorded(wire)
    native = WIRES[wire].to_wire
    monkeypatch.setattr(WIRES[wire], "to_wire", lambda self, request: native(self, request) | {"added": True})
    first = again(cassette).divergences[0]
    assert (first.kind, first.pointer, first.number) == ("wire_request", "/added", 1)


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_transport_that_reads_another_reply_is_named_with_the_place(recorded, again, monkeypatch, wire):
    cassette = recorded(wire)
    native = WIRES[wire].from_wire

    def changed(self, *arguments):
        return dataclasses.replace(native(self, *arguments), finish_reason="length")

    monkeypatch.setattr(WIRES[wire], "from_wire", changed)
    first = again(cassette).divergences[0]
    assert (first.kind, first.pointer, first.actual) == ("wire_reply", "/finish_reason", "length")


def test_the_same_json_in_other_bytes_is_another_wire_request(recorded, again, monkeypatch):
    cassette = recorded()
    monkeypatch.setattr("replaykit.transports.bodies.encode", lambda body: json.dumps(body).encode())
    first = again(cassette).divergences[0]
    assert (first.kind, first.pointer) == ("wire_request", "")
    assert "same JSON in other bytes" in first.sentence


def test_another_address_is_another_wire_request(recorded, again, monkeypatch):
    cassette = recorded()
    monkeypatch.setattr(openai_chat.OpenAIChat, "url", lambda self, request: self.base_url + "/completions")
    assert again(cassette).divergences[0].pointer == "/uri"


def test_a_recorded_failure_is_read_again_as_one(recorded, again, monkeypatch):
    cassette = recorded("openai-chat", Schedule({"learner": {2: Fault("status", {"status": 503})}}))
    assert again(cassette).status == "equal"
    monkeypatch.setattr(openai_chat.OpenAIChat, "from_wire", lambda *_: openai_chat.SeatReply("all is well"))
    assert again(cassette).divergences[-1].kind == "wire_reply"


def test_the_seat_level_does_not_look_at_the_wire(recorded, runtime, fleet, monkeypatch):
    cassette = recorded()
    monkeypatch.setattr(openai_chat.OpenAIChat, "to_wire", lambda self, request: {})
    assert replay(cassette, runtime, fleet, "seat").status == "equal"


def test_a_cassette_without_a_wire_is_incomplete_on_this_level_and_never_equal(recorded, again, tmp_path):
    bare = rewritten(recorded(), tmp_path / "bare.cassette.jsonl", lambda data: None)
    report = again(bare)
    assert report.status == "incomplete"
    assert "nothing is known of the wire" in report.notes[-1]


def test_a_cassette_cannot_name_code_to_import(recorded, again):
    cassette = recorded()
    cassette.header["arm"]["learner"]["transport"] = "os:system"
    report = again(cassette)
    assert report.status == "incomplete"
    assert "neither built in nor installed" in " ".join(report.notes)


def test_a_transport_that_raises_now_is_a_divergence_and_no_crash(recorded, again, monkeypatch):
    def broken(self, request):
        raise AttributeError("no attribute 'tools'")

    cassette = recorded()
    monkeypatch.setattr(openai_chat.OpenAIChat, "to_wire", broken)
    report = again(cassette)
    first = report.divergences[0]
    assert (report.status, first.kind, first.seat) == ("diverged", "wire_request", "customer")
    assert first.sentence.endswith("the transport's own code raises now: AttributeError: no attribute 'tools'")
