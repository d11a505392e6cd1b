"""Cassettes that are cut anywhere, or whose members have any shape: shown or refused in a sentence, never a crash."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from replaykit.cli.app import run
from replaykit.errors import EvidenceError
from replaykit.reports import conversation
from replaykit.reports.transcript import transcript
from replaykit.reports.viewer import page
from replaykit.reports.viewer.episodes import Collection
from replaykit.store import reader

JUNK = (None, 7, "text", [], {}, [7], {"a": 7}, [{"a": [None]}], {"a": {"b": {"c": 1}}}, True, 1e300)
MEMBERS = (
    "termination", "steps", "errors", "initial_db_hash", "reward", "reward_info", "reference_actions", "lost_turn",
    "diagnostics", "db_changes",
)  # fmt: skip
HEADER = ("engine", "settings", "roster", "arm", "seeds", "controls", "created_by", "imported", "derived", "unknown")


def viewed(told):
    """The viewer's data of one episode."""
    collection = Collection()
    collection.add(told)
    return collection.to_dict()


def _looks(path, tmp_path, capsys):
    """Show and view a cassette; the exit codes, and what was said on standard error."""
    codes = run(["show", str(path)]), run(["view", str(path), "--out", str(tmp_path / "o.html")])
    return codes, capsys.readouterr()


def test_a_cassette_cut_anywhere_behind_its_header_is_shown_as_interrupted(cancelled, tmp_path, capsys):
    data = cancelled().read_bytes()
    first, last = data.index(b"\n") + 1, data.rstrip().rindex(b"\n")
    for place in range(first, last, (last - first) // 23):
        cut = tmp_path / f"{place}.cassette.jsonl"
        cut.write_bytes(data[:place])
        codes, said = _looks(cut, tmp_path, capsys)
        assert codes == (0, 0), said.err
        assert "INTERRUPTED" in said.out


@pytest.mark.parametrize("member", MEMBERS)
def test_a_result_with_members_of_any_shape_is_shown_or_refused(member, script, domains):
    played = script().customer("Yes.").learner(None, ("cancel_pending_order", {"order_id": "#W1"}))
    cassette = reader.read(played.result("ok").end())
    for junk in JUNK:
        result = cassette.footer["result"] | {member: junk}
        odd = replace(cassette, footer=cassette.footer | {"result": result, "usage": junk, "policy_states": junk})
        with contextlib.suppress(EvidenceError):
            told = transcript(odd, domains)
            assert conversation.text(told, conversation.View(100))
            assert page.html(viewed(told))


@pytest.mark.parametrize("member", HEADER)
def test_a_header_with_members_of_any_shape_is_shown(member, script, tmp_path, capsys):
    for i, junk in enumerate(JUNK):
        codes, said = _looks(script(f"{member}-{i}", **{member: junk}).customer("Hello.").end(), tmp_path, capsys)
        assert set(codes) <= {0, 5}, (junk, said.err)


@pytest.mark.parametrize("content", JUNK, ids=repr)
def test_native_messages_of_any_shape_are_shown_or_refused(content, script, tmp_path, capsys):
    played = script().customer("Hello.")
    played._native.append({"role": "assistant", "content": content, "tool_calls": content})
    codes, said = _looks(played.asks().interrupt(), tmp_path, capsys)
    assert set(codes) <= {0, 5}, said.err
