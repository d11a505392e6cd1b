"""Sides are cassettes, replay reports or folders of either; what belongs together is found by panel and trial."""

from __future__ import annotations

import json
import shutil

import pytest

from replaykit import replay_many
from replaykit.diff import report
from replaykit.errors import EvidenceError, UsageError
from replaykit.reports import diff_html, diff_junit, diff_terminal, replay_report

from .rewriting import rewritten


@pytest.fixture
def sides(episodes, tmp_path):
    """Two folders with the same episodes under other names."""
    left, right = tmp_path / "left", tmp_path / "right"
    for folder, suffix in ((left, "a"), (right, "b")):
        folder.mkdir()
        for panel, cassette in episodes.items():
            shutil.copy(cassette.path, folder / f"{panel.replace('/', '-')}-{suffix}.cassette.jsonl")
    return left, right


def edited(sides, episodes, function, panel="retail/2"):
    """Change one episode of the right side."""
    path = sides[1] / f"{panel.replace('/', '-')}-b.cassette.jsonl"
    path.unlink()
    rewritten(episodes[panel], path, function)
    return report.compare(*sides)


def test_folders_are_paired_by_panel_whatever_the_files_are_called(sides, episodes):
    found = report.compare(*sides)
    assert [pair.panel for pair in found.pairs] == ["airline/7", "airline/23", "retail/2", "retail/37"]
    assert (found.status, found.exit_code) == ("same", 0)


def test_trials_of_one_panel_are_paired_by_case_seed(sides, episodes, tmp_path):
    for folder in sides:
        for seed in (301, 302):
            path = folder / f"trial{seed * (1 if folder is sides[0] else -1)}.cassette.jsonl"
            rewritten(episodes["retail/2"], path, lambda data, seed=seed: data["header"]["seeds"].update(case=seed))
    pairs = [p for p in report.compare(*sides).pairs if p.panel == "retail/2"]
    assert sorted(p.case_seed for p in pairs) == [300, 301, 302]
    assert {p.status for p in pairs} == {"same"}


def test_two_arms_of_one_panel_are_paired_with_themselves(sides, episodes):
    for folder, name in ((sides[0], "a"), (sides[1], "0")):
        path = folder / f"{name}.cassette.jsonl"
        rewritten(episodes["retail/2"], path, lambda data: data["header"]["arm"].update(name="other"))
    assert {p.status for p in report.compare(*sides).pairs} == {"same"}


def test_another_arm_is_compared_where_it_is_the_only_one(sides, episodes):
    found = edited(sides, episodes, lambda data: data["header"]["arm"].update(name="other"))
    changed = next(p for p in found.pairs if p.status == "different")
    assert [f.place for f in changed.findings] == ["/header/arm/name"]


def test_an_episode_on_one_side_only_is_a_difference(sides):
    next(sides[1].glob("retail-37*")).unlink()
    found = report.compare(*sides)
    lonely = next(p for p in found.pairs if p.panel == "retail/37")
    assert (lonely.status, lonely.right, found.exit_code) == ("different", None, 1)


def test_a_damaged_file_in_a_folder_does_not_stop_the_others_and_decides_the_exit_code(sides):
    path = next(sides[1].glob("retail-37*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = report.compare(*sides)
    assert sorted(p.status for p in found.pairs) == ["error", "same", "same", "same"]
    assert found.exit_code == 5


def test_a_damaged_file_that_was_named_is_an_error(sides):
    left, right = (next(side.glob("retail-37*")) for side in sides)
    right.write_bytes(right.read_bytes()[:-40] + b"\n")
    with pytest.raises(EvidenceError):
        report.compare(left, right)


@pytest.mark.parametrize("name", ["missing", "empty", "other.json"])
def test_a_side_with_nothing_to_compare_is_refused(sides, tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError):
        report.compare(sides[0], tmp_path / name)


def test_a_cause_that_several_panels_share_is_told_once_with_its_panels(sides, episodes):
    def edit(data):
        for turn in data["turns"]:
            if turn["native"]["tools"]:
                turn["native"]["tools"][-1]["function"]["description"] = "Another text."

    edited(sides, episodes, edit, "retail/2")
    found = edited(sides, episodes, edit, "retail/37")
    assert [change.panels for change in found.changes] == [("retail/2", "retail/37")]
    assert found.changes[0].finding.pointer.endswith("/function/description")


@pytest.fixture
def reports(sides, runtime, fleet, tmp_path):
    """Replay reports of both sides."""
    paths = []
    for side in sides:
        outcomes = replay_many.run(replay_many.find([side]), fleet, 1, _Still())
        path = tmp_path / f"{side.name}.json"
        path.write_text(replay_report.text(outcomes))
        paths.append(path)
    return paths


class _Still:
    def step(self, errors: bool = False) -> None:
        """No progress is shown."""


def test_two_replay_reports_of_the_same_episodes_are_the_same(reports):
    assert report.compare(*reports).status == "same"


def test_a_replay_that_diverged_differs_from_one_that_did_not(reports):
    document = json.loads(reports[1].read_text())
    entry = document["cassettes"][2]
    named = {"kind": "request", "seat": "learner", "number": 2, "pointer": "/tools/3/function/description"}
    rest = {"recorded": "old", "actual": "new", "sentence": "request 2 differs", "environment": None}
    entry |= {"status": "diverged", "divergences": [named | rest]}
    entry["engine"]["version"] = "9"
    reports[1].write_text(json.dumps(document))
    found = report.compare(*reports)
    changed = next(p for p in found.pairs if p.status == "different")
    divergence = next(f for f in changed.findings if f.place.startswith("/divergences"))
    assert (divergence.seat, divergence.number, divergence.left, divergence.right) == ("learner", 2, "old", "new")
    assert divergence.follows_from == ("engine",)


def test_a_changed_tool_under_another_engine_is_told_once_with_the_panels_it_touches(reports):
    document = json.loads(reports[1].read_text())
    for entry in document["cassettes"]:
        entry["engine"]["source_digest"] = "0" * 64
    for entry in document["cassettes"][:2]:
        named = {"kind": "request", "seat": "learner", "number": 2, "pointer": "/tools/3/function/description"}
        rest = {"recorded": "old", "actual": "new", "sentence": "request 2 differs", "environment": None}
        entry |= {"status": "diverged", "divergences": [named | rest]}
    reports[1].write_text(json.dumps(document))
    changes = report.compare(*reports).changes
    assert [len(change.panels) for change in changes] == [4, 2]
    assert changes[1].finding.pointer == "/tools/3/function/description"


def test_a_report_is_compared_with_the_cassettes_it_is_about(reports, sides):
    assert {p.status for p in report.compare(sides[0], reports[0]).pairs} == {"same"}


def test_a_hash_that_only_a_report_holds_is_said_to_be_not_located(reports):
    document = json.loads(reports[1].read_text())
    document["cassettes"][0]["final_db_hash"] = "0" * 64
    reports[1].write_text(json.dumps(document))
    finding = next(p for p in report.compare(*reports).pairs if p.status == "different").findings[0]
    assert finding.kind == "not_located"


@pytest.mark.parametrize("divergences", [{}, [1], [{"kind": "request"}]])
def test_a_report_of_another_form_is_refused_with_one_sentence(reports, divergences):
    document = json.loads(reports[1].read_text())
    document["cassettes"][0]["divergences"] = divergences
    reports[1].write_text(json.dumps(document))
    with pytest.raises(UsageError, match="another form"):
        report.compare(*reports)


HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e]]>&\ud800"


@pytest.fixture
def hostile(sides, episodes):
    """A comparison whose differing texts would steer a terminal, a browser or an XML reader."""

    def edit(data):
        data["turns"][3]["outcome"]["reply"]["content"] = HOSTILE
        data["turns"][4]["native"]["messages"][-1]["content"] = HOSTILE

    return edited(sides, episodes, edit)


def test_recorded_text_is_text_on_a_terminal(hostile):
    printed = "\n".join(diff_terminal.lines(hostile, show_all=True))
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    printed.encode("utf-8")


def test_recorded_text_is_text_on_a_page(hostile):
    page = diff_html.page(hostile)
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "&lt;script&gt;" in page
    page.encode("utf-8")


def test_recorded_text_is_text_in_junit(hostile):
    from xml.etree import ElementTree

    suite = ElementTree.fromstring(diff_junit.document(hostile).encode()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("4", "1")


def test_a_report_of_a_comparison_is_json_and_holds_no_clock(hostile, sides):
    once, again = (json.dumps(r.to_dict(), sort_keys=True) for r in (hostile, report.compare(*sides)))
    assert once == again


def test_a_long_value_is_cut_with_its_size_and_digest(sides, episodes):
    def edit(data):
        data["turns"][3]["outcome"]["reply"]["content"] = "x" * 100_000

    found = edited(sides, episodes, edit)
    finding = next(p for p in found.pairs if p.status == "different").first.to_dict()
    assert finding["right"]["$cut"] == 100_002
    assert len(json.dumps(finding)) < 8_000


def test_the_terminal_shows_twenty_differences_of_a_section_at_most(sides, episodes):
    def edit(data):
        data["footer"]["result"]["trajectory"] = []

    found = edited(sides, episodes, edit)
    short, whole = (list(diff_terminal.lines(found, show_all)) for show_all in (False, True))
    assert len(short) < 30 < len(whole)
    assert any("--all" in line for line in short)
