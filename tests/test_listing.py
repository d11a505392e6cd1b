"""Listing cassettes: headers and footers only, and whatever stands in them is shown and never obeyed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from replaykit.cli import app
from replaykit.reports import listing
from replaykit.store import reader

from .store.test_tampering import chained

ROOT = Path(__file__).parent.parent
ONE = next(ROOT.glob("cassettes/retail/2-reference-*.jsonl"))


def forged(path: Path, **changes) -> Path:
    """The cassette with other members in its header, all sums made right."""
    records = [json.loads(line) for line in ONE.read_bytes().splitlines()]
    records[0] |= changes
    path.write_bytes(chained(records))
    return path


def listed(capsys, *arguments: str) -> tuple[int, str]:
    code = app.run(["list", *arguments])
    return code, capsys.readouterr().out


def test_every_committed_cassette_is_a_line(capsys):
    code, out = listed(capsys, str(ROOT / "cassettes"))
    lines = out.splitlines()
    assert code == 0 and lines[-1] == f"{len(lines) - 1} cassettes"
    assert len(lines) - 1 == len(reader.find([ROOT / "cassettes"]))
    assert any(line.startswith("retail/2     reference        s300    user_stop") for line in lines)


def test_entries_say_what_the_whole_cassette_says():
    (entry,) = listing.entries([ONE])
    cassette = reader.read(ONE)
    result = cassette.result
    assert (entry["panel"], entry["requests"]) == (cassette.panel, len(cassette.requests))
    assert (entry["termination"], entry["reward"], entry["final_db_hash"]) == (
        result.termination, result.reward, result.final_db_hash,
    )  # fmt: skip
    assert entry["digest"] == cassette.digest


def test_interrupted_and_unreadable_ones_are_told_apart(capsys, tmp_path):
    (tmp_path / "bad.cassette.jsonl").write_bytes(b"hello\n")
    (tmp_path / "cut.cassette.jsonl").write_bytes(ONE.read_bytes()[:-200])
    shutil.copy(ONE, tmp_path)
    code, out = listed(capsys, str(tmp_path))
    assert code == 5 and out.splitlines()[-1] == "3 cassettes, 1 interrupted, 1 unreadable"
    code, out = listed(capsys, str(tmp_path), "--interrupted", "--json")
    document = json.loads(out)
    assert document["counts"] == {"error": 1, "interrupted": 1}
    assert [e["state"] for e in document["cassettes"]] == ["error", "interrupted"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arm": {"name": 5}}, "its arm is a int"),
        ({"arm": {}}, "'name'"),
        ({"seeds": {"case": True}}, "its case_seed is a bool"),
        ({"controls": []}, "its controls is a list"),
    ],
)
def test_a_forged_header_is_an_entry_and_no_crash(tmp_path, changes, words):
    (entry,) = listing.entries([forged(tmp_path / "f.cassette.jsonl", **changes)])
    assert entry["state"] == "error" and words in entry["error"] and entry["exit_code"] == 5


def test_what_would_steer_a_terminal_is_written_out(tmp_path):
    (entry,) = listing.entries([forged(tmp_path / "f.cassette.jsonl", arm={"name": "\x1b[2Jx"})])
    assert "\x1b" not in listing.line(entry) and "\\x1b[2Jx" in listing.line(entry)


@pytest.mark.parametrize("reward", [10**400, float("inf")])
def test_a_forged_reward_is_an_entry_and_no_crash(tmp_path, reward):
    records = [json.loads(line) for line in ONE.read_bytes().splitlines()]
    records[-1]["summary"]["reward"] = reward
    path = tmp_path / "f.cassette.jsonl"
    path.write_bytes(chained(records))
    (entry,) = listing.entries([path])
    assert entry["state"] == "error" and listing.line(entry)
