"""``labels build`` and ``labels check``: the manifests as files, against the engine's own scenarios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replaykit import labels_build
from replaykit.cli.app import run
from replaykit.errors import UsageError

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "data" / "derived_tasks.example.json"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of one's own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def built(here, runtime):
    """Manifests built there."""
    assert run(["labels", "build"]) == 0
    return here / labels_build.FOLDER


def override(folder, **tasks):
    (folder / labels_build.OVERRIDES).write_text(json.dumps({"domains": {"airline": tasks}}), encoding="utf-8")


def test_the_committed_manifests_pass_the_check(runtime, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert run(["labels", "check"]) == 0
    assert "164 labels (159 no_transfer, 5 gold_transfer_action)" in capsys.readouterr().out


def test_the_committed_overrides_are_valid_and_empty(runtime):
    document = json.loads((ROOT / labels_build.FOLDER / labels_build.OVERRIDES).read_text(encoding="utf-8"))
    assert document == {"domains": {}}


def test_building_twice_gives_the_same_bytes(built):
    before = [(built / name).read_bytes() for name in (labels_build.LABELS, labels_build.SPLITS)]
    assert run(["labels", "build"]) == 0
    assert [(built / name).read_bytes() for name in (labels_build.LABELS, labels_build.SPLITS)] == before


def test_every_task_stands_in_the_split_upstream_puts_it_in(built):
    manifest = json.loads((built / labels_build.SPLITS).read_text(encoding="utf-8"))
    sizes = {split: {domain: len(ids) for domain, ids in by.items()} for split, by in manifest["splits"].items()}
    assert manifest["rule"] == "upstream"
    assert sizes == {"train": {"airline": 30, "retail": 74}, "test": {"airline": 20, "retail": 40}}


def test_the_labels_name_the_revision_of_the_tasks(built, runtime):
    labels = json.loads((built / labels_build.LABELS).read_text(encoding="utf-8"))
    assert labels["revision"] == "dd8757d4c8791dad7b3cdaf02a105a3d5f9d86bd"


DAMAGES = {
    "a label was turned": (labels_build.LABELS, b'"y": 1', b'"y": 0', "the rules give 1 (gold_transfer_action)"),
    "a rule was renamed": (labels_build.LABELS, b'"gold_transfer_action"', b'"no_transfer"', "the rules give 1"),
    "a task was moved": (labels_build.SPLITS, b'"13"', b'"14"', "not the one that the labels give"),
    "the hash was changed": (labels_build.SPLITS, b'256": "', b'256": "0', "another label file"),
    "the file was cut": (labels_build.LABELS, b"{", b"", "not JSON"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_check_ends_with_1_when(built, damage, capsys):
    name, old, new, sentence = DAMAGES[damage]
    path = built / name
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    assert run(["labels", "check"]) == 1
    assert sentence in capsys.readouterr().out


def test_a_correction_turns_a_label_and_keeps_what_the_rule_gave(built):
    override(built, **{"0": {"should_transfer": True, "reason": "the user asks for a human twice"}})
    assert run(["labels", "check"]) == 1
    assert run(["labels", "build"]) == 0 == run(["labels", "check"])
    entry = json.loads((built / labels_build.LABELS).read_text(encoding="utf-8"))["domains"]["airline"]["0"]
    assert entry["y"] == 1 and entry["override"] == {"reason": "the user asks for a human twice", "y_by_rule": 0}


def test_derived_tasks_are_labelled_by_their_own_rules(built):
    assert run(["labels", "build", "--derived", str(EXAMPLE)]) == 0
    assert run(["labels", "check", "--derived", str(EXAMPLE)]) == 0
    assert run(["labels", "check"]) == 1
    labels = labels_build.read_labels(built / labels_build.LABELS)
    assert labels["domains"]["retail"]["derived_repair_at_home"] == {"y": 1, "rule": "out_of_scope"}


BAD_OVERRIDES = {
    "without a reason": ('{"domains": {"airline": {"0": {"should_transfer": true}}}}', "no reason"),
    "for an unknown task": ('{"domains": {"airline": {"x": {"should_transfer": true, "reason": "r"}}}}', "unknown"),
    "that is no JSON": ("{", "cannot be read as JSON"),
    "that names a task twice": ('{"domains": {"airline": {"0": {}, "0": {}}}}', "'0' stands twice"),
    "nested without end": ("[" * 100_000, "cannot be read as JSON"),
}


@pytest.mark.parametrize("case", BAD_OVERRIDES)
def test_an_override_is_refused(built, case, capsys):
    text, sentence = BAD_OVERRIDES[case]
    (built / labels_build.OVERRIDES).write_text(text, encoding="utf-8")
    assert run(["labels", "build"]) == 2
    assert sentence in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(here, runtime, capsys):
    assert run(["labels", "build", "--derived", "no/such.json"]) == 2
    assert "no/such.json" in capsys.readouterr().err
    assert run(["labels", "check", "--dir", str(here)]) == 2
    assert "labels_v1.json cannot be read" in capsys.readouterr().err


NO_LABELS = {
    "a list": "[]",
    "another schema": '{"schema": "x"}',
    "a label of 2": '{"schema": "replaykit.labels/1", "domains": {"airline": {"0": {"y": 2, "rule": "no_transfer"}}}}',
    "an unknown rule": '{"schema": "replaykit.labels/1", "domains": {"airline": {"0": {"y": 1, "rule": "x"}}}}',
}


@pytest.mark.parametrize("case", NO_LABELS)
def test_what_is_no_label_file_is_refused(tmp_path, case):
    path = tmp_path / "labels.json"
    path.write_text(NO_LABELS[case], encoding="utf-8")
    with pytest.raises(UsageError, match="label"):
        labels_build.read_labels(path)
