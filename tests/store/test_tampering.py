"""Whatever is changed in a cassette is found, with the place where it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from replaykit import canonical
from replaykit.cassette import SCHEMA
from replaykit.errors import EvidenceError, SchemaTooNew, UsageError
from replaykit.store import lines, reader


ROOT = Path(__file__).parent.parent.parent


def chained(records: list[dict], schema: str = SCHEMA) -> bytes:
    """A file of these records, with all sums, counts and digests made right: what a forger can do."""
    total, out = SCHEMA, b""
    for record in records:
        plain = {key: value for key, value in record.items() if key != "sum"}
        if plain["kind"] == "footer":
            plain["digest"] = hashlib.sha256(out).hexdigest()
            plain["counts"] = reader.counts(records[:-1])
        line, total = lines.write(plain, total)
        out += line
    return out


def refusal(path, data: bytes) -> EvidenceError:
    path.write_bytes(data)
    with pytest.raises(EvidenceError) as caught:
        reader.read(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert path.read_bytes() == data
    return caught.value


def test_every_changed_byte_is_found(record):
    path = record(2)
    data = path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(EvidenceError):
            reader.parse(bytes(changed))


def test_the_offset_is_that_of_the_changed_line(record):
    path = record()
    data = path.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(data) if byte == 10)]
    changed = bytearray(data)
    changed[starts[4] + 30] ^= 1
    assert refusal(path, bytes(changed)).offset == starts[4]


@pytest.mark.parametrize("name", ["a.cassette.jsonl.zst"])
def test_every_changed_byte_of_a_compressed_file_is_found(record, name):
    path = record(1, name)
    data = path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(EvidenceError):
            reader.read(path)


def test_a_removed_record_is_found(record):
    path = record()
    rows = path.read_bytes().splitlines(keepends=True)
    error = refusal(path, b"".join(rows[:3] + rows[4:]))
    assert error.offset == len(b"".join(rows[:3]))


def test_a_removed_last_record_before_the_footer_is_found(record):
    path = record()
    rows = path.read_bytes().splitlines(keepends=True)
    refusal(path, b"".join(rows[:-2] + rows[-1:]))


def test_two_records_in_another_order_are_found(record):
    path = record()
    rows = path.read_bytes().splitlines(keepends=True)
    rows[3], rows[4] = rows[4], rows[3]
    refusal(path, b"".join(rows))


def test_a_record_of_another_cassette_is_found(record):
    path, other = record(4), record(6, "b.cassette.jsonl")
    rows = path.read_bytes().splitlines(keepends=True)
    rows[5] = other.read_bytes().splitlines(keepends=True)[8]
    refusal(path, b"".join(rows))


def test_a_record_that_comes_twice_is_found(record):
    path = record()
    rows = path.read_bytes().splitlines(keepends=True)
    refusal(path, b"".join(rows[:4] + rows[3:]))


def test_something_behind_the_footer_is_found(record):
    path = record()
    assert "follows the footer" in refusal(path, path.read_bytes() + b"x").reason


def forged(record, change) -> EvidenceError:
    path = record()
    records = [json.loads(row) for row in path.read_bytes().splitlines()]
    change(records)
    return refusal(path, chained(records))


def of_kind(records: list[dict], kind: str, nth: int = 0) -> dict:
    return [r for r in records if r["kind"] == kind][nth]


FORGERIES = {
    "a request digest": lambda rs: of_kind(rs, "request").update(digest="0" * 16),
    "another message": lambda rs: of_kind(rs, "request", 2)["native"]["grow"]["messages"].__setitem__(1, 1),
    "a request for another seat": lambda rs: of_kind(rs, "request").update(seat="judge"),
    "a seat that does not exist": lambda rs: of_kind(rs, "request").update(seat="spectator"),
    "a request number": lambda rs: of_kind(rs, "request", 1).update(n=7),
    "a reply to nothing": lambda rs: of_kind(rs, "reply").update(n=3),
    "a second outcome": lambda rs: of_kind(rs, "reply", 1).update(n=1),
    "a reply that is no reply": lambda rs: of_kind(rs, "reply").update(reply={"is": {"text": "x"}}),
    "a document like a later one": lambda rs: of_kind(rs, "request", 2)["native"].update(like=4),
    "a document of both kinds": lambda rs: of_kind(rs, "request", 2)["native"].update({"is": {}}),
    "a leaf that is not there": lambda rs: of_kind(rs, "reply", 2)["reply"].update(leaves=[99, "x"]),
    "an odd number of leaves": lambda rs: of_kind(rs, "reply", 2)["reply"].update(leaves=[0]),
    "a shared value that is not there": lambda rs: of_kind(rs, "reply", 2)["reply"].update(leaves=[0, {"$": 999}]),
    "a negative shared value": lambda rs: of_kind(rs, "reply", 2)["reply"].update(leaves=[0, {"$": -1}]),
    "a shared value that refers to a container": lambda rs: of_kind(rs, "state").update(new=[{"a": {"$": 1}}]),
    "a shared number": lambda rs: of_kind(rs, "state").update(new=[3]),
    "an unknown kind": lambda rs: of_kind(rs, "state").update(kind="stat"),
    "a second header": lambda rs: rs.insert(2, rs[0]),
    "a missing member": lambda rs: of_kind(rs, "exchange").pop("attempt"),
    "a truth value for a number": lambda rs: of_kind(rs, "state").update(turn=True),
    "a status that is no number": lambda rs: rs[2]["new"].__setitem__(-1, {"status": {"code": "200"}, "headers": {}}),
    "an unknown body form": lambda rs: of_kind(rs, "exchange")["request"]["body"].update(form="yaml"),
    "no result": lambda rs: rs.pop(-2),
    "a header without a panel": lambda rs: rs[0].pop("panel"),
    "a reply that is missing": lambda r: r.remove(of_kind(r, "reply", -1)),
    "a header member of another kind": lambda r: r[0].update(seeds=300),
    "a reply whose text is a number": lambda r: of_kind(r, "reply")["reply"].update({"is": {"content": 7}}),
    "a reply whose usage is a text": lambda r: of_kind(r, "reply")["reply"].update({"is": {"content": "x", "usage": "y"}}),
    "seconds that are a text": lambda r: of_kind(r, "exchange").update(timing={"total_s": "long"}),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forger_who_repairs_the_sums_is_found_by_what_the_records_say(record, change):
    assert forged(record, change).exit_code == 5


def test_a_footer_that_counts_other_records_is_found(record):
    path = record()
    rows = [json.loads(row) for row in path.read_bytes().splitlines()]
    *others, footer = rows
    body = path.read_bytes()[: -len(canonical.line(footer)) - 1]
    footer["counts"]["reply"] += 1
    line, _ = lines.write({k: v for k, v in footer.items() if k != "sum"}, others[-1]["sum"])
    assert "counts other records" in refusal(path, body + line).reason


def test_a_footer_with_another_digest_is_found(record):
    path = record()
    rows = [json.loads(row) for row in path.read_bytes().splitlines()]
    body = path.read_bytes()[: -len(canonical.line(rows[-1])) - 1]
    footer = {**rows[-1], "digest": "0" * 64}
    line, _ = lines.write({k: v for k, v in footer.items() if k != "sum"}, rows[-2]["sum"])
    assert "digest" in refusal(path, body + line).reason




FOREIGN = {
    "empty": (b"", "empty"),
    "a newline": (b"\n", "not a cassette"),
    "binary": (bytes(range(256)), "not a cassette"),
    "a text": (b"hello\n", "not a cassette"),
    "a list": (b"[1,2]\n", "not a cassette"),
    "a YAML cassette": (b"interactions: []\nversion: 1\n", "not a cassette"),
    "not UTF-8": (b'{"kind":"header","schema":"\xff"}\n', "UTF-8"),
    "another schema": (b'{"kind":"header","schema":"other/1"}\n', "no cassette schema"),
    "no schema": (b'{"kind":"header"}\n', "no cassette schema"),
    "a member twice": (b'{"kind":"header","kind":"header"}\n', "twice"),
    "not a number": (b'{"kind":"header","x":NaN}\n', "NaN"),
    "a half header": (b'{"kind":"header","schema":"replayk', "no whole header"),
    "deep nesting": (b'{"kind":"header","x":' + b"[" * 100_000 + b"\n", "nested deeper"),
    "zstd magic only": (b"\x28\xb5\x2f\xfd", "empty"),
    "zstd junk": (b"\x28\xb5\x2f\xfd" + b"\xff" * 64, "damaged"),
}


@pytest.mark.parametrize(("data", "words"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_gets_one_line_that_says_what_it_is(tmp_path, data, words):
    error = refusal(tmp_path / "f.cassette.jsonl", data)
    assert words in str(error) and "(at byte " in str(error)


def test_a_newer_schema_is_told_apart_from_damage(tmp_path):
    path = tmp_path / "n.cassette.jsonl"
    path.write_bytes(b'{"kind":"header","schema":"replaykit.cassette/2","new_member":1,"sum":"0123456789abcdef"}\n')
    with pytest.raises(SchemaTooNew, match="update replaykit"):
        reader.read(path)


def test_a_missing_file_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        reader.read(tmp_path / "none.cassette.jsonl")


LIMITS = {"MAX_FILE": 100, "MAX_LINE": 100, "MAX_RECORDS": 2, "MAX_DEPTH": 2}


@pytest.mark.parametrize(("name", "limit"), LIMITS.items(), ids=LIMITS)
def test_a_file_beyond_a_limit_is_refused(record, monkeypatch, name, limit):
    path = record(4)
    monkeypatch.setattr(lines, name, limit)
    refusal(path, path.read_bytes())


@pytest.mark.parametrize("size", [100, 1000])
def test_a_compressed_file_that_unfolds_beyond_the_limit_is_refused(record, monkeypatch, size):
    path = record(4, "a.cassette.jsonl.zst")
    monkeypatch.setattr(lines, "MAX_FILE", path.stat().st_size + size)
    assert "larger than" in refusal(path, path.read_bytes()).reason


def test_references_that_would_unfold_without_end_are_refused(record):
    path = record()
    records = [json.loads(row) for row in path.read_bytes().splitlines()]
    state = of_kind(records, "state")
    base = sum(len(r.get("new", [])) for r in records[: records.index(state)])
    rows = [{"rows": [{"$": base}] * 2000}]
    note = {"kind": "note", "note": {"all": [{"$": base + 1}] * 2000}, "new": ["x" * 2000, *rows]}
    records.insert(records.index(state), note)
    assert "unfolds to more than" in refusal(path, chained(records)).reason


@pytest.mark.parametrize(
    ("part", "member", "value", "words"),
    [
        ("summary", "reward", 0.5, "its summary is not that of the result"),
        ("summary", "termination", "max_steps", "its summary is not that of the result"),
        ("fields", "usage", {}, "its usage is not what the replies add up to"),
        ("fields", "policy_counts", {"transferred": True}, "its policy counts are not those of the final policy state"),
    ],
)
def test_a_footer_that_says_another_thing_than_the_records_is_found(tmp_path, part, member, value, words):
    path = next(ROOT.glob("cassettes/retail/2-reference-*.jsonl"))
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert reader.parse(chained(records)).result is not None
    records[-1][part][member] = value
    assert words in str(refusal(tmp_path / "forged.cassette.jsonl", chained(records)))
