"""A fork is a cassette of its own that begins like its parent and names it."""

from __future__ import annotations

import pytest

from replaykit import fork
from replaykit.errors import PrefixDiverged, UsageError
from replaykit.replay import replay
from replaykit.store import reader

PANEL = "retail/2"


@pytest.fixture
def parent(recording):
    """The path of a whole recording."""
    return recording(PANEL)[0]


@pytest.mark.parametrize(
    ("at", "controls"), [(1, "one-exchange"), (2, "reference"), (7, "one-exchange"), (15, "reference")]
)
def test_a_child_replays_without_its_parent(parent, runtime, fleet, tmp_path, at, controls):
    child = fork.fork(parent, at, fleet, controls=controls, out=tmp_path / "child.cassette.jsonl").path
    parent.unlink()
    assert replay(reader.read(child), runtime, fleet, "child").status == "equal"


def test_the_beginning_is_the_parents_to_the_byte_and_the_rest_is_not(parent, fleet):
    child = reader.read(fork.fork(parent, 7, fleet, controls="one-exchange").path)
    whole = reader.read(parent)
    shared = [(r.digest, r.outcome, [e.response["body"] for e in r.exchanges]) for r in whole.requests[:6]]
    assert [(r.digest, r.outcome, [e.response["body"] for e in r.exchanges]) for r in child.requests[:6]] == shared
    assert child.requests[6].digest == whole.requests[6].digest
    assert child.requests[6].outcome != whole.requests[6].outcome


def test_the_child_names_its_parents_digest_and_the_seam(parent, fleet):
    child = reader.read(fork.fork(parent, 7, fleet, controls="one-exchange").path)
    seam = {"parent": reader.read(parent).digest, "parent_name": parent.name, "at": 7}
    assert child.header["fork"] == seam
    assert child.notes == ({"seam": {"kind": "fork", **seam}},)
    assert child.header["arm"]["name"] == "one-exchange"


def test_the_child_goes_beside_its_parent_and_never_over_another_file(parent, fleet):
    child = fork.fork(parent, 3, fleet).path
    assert child == parent.with_name("2-reference-s300-fork3-reference.cassette.jsonl")
    with pytest.raises(UsageError, match="exists"):
        fork.fork(parent, 3, fleet)


@pytest.mark.parametrize("at", [0, 16, 99])
def test_a_seam_outside_the_recording_is_refused(parent, fleet, at):
    with pytest.raises(UsageError, match="requests 1 to 15"):
        fork.fork(parent, at, fleet)


def test_an_interrupted_recording_forks_where_it_has_replies(parent, runtime, fleet, tmp_path):
    whole = parent.read_bytes().splitlines(keepends=True)
    ends = [i for i, line in enumerate(whole) if line.startswith(b'{"kind":"request"')]
    cut = tmp_path / "cut.cassette.jsonl"
    cut.write_bytes(b"".join(whole[: ends[5] + 1]))
    child = fork.fork(cut, 6, fleet).path
    assert replay(reader.read(child), runtime, fleet, "child").status == "equal"


def test_the_budget_of_a_child_begins_where_its_parents_was(parent, fleet):
    done = fork.fork(parent, 15, fleet)
    assert done.requests == len(reader.read(done.path).requests)


def test_another_fleet_is_refused(parent, fleet):
    with pytest.raises(UsageError, match="another fleet"):
        fork.fork(parent, 3, fleet.model_copy(update={"panels": fleet.panels[:100]}))


def test_a_beginning_that_does_not_play_as_recorded_leaves_no_child(parent, fleet, tmp_path, runtime, monkeypatch):
    domain = runtime.domain("retail")
    changed = [*domain.schemas[1:], domain.schemas[0]]
    monkeypatch.setattr(domain, "schemas", changed)
    out = tmp_path / "child.cassette.jsonl"
    with pytest.raises(PrefixDiverged, match="request 2"):
        fork.fork(parent, 5, fleet, out=out)
    assert not out.exists()
