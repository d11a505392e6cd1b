"""Recording: what the seats are asked really goes over HTTP, and everything that crosses is kept."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from replaykit import arm, record, record_many, resume, seating
from replaykit.cli import app
from replaykit.controls import identities
from replaykit.controls.server import ControlProvider
from replaykit.errors import UsageError
from replaykit.gateway import guarded
from replaykit.replay_many import one
from replaykit.seats import SEATS, SeatFailure, SeatReply, WireExchange
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.sender import Sender

CANARY = "sk-canary-7f3a9c21d4e8"


def arm_on(provider: ControlProvider, case: str, key_env: str = "CANARY_KEY") -> arm.Arm:
    """An arm whose seats all sit at a case of the control provider, with the key in header, URL and body too."""
    seat = {"model": "m", "key_env": key_env, "headers": {"x-team": CANARY}, "body": {"metadata": {"note": CANARY}}}
    seats = {s: seat | {"base_url": provider.base_url(case, s)} for s in ("learner", "customer", "judge")}
    return arm.parse({"name": "canary", **seats}, "canary", "test")


def play(runtime, fleet, panel_id, seated, path) -> record.EpisodeResult:
    """Record one episode with a given seating."""
    panel, redactor = fleet.panel(panel_id), Redactor(seated.secrets)
    with Journal.create(path, record.header(runtime, fleet, panel, seated, 300), redactor) as journal:
        return record.play(runtime, panel, seated, journal, 300, redactor)


def test_a_recorded_episode_holds_everything(recording):
    cassette = reader.read(recording("retail/2")[0])
    assert [r.seat for r in cassette.requests][:2] == ["customer", "learner"] and cassette.requests[-1].seat == "judge"
    assert all(isinstance(r.outcome, SeatReply) and len(r.exchanges) == 1 for r in cassette.requests)
    assert cassette.result.termination == "user_stop" and cassette.result.reward is not None
    assert cassette.footer["policy_states"]["turns"] and cassette.states
    assert set(cassette.header) >= {"panel", "fleet_digest", "engine", "settings", "budget", "roster", "arm", "seeds", "controls"}


def test_the_native_request_is_kept_with_both_names_and_the_wire_body_without(recording):
    cassette = reader.read(recording("retail/2")[0])
    later = cassette.requests[4]
    native = next(m for m in later.native.messages if m.get("tool_calls"))["tool_calls"][0]
    wire = next(m for m in json.loads(later.exchanges[0].request["body"])["messages"] if m.get("tool_calls"))["tool_calls"][0]
    assert native["name"] == native["function"]["name"] and "name" not in wire


def test_what_ran_on_controls_says_so(recording):
    header = reader.read(recording("airline/0", controls="one-exchange")[0]).header
    assert header["controls"] == "one-exchange" and header["arm"]["learner"]["control"]["control"] is True
    assert header["roster"]["customer"]["control"].startswith("control:one-exchange/customer")


def test_an_existing_cassette_is_never_overwritten(recording):
    path = recording("airline/0")[0]
    before = path.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        recording("airline/0")
    assert path.read_bytes() == before


def test_eight_episodes_in_threads_do_not_mix(recording, runtime, fleet, tmp_path):
    panels = ("airline/7", "airline/13", "airline/23", "airline/33", "retail/2", "retail/10", "retail/37", "retail/59")
    together = recording(*panels, out=tmp_path / "together", jobs=8)
    alone = recording(*panels, out=tmp_path / "alone", jobs=1)
    for a, b in zip(together, alone, strict=True):
        left, right = reader.read(a), reader.read(b)
        assert [r.digest for r in left.requests] == [r.digest for r in right.requests]
        assert left.result == right.result


def test_a_canary_key_is_in_no_file_log_or_error(runtime, fleet, tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    echoing = identities.scripted("learner", [{"content": f"Your key is {CANARY}."}])
    with ControlProvider() as provider, Sender() as sender, caplog.at_level("DEBUG"):
        provider.add_case("case", identities.one_exchange() | {"learner": echoing})
        seated = seating.from_arm(arm_on(provider, "case"), sender)
        result = play(runtime, fleet, "retail/2", seated, tmp_path / "c.cassette.jsonl")
        assert CANARY.encode() in b"".join(e.request for e in provider.journal)
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    printed = caplog.text + "".join(capfd.readouterr()) + json.dumps(result.to_dict())
    assert CANARY.encode() not in everything and CANARY not in printed
    assert "reply.secret_redacted" in [d.name for d in result.diagnostics]
    assert one(tmp_path / "c.cassette.jsonl", fleet).report.status == "equal"


def test_a_credential_in_an_extra_header_is_a_secret_too(runtime, fleet, tmp_path):
    echoing = identities.scripted("learner", [{"content": f"Your key is {CANARY}."}])
    with ControlProvider() as provider, Sender() as sender:
        provider.add_case("case", identities.one_exchange() | {"learner": echoing})
        seats = {s: {"model": "m", "base_url": provider.base_url("case", s), "headers": {"api-key": CANARY}} for s in SEATS}
        seated = seating.from_arm(arm.parse({"name": "a", **seats}, "a", "test"), sender)
        play(runtime, fleet, "airline/0", seated, tmp_path / "c.cassette.jsonl")
    assert seated.secrets == (CANARY,) and CANARY.encode() not in (tmp_path / "c.cassette.jsonl").read_bytes()


def test_a_transport_that_quotes_the_key_in_its_failure_does_not_print_it():
    class Telling:
        def ask(self, request, on_exchange):
            raise SeatFailure("auth", f"wrong key {CANARY}", 401)

    with pytest.raises(SeatFailure) as caught:
        record.CleanReplies(Telling(), Redactor([CANARY]), print).ask(None, print)
    assert caught.value.to_dict() == {"kind": "auth", "message": "wrong key [REDACTED]", "status": 401}


def test_a_seat_out_of_reach_ends_the_episode_and_keeps_the_cassette(runtime, fleet, tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    with ControlProvider() as provider:
        provider.add_case("case", identities.one_exchange())
        dead = arm_on(provider, "case")
    with Sender() as sender:
        result = play(runtime, fleet, "airline/0", seating.from_arm(dead, sender), tmp_path / "c.cassette.jsonl")
    assert (result.termination, result.reward, result.lost_turn.reason) == ("infrastructure_error", None, "unreachable")
    cassette = reader.read(tmp_path / "c.cassette.jsonl")
    assert cassette.result.lost_turn.reason == "unreachable"
    assert one(tmp_path / "c.cassette.jsonl", fleet).report.status == "equal"


ARM_FAULTS = {
    "no learner": ({"customer": {"model": "m"}, "judge": {"model": "m"}}, "learner: Field required"),
    "an unknown member": ({"learner": {"model": "m", "modle": 1}}, "learner.modle"),
    "no model": ({"learner": {}}, "learner.model"),
    "a setting that would not be sent": ({"learner": {"model": "m", "arguments": {"temperature": 0.7}}}, "learner.arguments: .* frozen"),
    "a name with a slash": ({"name": "a/b", **{s: {"model": "m"} for s in ("learner", "customer", "judge")}}, "name"),
}


@pytest.mark.parametrize(("document", "sentence"), ARM_FAULTS.values(), ids=ARM_FAULTS.keys())
def test_a_wrong_arm_file_is_refused_by_member(document, sentence):
    with pytest.raises(UsageError, match=sentence):
        arm.parse(document, "file", "file.toml")


UNREADABLE = {"nothing": b"", "no UTF-8": b"\xff", "no TOML": b"{", "brackets without end": b"a = " + b"[" * 100_000}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_arm_file_is_wrong_use(tmp_path, content):
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(UsageError, match="a.toml"):
        record_many.read_arm(tmp_path / "a.toml")


def test_a_missing_key_variable_is_named(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    seats = {s: {"model": "m", "base_url": "http://127.0.0.1:9/v1", "key_env": "NO_SUCH_KEY"} for s in ("learner", "customer", "judge")}
    with pytest.raises(UsageError, match="NO_SUCH_KEY"), Sender() as sender:
        seating.from_arm(arm.parse(seats, "a", "test"), sender)


def test_a_seed_named_twice_is_refused(fleet, tmp_path):
    plan = record_many.Plan(fleet, ("airline/0",), (300, 300), tmp_path, False, 1)
    with pytest.raises(UsageError, match="named twice"):
        _ = plan.episodes


@pytest.mark.slow
def test_a_recorder_killed_at_any_moment_leaves_whole_records(runtime, tmp_path):
    seed = random.Random(20)
    command = [sys.executable, "-m", "replaykit", "record", "retail/37", "--controls", "reference", "--out"]
    interrupted = 0
    for attempt in range(20):
        out = tmp_path / str(attempt)
        process = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=Path(__file__).parent.parent)
        kill_when_written(process, out, seed.uniform(0.0, 0.12))
        for path in out.rglob("*.cassette.jsonl"):
            if path.stat().st_size == 0 or b"\n" not in path.read_bytes():
                continue
            cassette = reader.read(path)
            interrupted += cassette.interrupted
            assert cassette.panel == "retail/37"
    assert interrupted > 0


def kill_when_written(process: subprocess.Popen, out: Path, pause: float) -> None:
    """SIGKILL a recorder a moment after its cassette appeared."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline and not list(out.rglob("*.cassette.jsonl")):
        time.sleep(0.002)
    time.sleep(pause)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


class Broken(record_many.Watch):
    """A watch that is interrupted, as by Ctrl-C, at a request."""

    def __init__(self, at: int) -> None:
        self.at, self.asked = at, 0

    def request(self) -> None:
        self.asked += 1
        if self.asked == self.at:
            raise KeyboardInterrupt
        if self.asked > self.at:
            time.sleep(0.5)  # the others have not ended by the time the run hears of it


def test_an_interrupted_run_leaves_cassettes_that_can_be_resumed(runtime, fleet, tmp_path):
    plan = record_many.Plan(fleet, ("retail/0-3",), (300,), tmp_path, False, 4)
    with pytest.raises(KeyboardInterrupt):
        record_many.run(plan, "reference", None, Broken(at=6))
    wait_for_threads("episode")
    cassettes = [reader.read(p) for p in reader.find([tmp_path])]
    assert cassettes and all(c.interrupted for c in cassettes)
    assert not any(isinstance(r.outcome, SeatFailure) or e.failure for c in cassettes for r in c.requests for e in r.exchanges)
    for cassette in cassettes:
        resume.resume(cassette.path, fleet)
        assert one(cassette.path, fleet).report.status == "equal"


def test_a_run_that_breaks_off_has_said_what_is_finished(runtime, fleet, tmp_path):
    done, plan = [], record_many.Plan(fleet, ("airline/0", "retail/2"), (300,), tmp_path, False, 1)
    with pytest.raises(KeyboardInterrupt):
        record_many.run(plan, "one-exchange", None, Broken(at=5), done.append)
    wait_for_threads("episode")
    assert [o.panel for o in done] == ["airline/0"] and reader.read(done[0].path).result is not None


def test_a_full_disk_names_what_was_recorded_before(fleet, tmp_path, monkeypatch, capsys):
    create = Journal.create

    def full(path, *arguments, **named):
        if "retail" in str(path):
            raise OSError(28, "No space left on device", str(path))
        return create(path, *arguments, **named)

    monkeypatch.setattr(Journal, "create", full)
    code = app.run(["record", "airline/0", "retail/2", "--controls", "one-exchange", "--out", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert code == 3 and said.out == "" and "No space left on device" in said.err
    assert "1 of 2 episodes were recorded" in said.err and "airline/0    user_stop" in said.err
    assert f"'replaykit list {tmp_path / 'out'}' shows" in said.err


def test_a_header_from_the_environment_is_sent_and_kept_like_a_key(runtime, fleet, tmp_path):
    with ControlProvider() as provider:
        provider.add_case("hidden", identities.one_exchange())
        seats = {
            s: {"model": "m", "headers_env": {"x-gateway": "GATEWAY"}, "base_url": provider.base_url("hidden", s)} for s in SEATS
        }
        mine = arm.parse({"name": "hidden", **seats}, "hidden", "test")
        with Sender() as sender:
            seated = seating.from_arm(mine, sender, {"GATEWAY": "Bearer gw-4711-0815-x"})
            play(runtime, fleet, "airline/0", seated, tmp_path / "a.cassette.jsonl")
        assert all(b"x-gateway: Bearer gw-4711-0815-x\r\n" in e.request for e in provider.journal)
    assert b"gw-4711" not in (tmp_path / "a.cassette.jsonl").read_bytes()
    assert mine.learner.identity()["headers"] == ["x-gateway"] and "headers_env" not in mine.learner.identity()


def test_a_header_variable_that_is_not_set_is_named():
    seats = {s: {"model": "m", "base_url": "http://127.0.0.1:9/v1", "headers_env": {"x-gateway": "NO_SUCH"}} for s in SEATS}
    with Sender() as sender, pytest.raises(UsageError, match="the learner's header x-gateway .* NO_SUCH, which is not set"):
        seating.from_arm(arm.parse(seats, "a", "test"), sender, {})


def test_a_header_is_named_once():
    twice = {"model": "m", "headers": {"X-A": "1"}, "headers_env": {"x-a": "V"}}
    with pytest.raises(UsageError, match="name a header twice"):
        arm.parse(dict.fromkeys(SEATS, twice), "a", "test")


def wait_for_threads(prefix: str) -> None:
    for thread in threading.enumerate():
        if thread.name.startswith(prefix):
            thread.join(20)


def test_a_failure_that_the_interruption_made_is_not_kept():
    interruption, kept = threading.Event(), []

    class Cut:
        def ask(self, request, on_exchange):
            interruption.set()
            on_exchange(WireExchange(1, {}, failure={"kind": "unreachable"}))
            raise SeatFailure("unreachable", "closed")

    with pytest.raises(record.Interrupted):
        record.Interruptible(Cut(), interruption).ask(None, kept.append)

    class Other:
        def ask(self, request, on_exchange):
            raise RuntimeError("the library says it in its own way")

    with pytest.raises(record.Interrupted):
        guarded(record.Interruptible(Other(), interruption), None, kept.append)
    assert kept == []
