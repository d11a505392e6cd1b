"""Cassettes of every schema version can be read for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaykit import canonical
from replaykit.cassette import VERSION
from replaykit.errors import InternalError
from replaykit.store import migrations, reader, scan

OLD = Path(__file__).parent.parent / "data" / "cassettes"
FROZEN = {
    "v1.cassette.jsonl": "b393b47bb6a2f0432de6fa976c58f8cda00763d59356cad40a7d0e2e8baea7ec",
    "v1.cassette.jsonl.zst": "1b4d092e29e6700514d121e3bfa3cd13f5cfdd9d8765529a8c666d9dafc900b3",
}


@pytest.mark.parametrize(("name", "digest"), FROZEN.items(), ids=FROZEN)
def test_an_old_cassette_was_never_edited(name, digest):
    assert canonical.sha256((OLD / name).read_bytes()) == digest


@pytest.mark.parametrize("name", FROZEN)
def test_an_old_cassette_reads_as_it_always_did(name):
    cassette = reader.read(OLD / name)
    fourth = cassette.requests[3]
    assert [r.seat for r in cassette.requests] == ["customer", "learner"] * 3
    assert fourth.native.messages[1]["content"] == "Turn 1 of the customer, a text long enough to be shared."
    assert b'"temperature":0.0' in fourth.exchanges[0].request["body"]
    assert (cassette.result.termination, cassette.states[0][0]) == ("user_stop", 1)
    assert cassette.notes == ({"seam": "example"},)
    assert scan.scan(OLD / name).summary["reward"] == 1.0


def test_every_version_has_a_frozen_cassette():
    assert {f"v{number}.cassette.jsonl" for number in range(1, VERSION + 1)} <= {p.name for p in OLD.iterdir()}


def test_steps_lead_from_each_version_to_the_current_one():
    assert set(migrations.STEPS) == set(range(1, VERSION))


def test_steps_are_chained_in_order():
    steps = {1: lambda records: [*records, {"kind": "two"}], 2: lambda records: [*records, {"kind": "three"}]}
    start = [{"kind": "header"}]
    assert [r["kind"] for r in migrations.migrate(start, 1, steps, 3)] == ["header", "two", "three"]
    assert [r["kind"] for r in migrations.migrate(start, 2, steps, 3)] == ["header", "three"]
    assert migrations.migrate(start, 3, steps, 3) == start


def test_a_missing_step_is_our_own_fault():
    with pytest.raises(InternalError, match="no step leads from cassette schema 2 to 3"):
        migrations.migrate([], 1, {1: list}, 3)


NAMES = {
    "replaykit.cassette/1": 1,
    "replaykit.cassette/12": 12,
    "replaykit.cassette/0": None,
    "replaykit.cassette/01": None,
    "replaykit.cassette/1\n": None,
    "replaykit.cassette/1.0": None,
    "replaykit.certificate/1": None,
    "": None,
    None: None,
    1: None,
}


@pytest.mark.parametrize(("schema", "version"), NAMES.items(), ids=map(repr, NAMES))
def test_a_schema_name_holds_an_integer(schema, version):
    assert migrations.version_of(schema) == version
