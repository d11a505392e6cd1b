"""A recording killed anywhere is resumed to the state an undisturbed one ends in, and nothing is asked twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaykit import record_many, resume
from replaykit.arm import Arm, parse
from replaykit.controls import identities
from replaykit.controls.faults import Fault, Schedule
from replaykit.controls.server import ControlProvider
from replaykit.errors import PrefixDiverged, UsageError
from replaykit.prefix import is_answered_on_wire
from replaykit.replay import replay
from replaykit.seating import _control_scenario
from replaykit.store import lines, reader

PANEL = "retail/2"
KEY = "test-key-00000001"
# Loads the engine once, then records one episode in a child of its own for each line of input.
RECORDER = """
import os, sys
from pathlib import Path
from replaykit import engine, record_many
from replaykit.store import fleet_file
fleet = fleet_file.read(Path(sys.argv[1]))
engine.load().domain("retail")
engine.load().reference_outcome("retail", "2")
print("ready", flush=True)
for line in sys.stdin:
    arm, out = line.split()
    pid = os.fork()
    if pid == 0:
        plan = record_many.Plan(fleet, ("retail/2",), (300,), Path(out), False, 1)
        record_many.run(plan, None, Path(arm), record_many.Watch())
        os._exit(0)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


@pytest.fixture
def provider():
    with ControlProvider() as running:
        yield running


def arm_text(provider: ControlProvider, runtime, case: str, schedule: Schedule | None = None) -> str:
    """An arm whose seats are the reference controls, at a provider that outlives the recorder."""
    scenario = runtime.scenarios("retail")["2"]
    provider.add_case(case, identities.reference(_control_scenario(scenario)), schedule, key=KEY)
    seat = '[{0}]\nmodel = "control"\nbase_url = "{1}"\nkey_env = "RK_TEST_KEY"\n'
    return 'name = "kept"\n' + "".join(
        seat.format(s, provider.base_url(case, s)) for s in ("learner", "customer", "judge")
    )


def arm_of(path: Path) -> Arm:
    return record_many.read_arm(path)


@pytest.fixture
def recorder(runtime):
    """A process that records one episode a line, each in a child that may be killed."""
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), "RK_TEST_KEY": KEY}
    command = [sys.executable, "-c", RECORDER, str(root / "fleet.json")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        process.wait(20)


def killed_recording(recorder, provider, arm_path: Path, out: Path, case: str, rng: random.Random) -> Path:
    """Record, and kill the recorder at a random moment of the episode."""
    recorder.stdin.write(f"{arm_path} {out}\n")
    recorder.stdin.flush()
    child = int(recorder.stdout.readline())
    path = out / "retail" / "2-kept-s300.cassette.jsonl"
    wanted, until = rng.randrange(0, 15), time.monotonic() + 20
    while time.monotonic() < until and not (
        path.exists() and path.stat().st_size and provider.request_count(case) >= wanted
    ):
        time.sleep(0.0005)
    time.sleep(rng.uniform(0, 0.012))
    os.kill(child, signal.SIGKILL)
    assert int(recorder.stdout.readline()) in (0, signal.SIGKILL)
    return path


def settled(provider: ControlProvider, case: str) -> list:
    """The provider's exchanges of a case, once none is open."""
    assert provider._journal.settle(10)
    return [e for e in provider.journal if e.case == case]


def test_killed_at_twenty_random_moments_it_ends_in_the_same_state_and_asks_nothing_twice(
    recorder, provider, runtime, fleet, recording, tmp_path, monkeypatch
):
    monkeypatch.setenv("RK_TEST_KEY", KEY)
    undisturbed = reader.read(recording(PANEL)[0])
    rng, cut = random.Random(20), 0
    for turn in range(20):
        case = f"kill-{turn}"
        arm_path = tmp_path / f"{case}.toml"
        arm_path.write_text(arm_text(provider, runtime, case))
        path = killed_recording(recorder, provider, arm_path, tmp_path / case, case, rng)
        before, known = settled(provider, case), reader.read(path)
        if not known.interrupted:
            continue
        cut += 1
        resume.resume(path, fleet, arm=arm_of(arm_path))
        check_resumed(path, known, before, settled(provider, case)[len(before) :], undisturbed)
        assert replay(reader.read(path), runtime, fleet, "resumed").status == "equal"
    assert cut >= 12


def check_resumed(path: Path, known, before: list, after: list, undisturbed) -> None:
    """The provider saw every request once but those whose answer is nowhere in the cut file."""
    whole = reader.read(path)
    for member in ("final_db_hash", "reward", "termination", "trajectory", "db_changes", "steps"):
        assert getattr(whole.result, member) == getattr(undisturbed.result, member), member
    answered = [r for r in known.requests if r.outcome is not None or is_answered_on_wire(r, _Transport())]
    assert len(after) == len(whole.requests) - len(answered)
    asked_twice = {(e.seat, e.body()) for e in before[: len(answered)]} & {(e.seat, e.body()) for e in after}
    assert asked_twice == set()
    assert [n["seam"]["kind"] for n in whole.notes] == ["resume"]


class _Transport:
    """Stands for a transport that can read its wire again."""

    def from_wire(self) -> None:
        """Only its presence counts here."""


@pytest.fixture
def whole(recording):
    """The bytes of a whole cassette, as lines."""
    path = recording(PANEL)[0]
    return path.read_bytes().splitlines(keepends=True)


def cut_after(whole: list[bytes], kind: str, nth: int, tmp_path: Path) -> Path:
    """A file that ends with the nth record of a kind."""
    ends = [i for i, line in enumerate(whole) if line.startswith(b'{"kind":"%s"' % kind.encode())]
    path = tmp_path / "cut.cassette.jsonl"
    path.write_bytes(b"".join(whole[: ends[nth] + 1]))
    return path


def test_a_request_that_was_written_but_not_answered_is_asked_again_and_counts_twice(whole, fleet, tmp_path):
    path = cut_after(whole, "request", 6, tmp_path)
    done = resume.resume(path, fleet)
    seam = reader.read(path).notes[0]["seam"]
    assert (seam["after_request"], seam["asked_again"]) == (7, True)
    assert done.requests == len(reader.read(path).requests) + 1


def test_a_reply_that_reached_the_wire_record_only_is_read_from_there(whole, fleet, tmp_path):
    path = cut_after(whole, "exchange", 6, tmp_path)
    done = resume.resume(path, fleet)
    cassette = reader.read(path)
    assert cassette.notes[0]["seam"]["asked_again"] is False
    assert done.requests == len(cassette.requests)
    assert len(cassette.requests[6].exchanges) == 1
    assert cassette.requests[6].outcome.tool_calls


@pytest.mark.parametrize("kind", ["state", "result"])
def test_an_episode_that_ended_but_for_its_footer_is_closed_without_asking(whole, fleet, tmp_path, runtime, kind):
    path = cut_after(whole, kind, 0, tmp_path)
    count = sum(line.startswith(b'{"kind":"request"') for line in whole)
    assert resume.resume(path, fleet).requests == count
    cassette = reader.read(path)
    assert len({turn for turn, _ in cassette.states}) == len(cassette.states)
    assert replay(cassette, runtime, fleet, "closed").status == "equal"


@pytest.mark.parametrize("kind", ["request", "exchange", "reply"])
@pytest.mark.parametrize("nth", [0, 1, 9, 14])
def test_wherever_it_was_cut_the_whole_recording_equals_an_undisturbed_one(whole, fleet, tmp_path, kind, nth):
    from replaykit.diff import episodes

    undisturbed = tmp_path / "undisturbed.cassette.jsonl"
    undisturbed.write_bytes(b"".join(whole))
    path = cut_after(whole, kind, nth, tmp_path)
    resume.resume(path, fleet)
    found = episodes.compare(reader.read(undisturbed), reader.read(path))
    assert (found.status, found.findings) == ("same", ())


def test_the_budget_continues_with_the_time_that_was_spent_waiting(whole, fleet, tmp_path):
    from replaykit import prefix

    cassette = reader.read(cut_after(whole, "reply", 5, tmp_path))
    book = prefix.ledger(cassette.requests, True)
    waited = sum(e.timing["total_s"] for r in cassette.requests for e in r.exchanges)
    assert book.waiting_s == pytest.approx(waited)
    assert book.remaining_s() == pytest.approx(book.budget.wall_s - waited, abs=1)
    assert book.requests == 1


def test_a_failure_that_was_recorded_still_ends_the_episode(provider, runtime, fleet, tmp_path, monkeypatch):
    monkeypatch.setenv("RK_TEST_KEY", KEY)
    arm_path = tmp_path / "arm.toml"
    arm_path.write_text(
        arm_text(provider, runtime, "failing", Schedule({"learner": {2: Fault("status", {"status": 503})}}))
    )
    plan = record_many.Plan(fleet, (PANEL,), (300,), tmp_path, False, 1)
    path = record_many.run(plan, None, arm_path, record_many.Watch())[0].path
    path = cut_after(path.read_bytes().splitlines(keepends=True), "failure", 0, tmp_path)
    done = resume.resume(path, fleet, arm=arm_of(arm_path))
    assert done.result.termination == "infrastructure_error"
    assert done.trouble is not None


def test_a_complete_cassette_is_refused_and_left_as_it_is(whole, fleet, tmp_path):
    path = cut_after(whole, "footer", 0, tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="complete"):
        resume.resume(path, fleet)
    assert path.read_bytes() == before


def test_other_seats_are_refused(whole, fleet, tmp_path):
    path = cut_after(whole, "reply", 3, tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="learner is not the one"):
        resume.resume(path, fleet, controls="one-exchange")
    assert path.read_bytes() == before


def test_an_arm_must_be_named_where_no_controls_were_recorded(whole, fleet, tmp_path):
    path = tmp_path / "cut.cassette.jsonl"
    path.write_bytes(resigned([line.replace(b'"controls":"reference"', b'"controls":null') for line in whole[:4]]))
    with pytest.raises(UsageError, match="--arm"):
        resume.resume(path, fleet)


def test_a_beginning_that_does_not_play_as_recorded_stops_before_anything_is_asked(
    whole, fleet, tmp_path, runtime, monkeypatch
):
    path = cut_after(whole, "reply", 5, tmp_path)
    size = path.stat().st_size
    schemas = runtime.domain("retail").schemas
    monkeypatch.setattr(runtime.domain("retail"), "schemas", [*schemas[1:], schemas[0]])
    with pytest.raises(PrefixDiverged, match="request 2"):
        resume.resume(path, fleet)
    assert path.stat().st_size == size


def resigned(whole: list[bytes]) -> bytes:
    """Lines with their sums made to fit again."""
    total, signed = "replaykit.cassette/1", b""
    for line in whole:
        body = line[: line.rindex(b',"sum":"')] + b"}"
        total = lines.link(total, body)
        signed += b'%s,"sum":"%s"}\n' % (body[:-1], total.encode())
    return signed


def test_an_arm_is_checked_by_what_identifies_it():
    one = parse({"learner": {"model": "m"}, "customer": {"model": "m"}, "judge": {"model": "m"}}, "a", "a.toml")
    two = parse({"learner": {"model": "n"}, "customer": {"model": "m"}, "judge": {"model": "m"}}, "a", "a.toml")
    assert one.header()["roster"]["digest"] == two.header()["roster"]["digest"]
    assert one.header()["arm"]["digest"] != two.header()["arm"]["digest"]
