"""Many cassettes: worker processes, folders behind URLs, quick looks, and many recordings in flight."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from replaykit import canonical, gateway, processes, record_many, replay_many
from replaykit import replay as replay_of
from replaykit.errors import EvidenceError, InternalError, UsageError
from replaykit.seats import normalise_message
from replaykit.store import lines, reader, remote, scan

PANELS = ("airline/0", "airline/7", "retail/2", "retail/37")


class Watch(record_many.Watch):
    """Counts."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, errors: bool = False) -> None:
        self.steps += 1


def nothing() -> None:
    """Before the first and after the last item."""


def squared(number: int) -> int:
    return number * number


def killed_once(marks: Path, number: int) -> int:
    """Its process is killed over item 3, the first time."""
    mark = marks / "killed"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def killed_always(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number: int) -> int:
    raise EvidenceError("forged", "c.jsonl", 7)


def broken(number: int) -> int:
    raise ZeroDivisionError("oh")


def unfit() -> None:
    raise InternalError("the base was changed")


def test_workers_give_every_result_once_with_its_position():
    job = processes.Job(squared, nothing, nothing)
    assert sorted(processes.each(job, range(20), 3)) == [(n, n * n) for n in range(20)]


def test_a_killed_worker_costs_only_its_item_and_that_is_done_again(tmp_path):
    job = processes.Job(partial(killed_once, tmp_path), nothing, nothing)
    assert sorted(processes.each(job, range(8), 2)) == [(n, n) for n in range(8)]


def test_an_item_that_kills_two_workers_is_given_up_and_said(tmp_path):
    results = dict(processes.each(processes.Job(killed_always, nothing, nothing), range(6), 2))
    assert isinstance(results.pop(3), processes.Lost) and results == {n: n for n in range(6) if n != 3}


@pytest.mark.parametrize(
    ("job", "exit_code"),
    [
        (processes.Job(refused, nothing, nothing), 5),
        (processes.Job(broken, nothing, nothing), 6),
        (processes.Job(squared, nothing, unfit), 6),
    ],
    ids=["an error with arguments of its own", "a bug", "a failed check at the end"],
)
def test_what_a_worker_raises_keeps_its_exit_code(job, exit_code):
    with pytest.raises(Exception) as raised:
        list(processes.each(job, range(4), 2))
    assert raised.value.exit_code == exit_code


def test_a_replay_in_processes_gives_the_same_reports_in_the_same_order(recording, fleet, tmp_path):
    recording(*PANELS)
    (tmp_path / "rec" / "broken.cassette.jsonl").write_text("no cassette")
    files, watch = replay_many.find([tmp_path / "rec"]), Watch()
    alone = [o.to_dict() for o in replay_many.run(files, fleet, 1, Watch())]
    together = [o.to_dict() for o in replay_many.run(files, fleet, 2, watch)]
    assert alone == together and watch.steps == len(files) == 5
    assert [d["status"] for d in alone] == ["equal", "equal", "error", "equal", "equal"]


def test_a_replay_that_verifies_hashes_is_equal_too(recording, fleet, runtime, monkeypatch):
    for name in ("airline", "retail"):
        monkeypatch.setattr(runtime.domain(name).databases, "verify", False)
    outcomes = replay_many.run(recording("airline/7", "retail/2"), fleet, 1, Watch(), verify_hash=True)
    assert {o.report.status for o in outcomes} == {"equal"} and runtime.domain("retail").databases.verify


@pytest.fixture
def bucket(recording):
    """Four cassettes at a URL, with a file beside them that is none."""
    fsspec = pytest.importorskip("fsspec", reason="URLs need fsspec")
    system = fsspec.filesystem("memory")
    for path in recording(*PANELS):
        system.pipe_file(f"/bucket/run/{path.parent.name}/{path.name}", path.read_bytes())
    system.pipe_file("/bucket/run/notes.txt", b"none")
    yield "memory://bucket/run"
    system.rm("/bucket", recursive=True)


def test_cassettes_behind_a_url_are_found_read_and_replayed(bucket, fleet):
    files = replay_many.find([bucket])
    assert [reader.read(f).panel for f in files] == sorted(PANELS)
    assert {o.report.status for o in replay_many.run(files, fleet, 1, Watch())} == {"equal"}


def test_a_quick_look_behind_a_url_fetches_the_ends_only(bucket, monkeypatch):
    fetched = []
    whole = remote.RemotePath.opened

    def counted(self):
        return Counted(whole(self), fetched)

    monkeypatch.setattr(remote.RemotePath, "opened", counted)
    place = reader.find([bucket])[0]
    summary = scan.scan(place)
    assert summary.panel == "airline/0" and not summary.interrupted
    assert sum(fetched) <= 2 * 16 * 1024 and summary.size_bytes > 32 * 1024 - 4096


class Counted:
    """An opened file that notes how much was read."""

    def __init__(self, opened, fetched: list[int]) -> None:
        self._opened, self._fetched = opened, fetched

    def __enter__(self):
        self._file, size = self._opened.__enter__()
        return self, size

    def __exit__(self, *error):
        return self._opened.__exit__(*error)

    def read(self, count: int) -> bytes:
        data = self._file.read(count)
        self._fetched.append(len(data))
        return data

    def seek(self, place: int) -> int:
        return self._file.seek(place)


@pytest.mark.parametrize(
    ("url", "words"),
    [("memory://none", "does not exist"), ("nope://x/y", "Protocol not known"), ("s3://key:secret@b/c", "s3")],
)
def test_a_url_that_cannot_be_read_is_refused_in_one_sentence_without_credentials(url, words):
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError, match=words) as raised:
        reader.find([url])
    assert "secret" not in str(raised.value)


@pytest.mark.slow
def test_three_thousand_cassettes_are_looked_at_in_three_seconds(recording, tmp_path):
    source = recording("retail/2")[0]
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(3_000):
        os.link(source, folder / f"{number}.cassette.jsonl")
    began = time.process_time()
    panels = {scan.scan(path).panel for path in reader.find([folder])}
    assert panels == {"retail/2"} and time.process_time() - began <= 3


def brackets(chance: random.Random, depth: int):
    if not depth or chance.random() < 0.2:
        return chance.choice(['a"b[', "\\", '{"}', 1, None, '\\"[[', ""])
    if chance.random() < 0.5:
        return [brackets(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return {chance.choice('ab["\\'): brackets(chance, depth - 1) for _ in range(chance.randint(0, 3))}


def depth_of(value) -> int:
    if not isinstance(value, (list, dict)):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


def test_depth_is_told_from_the_bytes_as_from_the_value():
    chance = random.Random(5)
    for _ in range(2_000):
        value = brackets(chance, chance.randint(0, 9))
        for limit in range(9):
            assert lines.deeper_than(json.dumps(value).encode(), limit) == (depth_of(value) > limit)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_episodes_leave_no_memory_behind(recording, fleet, runtime):
    files = recording("retail/2", "airline/7")
    for path in files * 5:
        replay_many.one(path, fleet)
    before = resident_kb()
    for path in files * 50:
        replay_many.one(path, fleet)
    assert resident_kb() - before < 4_000


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_sixty_four_episodes_in_flight_do_not_mix(recording, tmp_path):
    many = ("airline/0-24", "retail/0-38")
    together, alone = recording(*many, jobs=64, out=tmp_path / "64"), recording(*many, out=tmp_path / "1")
    assert len(together) == len(alone) == 64
    for left, right in zip(map(reader.read, together), map(reader.read, alone), strict=True):
        assert [(r.seat, r.digest) for r in left.requests] == [(r.seat, r.digest) for r in right.requests]
        assert left.result == right.result and left.footer["policy_states"] == right.footer["policy_states"]


def test_no_more_episodes_are_in_flight_than_jobs_and_the_first_error_ends_the_rest():
    now, most, begun = [], [], []

    def episode(number: int) -> int:
        begun.append(number)
        now.append(number)
        most.append(len(now))
        time.sleep(0.01)
        now.remove(number)
        if number == 20:
            raise UsageError("the disk is full")
        return number

    interruption = threading.Event()
    assert (
        record_many._in_threads([partial(episode, n) for n in range(12)], 4, interruption) == list(range(12))
        and max(most) <= 4
    )
    with pytest.raises(UsageError):
        record_many._in_threads([partial(episode, n) for n in range(12, 60)], 4, interruption)
    assert max(begun) < 30 and interruption.is_set()


class Listening:
    """A reply source that compares every normalised history with one made from the start."""

    def __init__(self, source) -> None:
        self._source, self.asked = source, 0

    def ask(self, request, on_exchange):
        self.asked += 1
        assert request.messages == [normalise_message(m) for m in self.native]
        return self._source.ask(request, on_exchange)


def test_histories_normalised_piece_by_piece_are_those_normalised_whole(recording, runtime, fleet, monkeypatch):
    cassette = reader.read(recording("retail/2")[0])
    source = Listening(replay_of.CassetteSource(cassette.requests))
    monkeypatch.setattr(replay_of, "CassetteSource", lambda requests: source)
    whole = gateway.Gateway.ask

    def ask(self, request):
        source.native = request.messages
        return whole(self, request)

    monkeypatch.setattr(gateway.Gateway, "ask", ask)
    assert replay_of.replay(cassette, runtime, fleet, "c").status == "equal" and source.asked == len(cassette.requests)


ODD = (
    "é",
    "\ud800",
    'a"b\\',
    "",
    1,
    1.0,
    True,
    None,
    1e400,
    float("nan"),
    [],
    {},
    {"é": [1.5, {"b": "\u2028"}], "a": -0.0},
    10**30,
    [[[]]],
)


@pytest.mark.parametrize(
    "options", [{"ensure_ascii": False, "separators": (",", ":")}, {"sort_keys": True}, {"allow_nan": False}], ids=str
)
def test_the_encoder_made_once_writes_what_the_library_writes(options):
    encode = canonical._encoder(**options)
    for value in ODD:
        try:
            expected = json.dumps(value, **options)
        except ValueError:
            with pytest.raises(ValueError):
                encode(value)
        else:
            assert encode(value) == expected
