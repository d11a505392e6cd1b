"""Transfer labels, their corrections, and the split manifest."""

import json
from pathlib import Path

import pytest

from replaykit.errors import UsageError
from replaykit.policy.labels import build_labels, document_bytes, label_of, transferred
from replaykit.policy.splits import build_splits, check

GOLD, OTHER = [{"name": "transfer_to_human_agents"}], [{"name": "cancel_reservation"}]
TASKS = [
    {"domain": "airline", "id": "13", "reference_actions": GOLD},
    {"domain": "airline", "id": "2", "reference_actions": OTHER},
    {"domain": "airline", "id": "10", "reference_actions": []},
    {"domain": "retail", "id": "0", "reference_actions": [*OTHER, *GOLD]},
]
REVISION = "dd8757d4"


def derived(rule="hard_negative", **changes):
    task = {"domain": "airline", "id": "mine", "rule": rule, "base": "2"} | changes
    return {"schema": "replaykit.derived-tasks/1", "tasks": [task]}


def override(should_transfer=True, reason="the fare is out of scope", domain="airline", task="2"):
    return {"domains": {domain: {task: {"should_transfer": should_transfer, "reason": reason}}}}


@pytest.mark.parametrize(
    ("task", "y", "rule"),
    [
        ("airline/13", 1, "gold_transfer_action"),
        ("airline/2", 0, "no_transfer"),
        ("airline/10", 0, "no_transfer"),
        ("retail/0", 1, "gold_transfer_action"),
    ],
)
def test_an_upstream_task_is_labelled_by_its_reference_solution(task, y, rule):
    assert label_of(build_labels(TASKS, None, None, REVISION), *task.split("/")) == {"y": y, "rule": rule}


@pytest.mark.parametrize(("rule", "y"), [("explicit_request", 1), ("out_of_scope", 1), ("hard_negative", 0)])
def test_a_derived_task_is_labelled_by_its_rule(rule, y):
    labels = build_labels(TASKS, derived(rule), None, REVISION)
    assert label_of(labels, "airline", "mine") == {"y": y, "rule": rule, "base": "2"}


def test_an_override_corrects_a_label_and_keeps_the_rule():
    entry = label_of(build_labels(TASKS, None, override(), REVISION), "airline", "2")
    assert (entry["y"], entry["rule"]) == (1, "no_transfer")
    assert entry["override"] == {"reason": "the fare is out of scope", "y_by_rule": 0}


def test_a_derived_task_can_be_corrected_too():
    labels = build_labels(TASKS, derived(), override(task="mine"), REVISION)
    assert label_of(labels, "airline", "mine")["y"] == 1


REJECTED_OVERRIDES = {
    "without a reason": (override(reason=""), "no reason"),
    "with a blank reason": (override(reason="  "), "no reason"),
    "with a reason that is no text": (override(reason=5), "no reason"),
    "without a verdict": ({"domains": {"airline": {"2": {"reason": "x"}}}}, "should_transfer"),
    "with a verdict that is no truth value": (override(should_transfer=1), "should_transfer"),
    "for an unknown task": (override(task="99"), "airline/99"),
    "for an unknown domain": (override(domain="telecom"), "telecom/2"),
    "with another member": ({"domains": {"airline": {"2": {"should_transfer": True, "reason": "x", "y": 1}}}}, "only"),
    "that is no object": ({"domains": {"airline": {"2": True}}}, "only"),
    "in another shape": ({"airline": {}}, "not shaped"),
    "in a list": ([], "not shaped"),
}


@pytest.mark.parametrize("case", REJECTED_OVERRIDES)
def test_an_override_is_rejected(case):
    overrides, message = REJECTED_OVERRIDES[case]
    with pytest.raises(UsageError, match=message):
        build_labels(TASKS, None, overrides, REVISION)


REJECTED_DERIVED = {
    "of another schema": ({"schema": "x", "tasks": []}, "schema"),
    "that are a list": ([], "schema"),
    "with an upstream rule": (derived("no_transfer"), "use explicit_request"),
    "with an unknown rule": (derived("angry"), "use explicit_request"),
    "without an id": (derived(id=""), "'id'"),
    "with a number as id": (derived(id=5), "'id'"),
    "with an id that is taken": (derived(id="13"), "twice"),
    "based on a task that is not there": (derived(base="99"), "99"),
    "based on a number": (derived(base=2), "base"),
    "of a domain without tasks": (derived(domain="telecom"), "telecom/mine"),
    "with an unknown member": (derived(label=1), "only"),
}


@pytest.mark.parametrize("case", REJECTED_DERIVED)
def test_derived_tasks_are_rejected(case):
    document, message = REJECTED_DERIVED[case]
    with pytest.raises(UsageError, match=message):
        build_labels(TASKS, document, None, REVISION)


def test_a_task_that_appears_twice_is_rejected():
    with pytest.raises(UsageError, match="airline/13 appears twice"):
        build_labels([*TASKS, TASKS[0]], None, None, REVISION)


def test_an_unknown_task_has_no_label():
    with pytest.raises(UsageError, match="airline/99"):
        label_of(build_labels(TASKS, None, None, REVISION), "airline", "99")


def test_each_rule_stands_in_the_file_once_for_each_of_its_tasks():
    text = document_bytes(build_labels(TASKS, derived(), override(), REVISION)).decode()
    assert (text.count('"gold_transfer_action"'), text.count('"no_transfer"')) == (2, 2)


def test_the_order_of_the_tasks_does_not_change_the_file():
    forward, backward = (document_bytes(build_labels(t, None, None, REVISION)) for t in (TASKS, TASKS[::-1]))
    assert forward == backward


def test_the_example_of_derived_tasks_can_be_used():
    path = Path(__file__).parents[2] / "data" / "derived_tasks.example.json"
    tasks = [{"domain": d, "id": "0", "reference_actions": []} for d in ("airline", "retail")]
    labels = build_labels(tasks, json.loads(path.read_text("utf-8")), None, REVISION)
    rules = [entry["rule"] for entries in labels["domains"].values() for entry in entries.values()]
    assert {"explicit_request", "out_of_scope", "hard_negative"} <= set(rules)


def built(tasks=TASKS, derived_tasks=None, overrides=None):
    labels = document_bytes(build_labels(tasks, derived_tasks, overrides, REVISION))
    return labels, document_bytes(build_splits(labels, tasks))


def test_the_split_manifest_stores_the_label_files_hash():
    import hashlib

    labels, splits = built()
    assert json.loads(splits)["labels_sha256"] == hashlib.sha256(labels).hexdigest()


def test_every_task_is_in_exactly_one_split():
    tasks = [{"domain": "airline", "id": str(i), "reference_actions": GOLD if i < 4 else OTHER} for i in range(50)]
    splits = json.loads(built(tasks)[1])["splits"]
    members = [task for split in splits.values() for task in split["airline"]]
    assert sorted(members, key=int) == [str(i) for i in range(50)]
    assert len(splits["test"]["airline"]) == 1 + 9


def test_the_upstream_split_is_kept_when_the_tasks_name_one():
    tasks = [task | {"split": "test" if task["id"] == "2" else "train"} for task in TASKS]
    splits = json.loads(built(tasks)[1])
    assert splits["rule"] == "upstream"
    assert splits["splits"]["test"] == {"airline": ["2"]}


def test_a_split_on_some_tasks_only_is_rejected():
    tasks = [TASKS[0] | {"split": "test"}, *TASKS[1:]]
    with pytest.raises(UsageError, match="all or to none"):
        built(tasks)


@pytest.mark.parametrize("base", ["2", "10", "13"])
def test_a_derived_task_goes_where_its_base_goes(base):
    splits = json.loads(built(derived_tasks=derived(base=base))[1])["splits"]
    assert [s for s, by in splits.items() if base in by.get("airline", ())] == [
        s for s, by in splits.items() if "mine" in by.get("airline", ())
    ]


def test_what_was_built_passes_the_check():
    labels, splits = built(derived_tasks=derived(), overrides=override())
    assert check(labels, splits, TASKS, derived(), override(), REVISION) == []


def test_the_check_names_a_label_that_was_changed():
    labels, splits = built()
    changed = labels.replace(b'"y": 1', b'"y": 0', 1)
    (line,) = check(changed, splits, TASKS, None, None, REVISION)
    assert line == "airline/13: the file has 0 (gold_transfer_action), the rules give 1 (gold_transfer_action)"


DAMAGES = {
    "another revision": (lambda labels, splits: (labels.replace(b"dd8757d4", b"dd8757d5"), splits), "revision"),
    "no JSON": (lambda labels, splits: (b"{", splits), "not JSON"),
    "another schema": (lambda labels, splits: (b"{}", splits), "schema"),
    "white space": (lambda labels, splits: (labels + b"\n", splits), "other bytes"),
    "another label hash": (
        lambda labels, splits: (labels, splits.replace(b'256": "', b'256": "0')),
        "another label file",
    ),
    "a task moved": (lambda labels, splits: (labels, splits.replace(b'"13"', b'"14"')), "not the one"),
    "no split manifest": (lambda labels, splits: (labels, b""), "another label file"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_check_finds(damage):
    change, message = DAMAGES[damage]
    lines = check(*change(*built()), TASKS, None, None, REVISION)
    assert lines and message in lines[0]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["user: hi", 'call transfer_to_human_agents {"summary": "s"}', "ok: Transfer successful"], True),
        (["user: hi", "call transfer_to_human_agents {}", "error: missing"], True),
        (["user: hi", "agent: I transfer you to a human."], False),
        (["user: transfer_to_human_agents"], False),
    ],
)
def test_transferred_means_that_the_learner_called_the_tool(lines, expected, play):
    assert transferred(play(*lines)) is expected
