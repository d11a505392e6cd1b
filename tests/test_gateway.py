"""The gateway: one order for every request, whoever answers, and nothing goes out that must not."""

from __future__ import annotations

import copy

import pytest

from replaykit.budget import Budget, BudgetSpent, Ledger
from replaykit.controls import identities
from replaykit.controls.server import ControlProvider
from replaykit.episode import LostTurn, TurnLost
from replaykit.gateway import Gateway
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, SeatRequest, WireExchange
from replaykit.transports.openai_chat import OpenAIChat
from replaykit.transports.sender import Sender

CALL = {"id": "call_0", "name": "get_user", "function": {"name": "get_user", "arguments": "{}"}, "type": "function"}
TOOL = {"type": "function", "function": {"name": "get_user", "description": "x", "parameters": {"type": "object", "properties": {}}}}


class Steps:
    """A record that keeps the names of what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def __getattr__(self, name: str):
        return lambda *arguments: self.told.append((name, *arguments))


class Answers:
    """A source with one answer: a reply, or an exception."""

    def __init__(self, answer: object, steps: Steps | None = None) -> None:
        self.answer, self.steps, self.asked = answer, steps, []

    def ask(self, request, on_exchange):
        self.asked.append(request)
        if self.steps:
            self.steps.told.append(("sent", request.number))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def request(seat: str = "learner", number: int = 1, messages: list | None = None) -> SeatRequest:
    history = messages or [{"role": "system", "content": "policy"}, {"role": "user", "content": "hi"}]
    tools = [TOOL] if seat == "learner" else None
    return SeatRequest(seat, number, "m", history, tools, "auto" if tools else None, {"temperature": 0.0, "seed": 1, "num_retries": 3})


def gateway(answer: object, steps: Steps | None = None, budget: Budget | None = None, clock=lambda: 0.0) -> tuple[Gateway, Answers]:
    source = Answers(answer, steps)
    return Gateway(dict.fromkeys(("learner", "customer", "judge"), source), steps or Steps(), Ledger(budget or Budget(), clock)), source


def history_with_call(outer: str = "get_user") -> list[dict]:
    call = copy.deepcopy(CALL) | {"name": outer}
    return [
        {"role": "system", "content": "policy"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "{}", "tool_call_id": "call_0"},
    ]


def test_the_request_is_on_record_before_it_is_sent():
    steps = Steps()
    gate, _ = gateway(SeatReply("hello"), steps)
    gate.ask(request())
    assert [t[0] for t in steps.told] == ["request", "sent", "reply"]


def test_a_failure_is_on_record_as_it_arrives():
    steps = Steps()
    gate, _ = gateway(SeatFailure("unreachable", "refused"), steps)
    with pytest.raises(TurnLost) as lost:
        gate.ask(request())
    assert [t[0] for t in steps.told] == ["request", "sent", "failure"]
    assert lost.value.turn.termination == "infrastructure_error"


def test_two_names_that_disagree_stop_the_request_before_the_source():
    steps = Steps()
    gate, source = gateway(SeatReply("hello"), steps)
    with pytest.raises(TurnLost) as lost:
        gate.ask(request(messages=history_with_call("get_order")))
    assert source.asked == []
    assert lost.value.turn.reason == "tool_name_mismatch"
    assert steps.told[-1][0] == "end" and steps.told[-1][2]["pointer"] == "/messages/2/tool_calls/0"


def test_the_names_are_checked_before_the_transport_form_drops_one():
    gate, source = gateway(SeatReply("hello"))
    native = request(messages=history_with_call())
    gate.ask(native)
    assert source.asked[0].messages[2]["tool_calls"][0] == {"id": "call_0", "type": "function", "function": {"name": "get_user", "arguments": "{}"}}
    assert native.messages[2]["tool_calls"][0]["name"] == "get_user"


def test_a_mismatch_in_the_third_request_leaves_no_byte_at_the_provider():
    with ControlProvider() as provider, Sender() as sender:
        provider.add_case("c", identities.one_exchange())
        seat = OpenAIChat(provider.base_url("c", "learner"), "m", "key-0000000", sender)
        gate = Gateway({"learner": seat}, Steps(), Ledger(Budget(), lambda: 0.0))
        gate.ask(request(number=1))
        gate.ask(request(number=2, messages=history_with_call()))
        with pytest.raises(TurnLost):
            gate.ask(request(number=3, messages=history_with_call("other")))
        assert provider.request_count("c") == 2
        assert all(b"other" not in e.request for e in provider.journal)


def test_settings_are_spelled_out_and_the_judge_gets_no_seed():
    gate, source = gateway(SeatReply("hello"))
    gate.ask(request("learner", 1))
    gate.ask(request("customer", 2))
    gate.ask(request("judge", 3))
    assert source.asked[0].settings == {"temperature": 0.0, "top_p": 1.0, "max_output_tokens": 4096, "seed": 1}
    assert source.asked[1].settings["max_output_tokens"] == 1024
    assert "seed" not in source.asked[2].settings
    assert source.asked[0].deadline_s == 17.0


def test_the_202nd_request_is_not_sent():
    steps = Steps()
    gate, source = gateway(SeatReply("hello"), steps)
    for number in range(1, 202):
        gate.ask(request(number=number))
    with pytest.raises(TurnLost) as lost:
        gate.ask(request(number=202))
    assert len(source.asked) == 201
    assert (lost.value.turn.termination, lost.value.turn.reason) == ("timeout", "budget_requests")
    assert steps.told[-1] == ("end", 202, {"reason": "budget", "limit": "requests"})


LIMITS = {"wall": 6000.0, "simulation": 394.0}


@pytest.mark.parametrize(("limit", "elapsed"), LIMITS.items(), ids=LIMITS.keys())
def test_a_spent_clock_ends_the_episode_as_timeout(limit, elapsed):
    times = iter([0.0])
    gate, source = gateway(SeatReply("hello"), clock=lambda: next(times, elapsed))
    with pytest.raises(TurnLost) as lost:
        gate.ask(request())
    assert source.asked == [] and lost.value.turn.reason == f"budget_{limit}"


def test_the_budget_adds_up_to_6000_seconds():
    assert Budget().wall_s == 201 * (17 + 10) + 180 + 393 == 6000


def test_connection_time_is_a_budget_of_its_own():
    ledger = Ledger(Budget(), lambda: 0.0)
    ledger.connecting_s = 180.0
    with pytest.raises(BudgetSpent, match="connection"):
        ledger.debit()


def call(arguments: object, name: object = "get_user") -> SeatReply:
    return SeatReply(None, (ReplyCall("c", name, arguments),), "tool_calls")


def counted(reply: SeatReply, **usage: int) -> SeatReply:
    return SeatReply(reply.content, reply.tool_calls, reply.finish_reason, usage)


RULES = {  # sentence -> (seat, reply, reason or None, termination)
    "text is a turn": ("learner", SeatReply("hello"), None, None),
    "a call is a turn": ("learner", call("{}"), None, None),
    "a call under the label stop is a turn": ("learner", SeatReply(None, (ReplyCall("c", "f", "{}"),), "stop"), None, None),
    "a text cut at the limit is not": ("learner", SeatReply("half a", (), "length"), "truncated", "context_window_exceeded"),
    "a call cut at the limit is not": ("learner", SeatReply(None, (ReplyCall("c", "f", "{"),), "length"), "truncated", "context_window_exceeded"),
    "broken arguments at the limit were cut": ("learner", counted(call('{"a'), prompt_tokens=1, completion_tokens=4096), "truncated", "context_window_exceeded"),
    "broken arguments below the limit are the model's": ("learner", counted(call('{"a'), prompt_tokens=1, completion_tokens=9), "invalid_arguments", "agent_error"),
    "an empty string as arguments": ("learner", call(""), "invalid_arguments", "agent_error"),
    "a list as arguments": ("learner", call("[1]"), "invalid_arguments", "agent_error"),
    "a string as arguments": ("learner", call('"{}"'), "invalid_arguments", "agent_error"),
    "null as arguments": ("learner", call("null"), "invalid_arguments", "agent_error"),
    "two objects as arguments": ("learner", call('{"a":1}{"a":2}'), "invalid_arguments", "agent_error"),
    "a number of 5,000 digits": ("learner", call('{"a": ' + "9" * 5000 + "}"), "invalid_arguments", "agent_error"),
    "arguments nested without end": ("learner", call("[" * 100_000), "invalid_arguments", "agent_error"),
    "NaN is tau2's own JSON": ("learner", call('{"a": NaN}'), None, None),
    "nothing at all": ("learner", SeatReply(None), "empty", "agent_error"),
    "blanks": ("learner", SeatReply("  \n"), "empty", "agent_error"),
    "a call without a name": ("learner", call("{}", None), "malformed_call", "agent_error"),
    "a prompt above 32,768 tokens": ("learner", counted(SeatReply("x"), prompt_tokens=32_769, completion_tokens=1), "context_overflow", "context_window_exceeded"),
    "a prompt of 32,768 tokens": ("learner", counted(SeatReply("x"), prompt_tokens=32_768, completion_tokens=1), None, None),
    "an empty customer": ("customer", SeatReply(""), "empty", "user_error"),
    "a customer's cut text goes on": ("customer", SeatReply("half a", (), "length"), None, None),
    "a customer's overflow": ("customer", counted(SeatReply("x"), prompt_tokens=40_000, completion_tokens=1), "context_overflow", "user_error"),
    "an empty judge is tau2's to parse": ("judge", SeatReply(""), None, None),
    "a judge's overflow leaves the termination": ("judge", counted(SeatReply("{}"), prompt_tokens=40_000, completion_tokens=1), "context_overflow", None),
}


@pytest.mark.parametrize(("seat", "reply", "reason", "termination"), RULES.values(), ids=RULES.keys())
def test_turn_rule(seat, reply, reason, termination):
    gate, _ = gateway(reply)
    if reason is None:
        assert gate.ask(request(seat)) == reply
        return
    with pytest.raises(TurnLost) as lost:
        gate.ask(request(seat))
    assert (lost.value.turn.reason, lost.value.turn.termination) == (reason, termination)


FAILURES = {
    "a learner's overflow in the provider's words": ("learner", "context_overflow", "context_window_exceeded"),
    "a customer's overflow in the provider's words": ("customer", "context_overflow", "user_error"),
    "a judge's overflow in the provider's words": ("judge", "context_overflow", None),
    "a learner out of reach": ("learner", "unreachable", "infrastructure_error"),
    "a customer past the deadline": ("customer", "deadline", "infrastructure_error"),
    "a judge refused": ("judge", "auth", "infrastructure_error"),
}


@pytest.mark.parametrize(("seat", "kind", "termination"), FAILURES.values(), ids=FAILURES.keys())
def test_failure_rule(seat, kind, termination):
    gate, _ = gateway(SeatFailure(kind, "said so"))
    with pytest.raises(TurnLost) as lost:
        gate.ask(request(seat))
    assert lost.value.turn.termination == termination


def test_what_a_provider_wants_back_goes_to_the_same_seat_only():
    side = {"call_0": {"signature": "s"}}
    learner, customer = Answers(SeatReply("x", side=side)), Answers(SeatReply("y"))
    gate = Gateway({"learner": learner, "customer": customer}, Steps(), Ledger(Budget(), lambda: 0.0))
    gate.ask(request("learner", 1))
    gate.ask(request("customer", 2))
    gate.ask(request("learner", 3))
    assert (learner.asked[1].side, customer.asked[0].side) == (side, {})


def test_a_source_that_writes_on_its_request_spoils_neither_history_nor_tools():
    class Scribbler:
        def ask(self, asked, on_exchange):
            asked.tools[0]["function"]["name"] = "spoilt"
            for message in asked.messages:
                message["content"] = "spoilt"
            return SeatReply("x")

    native = request(messages=history_with_call())
    before = copy.deepcopy(native.to_dict())
    Gateway({"learner": Scribbler()}, Steps(), Ledger(Budget(), lambda: 0.0)).ask(native)
    assert native.to_dict() == before


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ValueError("no such field"), "the transport raised ValueError: no such field"),
        (KeyError("choices"), "the transport raised KeyError: 'choices'"),
        (None, "the transport returned a NoneType, which is no SeatReply"),
        ({"content": "x"}, "the transport returned a dict, which is no SeatReply"),
        (SeatReply(content=5), "the transport returned no usable reply: a reply's content is a int"),
        (SeatReply("x", cost=float("nan")), "the transport returned no usable reply: Out of range float values are not JSON compliant"),
        (SeatReply("x", usage={"a": b"x"}), "the transport returned no usable reply: Object of type bytes is not JSON serializable"),
        (SeatFailure(5, "x"), "the transport raised a failure that cannot be written: a failure's kind and message are texts"),
        (SeatReply(tool_calls=("call",)), "the transport returned no usable reply: a reply's tool_calls are no ReplyCall"),
    ],
)
def test_whatever_a_transport_does_wrong_is_a_failure_of_its_seat(answer, words):
    steps = Steps()
    gate, _ = gateway(answer, steps)
    with pytest.raises(TurnLost) as lost:
        gate.ask(request())
    assert [t[0] for t in steps.told] == ["request", "sent", "failure"]
    assert lost.value.turn == LostTurn("learner", 1, "transport_error", "infrastructure_error", words)


@pytest.mark.parametrize("hides", [None, SeatFailure("malformed", "x"), ValueError("x")], ids=["nothing", "a failure", "an error"])
def test_a_record_that_cannot_be_kept_is_no_fault_of_the_transport(hides):
    class Full(Steps):
        def exchange(self, number, exchange):
            raise OSError(28, "No space left on device")

    class Swallows:
        def ask(self, asked, on_exchange):
            try:
                on_exchange(WireExchange(1, {}))
            except OSError:
                if hides:
                    raise hides from None
            return SeatReply("x")

    steps = Full()
    with pytest.raises(OSError, match="No space left"):
        Gateway({"learner": Swallows()}, steps, Ledger(Budget(), lambda: 0.0)).ask(request())
    assert [t[0] for t in steps.told] == ["request"]
