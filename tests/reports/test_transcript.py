"""From a cassette to turns, requests and policy states."""

from __future__ import annotations

import pytest

from replaykit.errors import EvidenceError
from replaykit.reports.rebuilding import rebuilt
from replaykit.reports.transcript import transcript
from replaykit.store import reader


@pytest.fixture
def told(domains):
    """The transcript of a cassette's path."""
    return lambda path: transcript(reader.read(path), domains)


def _kinds(turns):
    return [change.kind for turn in turns for change in turn.changes]


def test_each_message_names_the_request_it_answers(cancelled, told):
    numbers = [(t.speaker, t.request) for t in told(cancelled()).turns]
    assert numbers[:4] == [("learner", None), ("customer", 1), ("learner", 2), ("tool", None)]
    assert numbers[-1] == ("customer", 7)


def test_policy_changes_stand_at_the_message_that_made_them(cancelled, told):
    changed = {t.index: [c.text for c in t.changes] for t in told(cancelled()).turns if t.changes}
    assert changed == {
        3: ["authenticated: anna_1"],
        5: ["confirmed: “yes”"],
        6: ["write pending: cancel_pending_order"],
        7: ["write done: cancel_pending_order"],
        9: ["not confirmed: no affirmative"],
    }


def test_a_write_without_authentication_and_confirmation_shows_its_violations(script, told):
    played = script().customer("Cancel it.").learner(None, ("cancel_pending_order", {"order_id": "#W1"}))
    path = played.result("ok").end()
    assert _kinds(told(path).turns).count("violation") == 3  # and it is off the (empty) reference


def test_the_judge_is_an_aside(cancelled, told):
    assert [(a.seat, a.kind, a.text) for a in told(cancelled()).asides] == [("judge", "judge", '{"results": []}')]


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (lambda s: s.fails("learner", "deadline", "it took too long").end(termination="timeout"), "failure"),
        (lambda s: s.asks().interrupt(), "unanswered"),
    ],
    ids=["a failed request", "an unanswered request"],
)
def test_a_request_without_reply_is_an_aside(script, told, ending, kind):
    assert [a.kind for a in told(ending(script().customer("Hello."))).asides] == [kind]


def test_a_lost_turn_is_shown_with_its_raw_text(script, told):
    played = script().customer("Hello.").learner("cut in the mid")
    ending = {"reason": "truncated", "termination": "context_window_exceeded", "detail": ""}
    lost = {"seat": "learner", "number": 2, **ending}
    found = told(played.end(trajectory=played.trajectory[:-1], lost_turn=lost))
    assert [(a.kind, a.text) for a in found.asides] == [("lost", "cut in the mid")]


def test_an_interrupted_recording_is_rebuilt_from_requests_and_replies(script, told):
    played = script().customer("Hello.").learner(None, ("get_order_details", {"order_id": "#W1"}))
    played.result("Error: no", True).learner("I am sorry.")
    found = told(played.interrupt())
    assert [t.message for t in found.turns] == played.trajectory
    assert found.result is None


def test_an_interrupted_recording_before_the_learner_spoke_shows_the_greeting_and_the_customer(script, told):
    played = script().customer("Hello.")
    assert [t.speaker for t in told(played.interrupt()).turns] == ["learner", "customer"]


def test_an_interrupted_recording_blames_no_write_as_off_the_reference(script, told):
    played = script().customer("Yes.").learner(None, ("find_user_id_by_email", {"email": "a"})).result("anna")
    played.learner(None, ("cancel_pending_order", {"order_id": "#W1"})).result("ok").asks()
    assert "violation" not in _kinds(told(played.interrupt()).turns)


def test_nothing_recorded_gives_no_turns():
    assert rebuilt([]) == []


def test_the_first_state_that_is_not_the_recorded_one_is_named(cancelled, told):
    states = {"turns": [{"turn": 0, "digest": "0" * 64}, {"turn": 2, "digest": "0" * 64}]}
    found = told(cancelled(policy_states=states))
    assert [t.index for t in found.turns if t.agrees is False] == [0]
    assert "after message 0" in found.policy_note


def test_recorded_states_that_are_recomputed_agree(recording, fleet):
    found = transcript(reader.read(recording("retail/2")[0]), fleet.domains)
    learner = [t for t in found.turns if t.speaker == "learner"]
    assert [t.agrees for t in learner] == [True] * len(learner)


def test_a_domain_that_the_fleet_does_not_know_has_no_policy_states(cancelled):
    found = transcript(reader.read(cancelled()), {})
    assert {t.state for t in found.turns} == {None}
    assert "retail/2" in found.policy_note


@pytest.mark.parametrize(
    "trajectory",
    [None, {}, ["x"], [{"role": "wizard"}], [{"role": "user", "content": 7}], [{"role": "user", "tool_calls": [{}]}]],
    ids=["none", "an object", "texts", "another role", "a number said", "a call without name"],
)
def test_a_trajectory_that_is_none_is_damaged_evidence(script, told, trajectory):
    path = script().customer("Hello.").end(trajectory=trajectory)
    with pytest.raises(EvidenceError, match="the stored trajectory"):
        told(path)


SEAMS = {
    "a resume": ({"kind": "resume", "after_request": 2, "asked_again": False}, "resumed after request 2"),
    "a request asked again": (
        {"kind": "resume", "after_request": 2, "asked_again": True},
        "resumed after request 2, which was asked again",
    ),
    "a fork": (
        {"kind": "fork", "at": 3, "parent": "ab" * 32, "parent_name": "p.cassette.jsonl"},
        "forked from p.cassette.jsonl (abababababababab…) at request 3",
    ),
}


@pytest.mark.parametrize(("seam", "text"), SEAMS.values(), ids=SEAMS)
def test_a_seam_stands_before_the_first_turn_behind_it(seam, text, script, told):
    played = script().customer("Hello.").learner("Hi.").customer("Help.")
    played.journal.note({"seam": seam})
    assert [t.seam for t in told(played.end()).turns] == [None, None, None, text]


@pytest.mark.parametrize("note", [{"seam": "x"}, {"seam": {"kind": "fork", "at": "y"}}, {"other": 1}])
def test_a_note_that_is_no_seam_is_left_out(note, script, told):
    played = script().customer("Hello.")
    played.journal.note(note)
    assert [t.seam for t in told(played.end()).turns] == [None, None]
