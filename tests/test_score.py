"""``score``: figures read from headers and footers, panel by panel, arms only under the same conditions."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from replaykit import labels_build, record, score, seating
from replaykit.cassette import CassetteSummary
from replaykit.cli.app import run
from replaykit.controls.server import ControlProvider
from replaykit.errors import EvidenceError
from replaykit.parity import Script
from replaykit.seats import ReplyCall, SeatFailure, SeatReply
from replaykit.store import reader, scan
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.scripted import Scripted
from replaykit.transports.sender import Sender

ROOT = Path(__file__).parent.parent
STOP = SeatReply("###STOP###", cost=0.25, usage={"prompt_tokens": 10, "completion_tokens": 1})
HELLO = SeatReply("Hello")
TRANSFER = SeatReply(tool_calls=(ReplyCall("c1", "transfer_to_human_agents", '{"summary": "s"}'),))
UNKNOWN = SeatReply(tool_calls=(ReplyCall("c1", "no_such_tool", "{}"),))
JUDGE = SeatReply('{"results": []}')


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def episode(runtime, fleet, tmp_path):
    """A function that records one episode in which an arm says what it is told to; gives the cassette's path."""

    def play(panel_id, arm, *learner, seed=300, customer=(HELLO, STOP), model="m", set_name="scripts"):
        panel = fleet.panel(panel_id)
        seats = {"learner": learner, "customer": customer, "judge": [JUDGE]}
        with ControlProvider() as provider, Sender() as sender:
            scenario = runtime.scenarios(panel.domain)[panel.scenario]
            seated = seating.from_controls("one-exchange", scenario, "case", provider, sender)
        named = {"name": arm, "learner": {"model": model}, "digest": model.encode().hex() * 8}
        roster = {**seated.header["roster"], "digest": set_name.encode().hex() * 4}
        header = seated.header | {"arm": named, "roster": roster, "controls": None}
        seated = replace(seated, sources=dict.fromkeys(seats, Scripted(seats)), header=header)
        path = tmp_path / "cassettes" / f"{panel_id.replace('/', '-')}-{arm}-{model}-s{seed}.cassette.jsonl"
        redactor = Redactor(())
        with Journal.create(path, record.header(runtime, fleet, panel, seated, seed), redactor) as journal:
            record.play(runtime, panel, seated, journal, seed, redactor)
        return path

    return play


@pytest.fixture
def scored(fleet, tmp_path):
    """The score document of what was recorded."""

    def read(*ks, arms=None):
        found = score.read(score.find([tmp_path]), fleet, labels_build.read_labels())
        return score.document(found, ks or (1,), arms)

    return read


def test_a_row_says_what_the_footer_says(episode, scored):
    episode("airline/13", "a", TRANSFER, SeatReply("You are being transferred."))
    (row,) = scored()["rows"]
    assert (row["panel"], row["arm"], row["component"]) == ("airline/13", "a", "database:airline")
    assert row["transfer"] == {"y": 1, "rule": "gold_transfer_action", "transferred": 1, "not_transferred": 0}
    assert row["terminations"] == {"user_stop": 1} and row["controls"] == []


def test_violations_and_format_errors_are_counted_by_kind(episode, scored):
    episode("airline/0", "a", replace(UNKNOWN, content="and text"), SeatReply("Done."))
    (row,) = scored()["rows"]
    assert row["violations"] == {"multiple_actions_in_turn": 1}
    assert row["format_errors"] == {"unknown_tool": 1}


def test_what_no_provider_reported_is_not_reported(episode, scored):
    episode("airline/0", "a", SeatReply("Good day."))
    seats = scored()["rows"][0]["seats"]
    assert (seats["learner"]["prompt_tokens"], seats["learner"]["cost"]) == ("not reported", "not reported")
    customer = seats["customer"]
    assert (customer["cost"], customer["prompt_tokens"], customer["cost_not_reported"]) == (0.25, 10, 1)


def test_a_failure_that_may_have_cost_something_is_not_reported_either(episode, scored):
    episode("airline/0", "a", SeatFailure("deadline", "17 s are over"))
    (row,) = scored()["rows"]
    assert row["requests"]["learner"] == 1 and row["seats"]["learner"]["replies"] == 1
    assert row["seats"]["learner"]["tokens_not_reported"] == 1
    assert (row["trials"], row["graded"], row["mean_reward"]) == (1, 0, None)


def test_reliability_is_over_the_trials_of_a_panel(episode, scored):
    for seed in (300, 301, 302):
        episode("airline/0", "a", SeatReply("Good day."), seed=seed)
    (row,) = scored(1, 2, 4)["rows"]
    assert [f["value"] for f in row["reliability"]] == [1.0, 1.0, None]
    assert row["reliability"][2]["reason"] == "undefined: k = 4 is more than the 3 graded trials"


def test_a_repeated_seed_is_reported(episode, scored):
    path = episode("airline/0", "a", SeatReply("Good day."))
    path.with_name("copy.cassette.jsonl").write_bytes(path.read_bytes())
    assert scored()["rows"][0]["repeated_seeds"] == [300]


def test_two_learners_of_one_name_are_two_arms(episode, scored):
    episode("airline/0", "a", SeatReply("Good day."), model="m1")
    episode("airline/0", "a", SeatReply("Good day."), model="m2", seed=301)
    assert sorted(row["arm"] for row in scored()["rows"]) == ["a@6d316d31", "a@6d326d32"]


def test_controls_are_labelled_and_one_arm_on_every_panel(recording, scored, capsys, tmp_path):
    recording("airline/0", "airline/1")
    rows = scored()["rows"]
    assert [(row["arm"], row["controls"]) for row in rows] == [("reference", ["reference"])] * 2
    assert run(["score", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("reference [controls]") == 4


def test_panels_that_share_a_component_are_shown(episode, scored):
    for panel in ("retail/0", "airline/10", "airline/2"):
        episode(panel, "a", SeatReply("Good day."))
    assert scored()["components"] == {"database:airline": ["airline/2", "airline/10"], "database:retail": ["retail/0"]}


def test_the_confusion_of_transfers_counts_panels(episode, scored):
    for seed in (300, 301):
        episode("airline/13", "a", TRANSFER, SeatReply("Bye."), seed=seed)
    episode("airline/0", "a", TRANSFER, SeatReply("Bye."))
    (counts,) = scored()["transfer_confusion"]
    assert (counts["unit"], counts["should_and_did"], counts["should_not_and_did"]) == ("panels", 1, 1)


def test_no_figure_stands_outside_a_panel(episode, scored):
    for panel in ("airline/0", "retail/0"):
        episode(panel, "a", SeatReply("Good day."))
    document = scored()
    for row in document.pop("rows"):
        assert row["panel"]
    text = json.dumps(document)
    assert "reward" not in text and "success" not in text and "reliability" not in text


@pytest.mark.parametrize("option", ["--aggregate", "--overall"])
def test_asking_for_a_figure_across_panels_is_an_error_that_says_why(episode, tmp_path, option, capsys):
    episode("airline/0", "a", SeatReply("Good day."))
    assert run(["score", str(tmp_path), option]) == 2
    assert "each panel is a league of its own" in capsys.readouterr().err


def both_arms(episode, *panels):
    for panel in panels:
        episode(panel, "a", SeatReply("Good day."), model="m1")
        episode(panel, "b", SeatReply("Good evening."), model="m2")


def test_arms_are_compared_panel_by_panel_with_an_interval_over_components(episode, scored):
    both_arms(episode, "airline/0", "airline/3", "retail/0")
    compared = scored(arms=("a", "b"))["comparison"]
    assert [(p["panel"], p["mean_difference"]) for p in compared["panels"]] == [
        ("airline/0", 0.0),
        ("airline/3", 0.0),
        ("retail/0", 0.0),
    ]
    assert compared["interval"]["components"]["database:airline"]["panels"] == 2


def test_with_one_component_the_interval_is_refused(episode, tmp_path, capsys):
    both_arms(episode, "airline/0", "airline/3")
    assert run(["score", str(tmp_path), "--arms", "a", "b"]) == 0
    assert "interval refused: no interval: all pairs are of 1 sampling component" in capsys.readouterr().out


def test_arms_under_another_roster_are_not_compared(episode, tmp_path, capsys):
    episode("airline/0", "a", SeatReply("Good day."), model="m1")
    episode("airline/0", "b", SeatReply("Good day."), model="m2", set_name="others")
    assert run(["score", str(tmp_path), "--arms", "a", "b"]) == 2
    assert "roster differs" in capsys.readouterr().err


def test_an_arm_that_is_not_there_is_named(episode, tmp_path, capsys):
    episode("airline/0", "a", SeatReply("Good day."))
    assert run(["score", str(tmp_path), "--arms", "a", "nobody"]) == 2
    assert "no trial of the arm nobody" in capsys.readouterr().err


def test_an_interrupted_recording_is_listed_and_not_scored(episode, tmp_path, capsys):
    path = episode("airline/0", "a", SeatReply("Good day."))
    cut = path.with_name("cut.cassette.jsonl")
    cut.write_bytes(path.read_bytes()[:-40])
    assert run(["score", str(tmp_path), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [row["trials"] for row in document["rows"]] == [1]
    assert document["not_scored"][0]["path"] == str(cut) and "interrupted" in document["not_scored"][0]["reason"]


def test_a_damaged_file_is_named_and_does_not_stop_the_others(episode, tmp_path, capsys):
    path = episode("airline/0", "a", SeatReply("Good day."))
    bad = path.with_name("bad.cassette.jsonl")
    bad.write_bytes(path.read_bytes().replace(b'"reward":1.0', b'"reward":0.0'))
    assert run(["score", str(tmp_path), "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert len(document["rows"]) == 1 and str(bad) in document["unreadable"][0]["error"]


def changed(summary, part, **members):
    """A summary with other members in its header or in a part of its footer."""
    if part == "header":
        return replace(summary, header=summary.header | members)
    return replace(summary, footer=summary.footer | {part: summary.footer[part] | members})


COUNTS = {"transferred": True, "violations": {}, "format_errors": {}}
FORGERIES = {
    "a reward that is a word": ("summary", {"reward": "1.0"}),
    "a reward that is true": ("summary", {"reward": True}),
    "diagnostics that are a number": ("summary", {"diagnostics": 3}),
    "a seed that is a word": ("header", {"seeds": {"case": "x", "trial": 1}}),
    "an arm without a name": ("header", {"arm": {"learner": {}}}),
    "an arm that is a list": ("header", {"arm": []}),
    "counts that are words": ("fields", {"policy_counts": COUNTS | {"violations": {"x": "y"}}}),
    "counts below nothing": ("fields", {"policy_counts": COUNTS | {"format_errors": {"x": -1}}}),
    "a transfer that is a number": ("fields", {"policy_counts": COUNTS | {"transferred": 1}}),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_header_or_footer_of_another_shape_is_refused(episode, fleet, monkeypatch, case):
    summary = scan.scan(episode("airline/0", "a", SeatReply("Good day.")))
    part, members = FORGERIES[case]
    monkeypatch.setattr(scan, "scan", lambda path: changed(summary, part, **members))
    with pytest.raises(EvidenceError, match="not those of an episode"):
        score.trial(summary.path, fleet, None)


SEEDS = [
    ({"case": 1, "trial": 2}, 1),
    ({"case": None, "trial": 2}, 2),
    ({"case": None, "trial": None, "index": 3}, 3),
]


@pytest.mark.parametrize(("seeds", "expected"), SEEDS)
def test_a_trial_goes_by_the_most_that_is_known_of_its_seed(episode, fleet, monkeypatch, seeds, expected):
    summary = scan.scan(episode("airline/0", "a", SeatReply("Good day.")))
    monkeypatch.setattr(scan, "scan", lambda path: changed(summary, "header", seeds=seeds))
    assert score.trial(summary.path, fleet, None).trial.case_seed == expected


def without_counts(summary: CassetteSummary) -> CassetteSummary:
    return replace(summary, footer=summary.footer | {"fields": {}})


def test_a_cassette_whose_footer_does_not_count_is_read_whole_and_scores_the_same(episode, fleet, monkeypatch):
    path = episode("airline/0", "a", UNKNOWN, SeatFailure("deadline", "17 s are over"))
    quick, summary = score.trial(path, fleet, None), scan.scan(path)
    monkeypatch.setattr(scan, "scan", lambda path: without_counts(summary))
    assert score.trial(path, fleet, None) == quick


def test_without_policy_states_there_is_no_score(episode, fleet, monkeypatch):
    path = episode("airline/0", "a", SeatReply("Good day."))
    summary, cassette = scan.scan(path), reader.read(path)
    monkeypatch.setattr(scan, "scan", lambda path: without_counts(summary))
    monkeypatch.setattr(reader, "read", lambda path: replace(cassette, footer={"result": cassette.footer["result"]}))
    with pytest.raises(score.NotScored, match="no policy states"):
        score.trial(path, fleet, None)


def test_without_a_label_file_tasks_have_no_label(episode, tmp_path, monkeypatch, capsys):
    episode("airline/0", "a", SeatReply("Good day."))
    monkeypatch.setattr(labels_build, "locate", lambda name: None)
    assert run(["score", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "no label / 0 of 1" in out and "there is no label file" in out


def test_a_name_cannot_steer_the_terminal_or_a_spreadsheet(episode, tmp_path, capsys):
    episode("airline/0", "=cmd\x1b[31m", SeatReply("Good day."))
    assert run(["score", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run(["score", str(tmp_path), "--csv"]) == 0
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert line["arm"] == "'=cmd\\x1b[31m" and line["successes"] == "1"


@pytest.mark.parametrize("ks", ["0", "1,-2", "x", "1,,2", "1.5"])
def test_a_k_that_is_no_number_from_1_on_is_wrong_use(tmp_path, ks, capsys):
    assert run(["score", str(tmp_path), "--k", ks]) == 2
    assert "whole numbers from 1 on" in capsys.readouterr().err


def test_scoring_imports_no_engine():
    import subprocess
    import sys

    names = "replaykit.score, replaykit.cli.score, replaykit.reports.score_report"
    probe = f"import sys, {names}; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = done.stdout
    assert not any(f"'{name}'" in loaded for name in ("tau2", "httpx", "vcr", "replaykit.engine.tau2_engine"))


def test_a_scripted_reply_of_the_facts_scores_as_tau2_did(episode, scored, facts):
    case = next(c for c in facts["cases"] if c["kind"] == "reference" and c["panel"] == "airline/1")
    script = {seat: Script(replies)._replies for seat, replies in case["script"].items()}
    episode("airline/1", "a", *script["learner"], customer=script["customer"])
    assert scored()["rows"][0]["mean_reward"] == case["expect"]["reward"]
