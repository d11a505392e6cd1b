"""A quick look reads header and footer only, and says the same as a full reading."""

from __future__ import annotations

import os
import time

import pytest

from replaykit.errors import EvidenceError, SchemaTooNew, UsageError
from replaykit.store import lines, reader, scan

CONTAINERS = ["a.cassette.jsonl", "a.cassette.jsonl.zst"]


@pytest.mark.parametrize("count", [1, 40, 200])
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_quick_look_agrees_with_a_full_reading(record, name, count):
    path = record(count, name)
    look, whole = scan.scan(path), reader.read(path)
    assert (look.header, look.footer["digest"], look.interrupted) == (whole.header, whole.digest, False)
    assert look.footer["counts"]["request"] == count
    assert (look.panel, look.summary["termination"], look.summary["reward"]) == ("airline/0", "user_stop", 1.0)
    assert look.summary["diagnostics"] == ["judge.all_true_default"]
    assert look.footer["fields"] == {"tokens": {"prompt": 7}}
    assert (look.path, look.size_bytes) == (path, path.stat().st_size)


@pytest.mark.parametrize("name", CONTAINERS)
def test_an_interrupted_cassette_has_no_footer(record, name):
    look = scan.scan(record(40, name, close=False))
    assert (look.interrupted, look.footer, look.summary) == (True, None, {})


def test_a_cassette_of_only_a_header_is_interrupted(record):
    assert scan.scan(record(0, close=False)).interrupted


def test_a_long_header_and_a_long_footer_are_read_whole(begin, result):
    with begin() as journal:
        journal.close({"result": result, "long": "x" * 300_000})
    assert len(scan.scan(journal.path).footer["fields"]["long"]) == 300_000


@pytest.mark.parametrize("part", ["header", "footer"])
def test_a_changed_header_or_footer_is_found(record, part):
    path = record(40)
    data = bytearray(path.read_bytes())
    data[30 if part == "header" else -30] ^= 1
    path.write_bytes(data)
    with pytest.raises(EvidenceError):
        scan.scan(path)


def test_any_change_of_a_compressed_file_is_found(record):
    path = record(1, "a.cassette.jsonl.zst")
    data = path.read_bytes()
    for position in range(0, len(data), 7):
        changed = bytearray(data)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(EvidenceError):
            scan.scan(path)


FOREIGN = {"empty": b"", "binary": bytes(range(256)) * 100, "text": b"x" * 100_000, "zstd": b"\x28\xb5\x2f\xfdxxxx"}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused_in_one_line(tmp_path, data):
    path = tmp_path / "f.cassette.jsonl"
    path.write_bytes(data)
    with pytest.raises(EvidenceError) as caught:
        scan.scan(path)
    assert "\n" not in str(caught.value)


def test_a_newer_schema_and_a_missing_file_are_told_apart(tmp_path):
    path = tmp_path / "n.cassette.jsonl"
    path.write_bytes(b'{"kind":"header","schema":"replaykit.cassette/999"}\n')
    with pytest.raises(SchemaTooNew):
        scan.scan(path)
    with pytest.raises(UsageError):
        scan.scan(tmp_path / "none")


def test_cassettes_are_found_below_folders_sorted_and_once(record, tmp_path):
    paths = [record(1, name) for name in ("b/z.cassette.jsonl", "b/a.cassette.jsonl.zst", "a.cassette.jsonl")]
    (tmp_path / "b" / "a.cassette.jsonl.torn").write_bytes(b"x")
    (tmp_path / "notes.jsonl").write_bytes(b"x")
    assert reader.find([tmp_path, paths[0]]) == sorted(paths)


def test_a_path_that_does_not_exist_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        reader.find([tmp_path / "none"])


def test_the_middle_of_a_large_cassette_is_not_read(record, monkeypatch):
    path = record(200)
    lengths, real = [], lines.read

    def counting(line: bytes, previous: str | None) -> tuple[dict, str]:
        lengths.append(len(line))
        return real(line, previous)

    monkeypatch.setattr(lines, "read", counting)
    scan.scan(path)
    assert len(lengths) == 2 and sum(lengths) < path.stat().st_size / 10


@pytest.mark.slow
def test_ten_thousand_cassettes_are_listed_in_seconds(record, tmp_path):
    data = record(20).read_bytes()
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(10_000):
        (folder / f"{number}.cassette.jsonl").write_bytes(data)
    began = time.perf_counter()
    looks = [scan.scan(path) for path in reader.find([folder])]
    assert len(looks) == 10_000
    print(f"10,000 cassettes in {time.perf_counter() - began:.2f} s")


def test_a_folder_gives_its_files_and_not_its_pipes(tmp_path):
    (tmp_path / "a.cassette.jsonl").write_bytes(b"")
    os.mkfifo(tmp_path / "b.cassette.jsonl")
    (tmp_path / "c.cassette.jsonl").mkdir()
    assert reader.find([tmp_path]) == [tmp_path / "a.cassette.jsonl"]


def test_a_folder_that_cannot_be_read_is_wrong_use(tmp_path, monkeypatch):
    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        reader.find([tmp_path])
