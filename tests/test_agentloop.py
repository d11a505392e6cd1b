"""The agent loop: record's own episode with the learner outside; the same bytes and ends, and no thread left."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from replaykit import agentloop, arm, canonical, record, seating
from replaykit.agentloop import AgentLoop, AsyncAgentLoop, Done, Learner
from replaykit.controls import identities
from replaykit.controls.server import ControlProvider
from replaykit.errors import UsageError
from replaykit.parity import Script as FactScript
from replaykit.replay_many import one
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, TransportRequest
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.scripted import Scripted
from replaykit.transports.sender import Sender

SEATS = ("learner", "customer", "judge")
HELLO, STOP = SeatReply("Hello"), SeatReply("###STOP###")


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    before = set(threading.enumerate())
    yield
    left = [t.name for t in threading.enumerate() if t not in before and t.name.startswith("episode")]
    assert left == []


@pytest.fixture(scope="session")
def named(runtime):
    """A seating without sources: models and header of an arm whose seats are scripts."""
    with ControlProvider() as provider, Sender() as sender:
        scenario = runtime.scenarios("airline")["0"]
        seated = seating.from_controls("one-exchange", scenario, "case", provider, sender)
    return replace(seated, sources={}, header=seated.header | {"controls": None})


@pytest.fixture
def loop(runtime, fleet, named):
    """A function that makes a loop in which the customer says what it is told to."""

    def make(*customer, panel="airline/0", kind=AgentLoop, **options):
        source = Scripted({"customer": customer or (HELLO, STOP), "judge": [SeatReply('{"results": []}')]})
        seats = replace(named, sources={"customer": source, "judge": source})
        return kind(panel, seats, fleet=fleet, engine=runtime, **options)

    return make


# --- the same episode -------------------------------------------------------------------------------------------------


def script(replies):
    """A seat's script: a fact's, or replies as they are."""
    return Scripted(dict.fromkeys(SEATS, replies)) if isinstance(replies[0], SeatReply) else FactScript(replies)


class FixedClock(datetime):
    """A clock that stands, so that two cassettes can be the same bytes."""

    @classmethod
    def now(cls, tz=None):
        return cls(2030, 1, 1, tzinfo=tz)


@pytest.fixture
def three_ways(runtime, fleet, named, tmp_path, monkeypatch):
    """A function that plays a scripted case recorded and in the loop, replays both, and requires that all agree."""
    monkeypatch.setattr(record, "datetime", FixedClock)

    def recorded(case, path):
        seated = replace(named, sources={seat: script(case["script"][seat]) for seat in SEATS})
        panel = fleet.panel(case["panel"])
        with Journal.create(path, record.header(runtime, fleet, panel, seated, 300), Redactor(())) as journal:
            return record.play(runtime, panel, seated, journal, 300, Redactor(()))

    def looped(case, path):
        seats = replace(named, sources={seat: script(case["script"][seat]) for seat in ("customer", "judge")})
        learner = script(case["script"]["learner"])
        asked = []

        def drive(request):
            asked.append(loop.native)
            return learner.ask(request, lambda exchange: None)

        with AgentLoop(case["panel"], seats, cassette=path, fleet=fleet, engine=runtime) as loop:
            return loop.run(drive), asked

    def play(case):
        paths = [tmp_path / f"{way}.cassette.jsonl" for way in ("recorded", "looped")]
        result = recorded(case, paths[0])
        done, asked = looped(case, paths[1])
        assert canonical.ordered(done.result.to_dict()) == canonical.ordered(result.to_dict())
        assert paths[0].read_bytes() == paths[1].read_bytes()
        cassette = reader.read(paths[1])
        natives = [r.native for r in cassette.requests if r.seat == "learner"]
        assert [canonical.ordered(a.to_dict()) for a in asked] == [canonical.ordered(n.to_dict()) for n in natives]
        assert canonical.ordered(cassette.footer["policy_states"]) == canonical.ordered(done.policy_states)
        for path in paths:
            report = one(path, fleet).report
            assert report.status == "equal", report.divergences[0].sentence
            path.unlink()
        return done

    return play


KINDS = {
    "reference": {"user_stop"},
    "perturbed": {"user_stop"},
    "one_exchange": {"user_stop"},
    "limits": {"max_steps", "too_many_errors"},
    "faults": {"agent_error", "user_error", "user_stop"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_replayed_and_driven_are_the_same_bytes(three_ways, facts, kind):
    cases = [case for case in facts["cases"] if case["kind"] == kind]
    sample = cases if kind == "faults" else cases[:: max(1, len(cases) // 8)]
    assert {three_ways(case).result.termination for case in sample} >= KINDS[kind]


TURNS = {
    "cut at the limit": SeatReply("Dear", finish_reason="length"),
    "a call cut at the limit": SeatReply(
        tool_calls=(ReplyCall("c", "calculate", '{"expr'),), usage={"prompt_tokens": 9, "completion_tokens": 4096}
    ),
    "a prompt above the context": SeatReply("Hi", usage={"prompt_tokens": 40_000, "completion_tokens": 1}),
    "a call without an id": SeatReply(tool_calls=(ReplyCall("", "calculate", '{"expression": "1+1"}'),)),
    "a lone surrogate": SeatReply("\ud800"),
    "a repeated id": SeatReply(tool_calls=tuple(ReplyCall("c", "calculate", '{"expression": "1+1"}') for _ in "ab")),
}


@pytest.mark.parametrize("case", TURNS)
def test_odd_turns_that_no_fact_holds_are_the_same_bytes_too(three_ways, facts, case):
    fact = next(c for c in facts["cases"] if c["kind"] == "one_exchange" and c["panel"] == "retail/2")
    three_ways({"panel": "retail/2", "script": fact["script"] | {"learner": [TURNS[case]]}})


def test_what_was_driven_ends_as_upstream_did(three_ways, facts):
    for case in facts["cases"][3:500:70]:
        done = three_ways(case)
        if "raised" not in case["expect"]:
            assert done.result.final_db_hash == case["expect"]["final_db_hash"]
            assert done.result.reward == case["expect"]["reward"]


# --- steps ------------------------------------------------------------------------------------------------------------


def test_the_first_step_is_the_learners_request(loop):
    with loop() as driven:
        step = driven.start()
        assert isinstance(step, TransportRequest)
        assert (step.seat, step.number, step.messages[-1]) == ("learner", 2, {"role": "user", "content": "Hello"})
        assert step.settings["max_output_tokens"] == 4096 and step.tools and driven.native.number == 2


def test_the_last_step_has_result_policy_states_and_usage(loop):
    with loop() as driven:
        driven.start()
        done = driven.reply({"content": "Good day.", "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
    assert isinstance(done, Done) and driven.native is None
    assert done.result.termination == "user_stop" and done.policy_states["final"]["termination"] == "user_stop"
    assert done.usage["learner"]["prompt_tokens"] == 5 and done.cassette is None


def test_tool_results_come_back_in_the_next_request(loop):
    with loop() as driven:
        driven.start()
        step = driven.reply(SeatReply(tool_calls=(ReplyCall("c", "list_all_airports", "{}"),)))
    assert step.messages[-1]["role"] == "tool" and "SFO" in step.messages[-1]["content"]


def test_a_learner_that_is_never_asked_gives_done_at_once(loop):
    with loop(STOP) as driven:
        assert isinstance(driven.start(), Done)


def test_a_learner_that_cannot_be_asked_ends_the_episode_as_a_seat_out_of_reach(loop):
    with loop() as driven:
        driven.start()
        done = driven.reply(SeatFailure("overloaded", "no worker is free"))
    assert (done.result.termination, done.result.reward) == ("infrastructure_error", None)


UNUSABLE = {
    "an empty reply": (SeatReply(""), "agent_error", "empty"),
    "a reply cut at the limit": (SeatReply("Dear", finish_reason="length"), "context_window_exceeded", "truncated"),
    "arguments that are a list": (
        SeatReply(tool_calls=(ReplyCall("c", "calculate", "[]"),)),
        "agent_error",
        "invalid_arguments",
    ),
    "a prompt above the context": (
        SeatReply("Hi", usage={"prompt_tokens": 40_000, "completion_tokens": 1}),
        "context_window_exceeded",
        "context_overflow",
    ),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_turn_that_cannot_be_used_is_lost_as_in_a_recording(loop, case):
    reply, termination, reason = UNUSABLE[case]
    with loop() as driven:
        driven.start()
        done = driven.reply(reply)
    assert (done.result.termination, done.result.lost_turn.reason) == (termination, reason)


NO_REPLIES = {
    "a text": "Hello",
    "nothing": None,
    "an unknown member": {"content": "x", "colour": "red"},
    "a content that is a number": {"content": 5},
    "arguments that are no text": {"content": None, "tool_calls": [{"id": "c", "name": "n", "arguments": {}}]},
    "a call without a name": {"content": None, "tool_calls": [{"id": "c", "arguments": "{}"}]},
    "a usage that is no number": {"content": "x", "usage": {"prompt_tokens": float("nan")}},
    "what JSON cannot hold": {"content": "x", "side": {"a": object()}},
}


@pytest.mark.parametrize("case", NO_REPLIES)
def test_what_is_no_reply_is_refused_and_the_request_still_stands(loop, case):
    with loop() as driven:
        driven.start()
        with pytest.raises(UsageError, match="no reply of a seat"):
            driven.reply(NO_REPLIES[case])
        assert isinstance(driven.reply(HELLO), Done)


def test_steps_out_of_turn_are_wrong_use(loop):
    with loop() as driven:
        with pytest.raises(UsageError, match="not asked anything"):
            driven.reply(HELLO)
        driven.start()
        with pytest.raises(UsageError, match="started before"):
            driven.start()
        driven.reply(HELLO)
        with pytest.raises(UsageError, match="not asked anything"):
            driven.reply(HELLO)


# --- who sits where ---------------------------------------------------------------------------------------------------


def test_controls_sit_at_the_other_seats_and_the_cassette_says_who_drove(runtime, fleet, tmp_path):
    path = tmp_path / "c.cassette.jsonl"
    with AgentLoop("retail/2", "reference", learner=Learner("checkpoint-7"), cassette=path, fleet=fleet) as driven:
        driven.run(lambda request: HELLO)
    header = reader.read(path).header
    assert header["controls"] == "reference" and header["arm"]["name"] == "checkpoint-7"
    assert header["arm"]["learner"]["transport"] == header["transports"]["learner"]["transport"] == "outside"
    assert one(path, fleet).report.status == "equal"


def test_an_arm_gives_customer_judge_and_the_learners_model_without_its_key(runtime, fleet):
    with ControlProvider() as provider:
        provider.add_case("case", identities.one_exchange())
        seats = {s: {"model": f"{s}-model", "base_url": provider.base_url("case", s)} for s in SEATS}
        seats["learner"] = {"model": "my-model", "key_env": "A_VARIABLE_THAT_IS_NOT_SET"}
        with AgentLoop("airline/0", arm.parse({"name": "a", **seats}, "a", "test"), fleet=fleet) as driven:
            step = driven.start()
            assert (step.model, driven.native.model) == ("my-model", "my-model")
            assert isinstance(driven.reply(HELLO), Done)


def test_a_learner_beside_a_seating_is_refused(loop):
    with pytest.raises(UsageError, match="names its own learner"):
        loop(learner=Learner("x"))


NOWHERE = [("airline/99", "reference", "no panel"), ("airline/0", "none", "no controls")]


@pytest.mark.parametrize(("panel", "seats", "sentence"), NOWHERE)
def test_seats_or_panels_that_are_not_there_are_named(runtime, fleet, panel, seats, sentence):
    with pytest.raises(UsageError, match=sentence), AgentLoop(panel, seats, fleet=fleet) as driven:
        driven.start()


# --- leaving and failing ----------------------------------------------------------------------------------------------


def test_leaving_early_ends_the_thread_and_keeps_an_interrupted_cassette(loop, tmp_path):
    path = tmp_path / "c.cassette.jsonl"
    with loop(cassette=path) as driven:
        driven.start()
    cassette = reader.read(path)
    assert cassette.interrupted and cassette.requests[-1].seat == "learner"
    with pytest.raises(UsageError, match="not asked anything"):
        driven.reply(HELLO)


def test_closing_twice_or_before_the_start_does_nothing(loop):
    driven = loop()
    driven.close()
    driven.close()
    with pytest.raises(UsageError, match="started before"):
        driven.start()


def test_a_loop_that_was_forgotten_lets_go_of_its_thread(loop):
    driven = loop()
    driven.start()
    thread = driven._thread
    del driven
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def full_disk(monkeypatch):
    """The record of an episode cannot be kept."""

    def request(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.Keeping, "request", request)


def test_an_error_in_the_episode_is_raised_where_the_driver_waits(loop, full_disk):
    with loop() as driven:
        with pytest.raises(OSError, match="No space left"):
            driven.start()
        with pytest.raises(UsageError, match="not asked anything"):
            driven.reply(HELLO)


def test_a_customer_whose_code_breaks_ends_the_episode(named, fleet, runtime):
    class Broken:
        def ask(self, request, on_exchange):
            raise ZeroDivisionError("the customer broke")

    seats = replace(named, sources=dict.fromkeys(SEATS, Broken()))
    with AgentLoop("airline/0", seats, fleet=fleet, engine=runtime) as driven:
        done = driven.start()
    assert (done.result.termination, done.result.reward) == ("infrastructure_error", None)
    assert done.result.lost_turn.detail == "the transport raised ZeroDivisionError: the customer broke"


def test_a_cassette_that_exists_is_not_overwritten(loop, tmp_path):
    path = tmp_path / "c.cassette.jsonl"
    path.write_bytes(b"mine")
    with loop(cassette=path) as driven, pytest.raises(UsageError, match="never overwritten"):
        driven.start()
    assert path.read_bytes() == b"mine"


def test_loops_side_by_side_do_not_mix(loop):
    loops = [loop(SeatReply(f"Hello from {i}"), STOP) for i in range(6)]
    steps = [driven.start() for driven in loops]
    assert [step.messages[-1]["content"] for step in steps] == [f"Hello from {i}" for i in range(6)]
    for driven in reversed(loops):
        assert isinstance(driven.reply(HELLO), Done)
        driven.close()


# --- coroutines -------------------------------------------------------------------------------------------------------


def test_coroutines_drive_many_episodes_on_one_thread(loop, facts):
    async def drive(name):
        async with loop(SeatReply(name), STOP, kind=AsyncAgentLoop) as driven:
            seen = []

            async def learner(request):
                seen.append(request.messages[-1]["content"])
                await asyncio.sleep(0)
                return {"content": "Good day."}

            return (await driven.run(learner)).result.termination, seen

    async def together():
        return await asyncio.gather(*(drive(f"n{i}") for i in range(12)))

    assert asyncio.run(together()) == [("user_stop", [f"n{i}"]) for i in range(12)]


def test_a_wait_that_is_cancelled_ends_the_episode(named, fleet, runtime):
    held = threading.Event()

    class Slow:
        def ask(self, request, on_exchange):
            held.wait(10)
            return HELLO

    async def give_up():
        seats = replace(named, sources=dict.fromkeys(SEATS, Slow()))
        driven = AsyncAgentLoop("airline/0", seats, fleet=fleet, engine=runtime)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(driven.start(), 0.05)
        held.set()
        driven._loop._thread.join(10)
        assert not driven._loop._thread.is_alive()

    asyncio.run(give_up())


def test_errors_reach_coroutines(named, fleet, runtime, full_disk):
    async def drive():
        async with AsyncAgentLoop("airline/0", named, fleet=fleet, engine=runtime) as driven:
            await driven.start()

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(drive())


def test_the_example_at_the_top_of_the_module_runs(runtime, fleet, monkeypatch, capsys):
    monkeypatch.chdir(Path(__file__).parent.parent)
    lines = (agentloop.__doc__ or "").splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    "))
    exec(example, {"AgentLoop": AgentLoop, "Done": Done, "my_model": lambda messages, tools: "Good day."})
    assert json.loads(capsys.readouterr().out.split()[0]) in (0.0, 1.0)
