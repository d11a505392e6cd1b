"""The zstd container says the same as the plain file, and names what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from replaykit.errors import UsageError
from replaykit.store import container, reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


def test_both_containers_hold_the_same_bytes(record):
    assert reader.load(record(12, "a.cassette.jsonl.zst")) == reader.load(record(12)) != b""


def test_a_finished_file_is_smaller_than_its_flushed_records(record):
    finished, flushed = record(60, "a.cassette.jsonl.zst"), record(60, "b.cassette.jsonl.zst", close=False)
    assert finished.stat().st_size < 0.9 * flushed.stat().st_size


def test_other_zstd_tools_read_the_container(record):
    import zstandard

    path = record(12, "a.cassette.jsonl.zst")
    with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
        assert stream.read() == reader.load(path)


def test_a_cassette_under_another_name_is_known_by_its_content(record):
    path = record(3, "a.cassette.jsonl.zst")
    renamed = path.rename(path.with_name("renamed"))
    assert len(reader.read(renamed).requests) == 3


def test_without_zstandard_one_sentence_says_what_to_install(tmp_path, header, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match="pip install zstandard"):
        Journal.create(tmp_path / "a.cassette.jsonl.zst", header, Redactor())
    assert list(tmp_path.iterdir()) == []


def test_zstandard_is_not_imported_before_it_is_needed():
    code = "import sys, replaykit.store.journal, replaykit.store.scan; sys.exit('zstandard' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_index_that_points_beyond_the_file_is_refused():
    import hashlib

    frames = container.Compression().frame(b"x")
    data = frames + container.index(10**9, hashlib.sha256(frames))
    with pytest.raises(ValueError, match="were changed"):
        container.split_index(data)
