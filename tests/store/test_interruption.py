"""Whatever cuts a recording short, the whole records before the cut can be read, and the recording can go on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaykit.errors import EvidenceError, Incomplete, UsageError
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

CONTAINERS = ["a.cassette.jsonl", "a.cassette.jsonl.zst"]
ENDLESS = """
import importlib.util, sys
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
spec = importlib.util.spec_from_file_location("made_up", sys.argv[2])
made_up = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made_up)
journal = Journal.create(sys.argv[1], made_up.HEADER, Redactor())
print("begun", flush=True)
made_up.write_turns(journal, made_up.Episode(), 1_000_000)
"""


def test_a_cassette_cut_at_any_byte_reads_up_to_its_last_whole_record(record):
    data = record(2).read_bytes()
    first = data.index(b"\n") + 1
    for length in range(first, len(data)):
        cassette = reader.parse(data[:length])
        assert cassette.interrupted
        assert cassette.whole_bytes == data[:length].rfind(b"\n") + 1


def test_a_cassette_cut_within_its_header_is_refused(record):
    data = record(2).read_bytes()
    for length in range(data.index(b"\n") + 1):
        with pytest.raises(EvidenceError):
            reader.parse(data[:length])


def test_a_compressed_cassette_cut_at_any_byte_reads_or_is_refused_in_one_line(record):
    path = record(2, "a.cassette.jsonl.zst")
    data, whole = path.read_bytes(), len(reader.read(path).requests)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        try:
            assert len(reader.read(path).requests) <= whole
        except EvidenceError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_recorder_killed_at_random_moments_leaves_readable_records(tmp_path, name):
    moments = random.Random(7)
    for attempt in range(10):
        path = tmp_path / f"{attempt}" / name
        made_up = Path(__file__).with_name("conftest.py")
        process = subprocess.Popen([sys.executable, "-c", ENDLESS, path, made_up], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(moments.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        cassette = reader.read(path)
        assert cassette.interrupted
        assert [r.number for r in cassette.requests] == list(range(1, len(cassette.requests) + 1))


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_resumed_recording_reads_as_if_it_had_never_stopped(record, episode, turns, result, name):
    path = record(5, name, close=False)
    for _ in episode.turns(5):
        pass
    with Journal.resume(path, Redactor()) as journal:
        turns(journal, episode, 4)
        journal.close({"result": result})
    whole, resumed = reader.read(record(9, f"whole-{name}")), reader.read(path)
    assert [r.native for r in resumed.requests] == [r.native for r in whole.requests]
    assert [r.exchanges for r in resumed.requests] == [r.exchanges for r in whole.requests]
    assert [r.outcome for r in resumed.requests] == [r.outcome for r in whole.requests]


def test_a_resumed_recording_stores_no_value_again(record, episode, turns):
    path = record(5, close=False)
    for _ in episode.turns(5):
        pass
    with Journal.resume(path, Redactor()) as journal:
        turns(journal, episode, 4)
    assert path.read_text(encoding="utf-8").count("Turn 2 of the learner, a text long enough to be shared.") == 1


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_tail_is_moved_aside_and_not_lost(record, cut):
    path = record(3, close=False)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    Journal.resume(path, Redactor()).abandon()
    torn = path.with_name(path.name + ".torn").read_bytes()
    assert path.read_bytes() + torn == data[:-cut]
    assert torn and not torn.endswith(b"\n")


def test_a_second_torn_tail_does_not_replace_the_first(record):
    path = record(3, close=False)
    for _ in range(2):
        path.write_bytes(path.read_bytes()[:-1])
        Journal.resume(path, Redactor()).abandon()
    assert {p.name for p in path.parent.iterdir()} == {path.name, f"{path.name}.torn", f"{path.name}.torn.2"}


def test_the_old_file_of_a_resumed_compressed_recording_stays_beside_it(record):
    path = record(3, "a.cassette.jsonl.zst", close=False)
    before = path.read_bytes()
    Journal.resume(path, Redactor()).abandon()
    assert path.with_name(path.name + ".torn").read_bytes() == before
    assert len(reader.read(path).requests) == 3


def test_a_complete_cassette_is_not_resumed(record):
    path = record()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="nothing to resume"):
        Journal.resume(path, Redactor())
    assert path.read_bytes() == before


def test_a_damaged_cassette_is_not_resumed_and_not_touched(record):
    path = record(close=False)
    damaged = path.read_bytes().replace(b"customer", b"costumer", 1)
    path.write_bytes(damaged)
    with pytest.raises(EvidenceError):
        Journal.resume(path, Redactor())
    assert path.read_bytes() == damaged


def test_a_cassette_that_is_still_being_written_is_not_resumed(begin):
    with begin() as journal, pytest.raises(UsageError, match="being written by another process"):
        Journal.resume(journal.path, Redactor())


FULL_DISK = """
import importlib.util, resource, sys
from replaykit.errors import Incomplete
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
spec = importlib.util.spec_from_file_location("made_up", sys.argv[2])
made_up = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made_up)
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))
journal = Journal.create(sys.argv[1], made_up.HEADER, Redactor())
for _ in range(2):
    try:
        made_up.write_turns(journal, made_up.Episode(), 1_000)
    except Incomplete as error:
        print(error)
"""


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_full_disk_is_one_clear_error_and_leaves_what_was_written(tmp_path, name):
    path = tmp_path / name
    made_up = Path(__file__).with_name("conftest.py")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path, made_up], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == second and "cannot be written any further (File too large)" in first
    assert len(reader.read(path).requests) >= 2


def test_a_disk_too_full_for_a_header_leaves_no_file_in_the_way(tmp_path, header, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        with pytest.raises(Incomplete, match="No space left on device"):
            Journal.create(tmp_path / "a.cassette.jsonl", header, Redactor())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_torn_tail(begin, episode, turns, monkeypatch):
    with begin() as journal:
        turns(journal, episode, 2)
        whole = journal.path.read_bytes()
        real = os.write

        def half(file, data):
            if len(data) > 10:
                return real(file, data[:10])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(Incomplete, match="No space left on device"):
            journal.note({"text": "x" * 12})
    assert journal.path.read_bytes() == whole
