"""A fork is a cassette of its own that begins like its parent and names it."""

from __future__ import annotations

import dataclasses
import json

import pytest

from replaykit import fork, resume
from replaykit.cli import app
from replaykit.errors import EvidenceError, PrefixDiverged, UsageError
from replaykit.recorded_terms import models
from replaykit.replay import replay
from replaykit.reports.seams import seams
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


PROMPT = "Answer in one short sentence. Never transfer."


def prompts_of(cassette) -> list[str | None]:
    """The system prompt of each of the learner's requests that is not tau2's own, else None."""
    learner = [r.native.messages[0] for r in cassette.requests if r.seat == "learner"]
    own = learner[0]["content"]
    return [None if m["content"] == own else m["content"] for m in learner]


def test_a_child_asks_with_another_prompt_from_the_seam_on_and_replays(parent, runtime, fleet):
    child = fork.fork(parent, 7, fleet, prompt=PROMPT).path
    cassette = reader.read(child)
    learners = [r.number for r in cassette.requests if r.seat == "learner"]
    assert prompts_of(cassette) == [PROMPT if number >= 7 else None for number in learners]
    body = next(r.exchanges[0].request["body"] for r in cassette.requests if r.seat == "learner" and r.number >= 7)
    assert json.loads(body)["messages"][0] == {"role": "system", "content": PROMPT}
    for level in ("seat", "wire"):
        assert replay(cassette, runtime, fleet, "child", level).status == "equal"


def test_another_prompt_is_another_arm_and_told_at_the_seam(parent, fleet):
    child = reader.read(fork.fork(parent, 7, fleet, prompt=PROMPT).path)
    assert child.header["prompts"] == [{"at": 7, "text": PROMPT}]
    assert child.header["arm"]["digest"] != reader.read(parent).header["arm"]["digest"]
    (seam,) = seams(child.notes)
    assert seam.text.endswith("at request 7, with another system prompt for the learner")


def test_a_child_of_a_child_keeps_its_prompt_until_it_gets_another(parent, runtime, fleet, tmp_path):
    first = fork.fork(parent, 5, fleet, prompt=PROMPT, out=tmp_path / "first.cassette.jsonl").path
    kept = reader.read(fork.fork(first, 9, fleet, out=tmp_path / "kept.cassette.jsonl").path)
    other = reader.read(fork.fork(first, 9, fleet, prompt="Be brief.", out=tmp_path / "other.cassette.jsonl").path)
    before = reader.read(fork.fork(first, 3, fleet, out=tmp_path / "before.cassette.jsonl").path)
    again = reader.read(fork.fork(first, 5, fleet, out=tmp_path / "again.cassette.jsonl").path)
    assert prompts_of(again) == prompts_of(reader.read(first))
    assert set(prompts_of(kept)) == {None, PROMPT} and set(prompts_of(other)) == {None, PROMPT, "Be brief."}
    assert set(prompts_of(before)) == {None} and "prompts" not in before.header
    for cassette in (kept, other, before):
        assert replay(cassette, runtime, fleet, "child").status == "equal"


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt_is_refused(parent, fleet, prompt):
    with pytest.raises(UsageError, match="the prompt is empty"):
        fork.fork(parent, 7, fleet, prompt=prompt)


def test_a_prompt_that_holds_a_key_is_refused(parent, fleet):
    with pytest.raises(UsageError, match="looks like a key"):
        fork.fork(parent, 7, fleet, prompt="Use https://user:secret@host/ for this.")


def test_a_child_that_broke_off_in_its_parents_part_is_not_resumed(parent, fleet, tmp_path):
    child, cut = fork.fork(parent, 7, fleet).path, tmp_path / "cut.cassette.jsonl"
    lines = child.read_bytes().splitlines(keepends=True)
    seam = next(n for n, line in enumerate(lines) if b'"kind":"note"' in line)
    cut.write_bytes(b"".join(lines[: seam - 3]))
    with pytest.raises(UsageError, match="fork its parent again"):
        resume.resume(cut, fleet)
    cut.write_bytes(b"".join(lines[:seam]))
    resume.resume(cut, fleet)
    assert [r.digest for r in reader.read(cut).requests] == [r.digest for r in reader.read(child).requests]


def test_a_child_keeps_the_models_it_was_configured_with(parent, runtime, fleet):
    child = reader.read(fork.fork(parent, 3, fleet, controls="one-exchange").path)
    judge = {"model": "another-judge", "arguments": {"temperature": 0.0}}
    assert child.header["configured"] == models(reader.read(parent)).to_dict()
    unasked = dataclasses.replace(
        child, requests=child.requests[:2], header=child.header | {"configured": child.header["configured"] | {"judge": judge}}
    )
    assert models(unasked).judge == ("another-judge", {"temperature": 0.0})
    with pytest.raises(EvidenceError, match="configured models"):
        models(dataclasses.replace(child, header=child.header | {"configured": {"judge": 5}}))


def test_an_interrupted_child_is_resumed_with_its_prompt_and_its_parents_models(parent, runtime, fleet, tmp_path):
    child = fork.fork(parent, 7, fleet, prompt=PROMPT).path
    whole = reader.read(child)
    lines = child.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.cassette.jsonl"
    cut.write_bytes(b"".join(lines[: len(lines) * 3 // 4]))
    assert reader.read(cut).interrupted
    resume.resume(cut, fleet)
    again = reader.read(cut)
    assert [r.digest for r in again.requests] == [r.digest for r in whole.requests]
    assert replay(again, runtime, fleet, "again").status == "equal"


@pytest.mark.parametrize(
    "prompts", [5, [5], [{"at": 0, "text": "x"}], [{"at": 7}], [{"at": 7, "text": 1}], [{"at": 7, "text": "a"}] * 2]
)
def test_forged_prompts_are_damage(parent, runtime, fleet, prompts):
    cassette = reader.read(parent)
    with pytest.raises(EvidenceError, match="the header's prompts"):
        replay(dataclasses.replace(cassette, header=cassette.header | {"prompts": prompts}), runtime, fleet, "forged")


def test_the_command_takes_a_prompt_from_a_file(parent, tmp_path, capsys):
    place, out = tmp_path / "prompt.md", tmp_path / "child.cassette.jsonl"
    place.write_text(PROMPT)
    assert app.run(["fork", str(parent), "--at", "7", "--prompt", str(place), "--out", str(out)]) == 0
    assert reader.read(out).header["prompts"] == [{"at": 7, "text": PROMPT}]
    place.write_bytes(b"\xff\xfe")
    assert app.run(["fork", str(parent), "--at", "7", "--prompt", str(place)]) == 2
    assert "is not UTF-8" in capsys.readouterr().err
