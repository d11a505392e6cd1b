"""The split manifest: which tasks a training loop may learn from and which it is tested on.

Every task keeps upstream's own split when the task list names one (``"split"``). Otherwise a fifth of each domain and
label goes to ``test``, in the order of the digests of the task names, and at least one where there are two or more.
A derived task goes where the task it is based on goes, so that no scenario is on both sides; under upstream's splits
a derived task without a base goes to ``train``.

The manifest stores the hash of the label file it was made from; `check` recomputes both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.policy.labels import LABELS_SCHEMA, build_labels, document_bytes

SPLITS_SCHEMA = "replaykit.splits/1"
_TEST_SHARE = 5  # one in five


def build_splits(labels_document: bytes, tasks: Iterable[Mapping]) -> dict:
    """The split manifest.

    Args:
        labels_document: The bytes of the label file.
        tasks: The task list the labels were made from; each may carry ``"split": "train" | "test"``, all or none.

    Returns:
        ``{"schema", "labels_sha256", "rule": "upstream" | "digest", "splits": {SPLIT: {DOMAIN: [ID, ...]}}}``.

    Raises:
        UsageError: some tasks carry a split and some do not, or the labels are of other tasks.
    """
    labels, tasks = _parsed(labels_document), list(tasks)
    named = {(t["domain"], str(t["id"])): t["split"] for t in tasks if t.get("split") is not None}
    if named and len(named) != len(tasks):
        raise UsageError("some tasks carry a split and some do not: give one to all or to none")
    split_of = named or _by_digest(labels["domains"])
    splits: dict[str, dict[str, list[str]]] = {}
    for domain, entries in labels["domains"].items():
        for task_id, entry in entries.items():
            split = _split_of_entry(split_of, domain, task_id, entry)
            splits.setdefault(split, {}).setdefault(domain, []).append(task_id)
    ordered = {split: {d: sorted(ids, key=_natural) for d, ids in by.items()} for split, by in splits.items()}
    return {
        "schema": SPLITS_SCHEMA,
        "labels_sha256": canonical.sha256(labels_document),
        "rule": "upstream" if named else "digest",
        "splits": ordered,
    }


def check(
    labels_document: bytes,
    splits_document: bytes,
    tasks: Sequence[Mapping],
    derived: Mapping | None,
    overrides: Mapping | None,
    revision: str,
) -> list[str]:
    """Recompute both documents and say where the given ones depart; an empty list is a pass.

    Raises:
        UsageError: the derived tasks or overrides cannot be used.
    """
    labels = build_labels(tasks, derived, overrides, revision)
    if document_bytes(labels) != labels_document:
        return _departures(labels_document, labels) or ["the label file has other bytes than its content gives"]
    splits = document_bytes(build_splits(labels_document, tasks))
    if splits == splits_document:
        return []
    if _labels_hash(splits_document) != canonical.sha256(labels_document):
        return ["the split manifest was made from another label file: build the labels again"]
    return ["the split manifest is not the one that the labels give: build the labels again"]


def _parsed(labels_document: bytes) -> dict:
    try:
        labels = json.loads(labels_document)
    except (ValueError, RecursionError) as error:
        raise UsageError("the label file is not JSON: build the labels again") from error
    if not isinstance(labels, dict) or labels.get("schema") != LABELS_SCHEMA:
        raise UsageError(f"the label file is not of schema {LABELS_SCHEMA}: build the labels again")
    return labels


def _labels_hash(splits_document: bytes) -> object:
    try:
        manifest = json.loads(splits_document)
    except (ValueError, RecursionError):
        return None
    return manifest.get("labels_sha256") if isinstance(manifest, dict) else None


def _by_digest(domains: Mapping[str, Mapping[str, Mapping]]) -> dict[tuple[str, str], str]:
    strata: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for domain, entries in domains.items():
        for task_id, entry in entries.items():
            if "base" not in entry:
                strata.setdefault((domain, entry["y"]), []).append((domain, task_id))
    split_of = {}
    for members in strata.values():
        members.sort(key=lambda name: canonical.sha256("/".join(name).encode("utf-8")))
        test_count = max(len(members) // _TEST_SHARE, 1 if len(members) > 1 else 0)
        split_of.update({name: "test" if place < test_count else "train" for place, name in enumerate(members)})
    return split_of


def _split_of_entry(split_of: Mapping, domain: str, task_id: str, entry: Mapping) -> str:
    name = (domain, entry.get("base", task_id))
    if name in split_of:
        return split_of[name]
    if entry["rule"] in ("gold_transfer_action", "no_transfer"):
        raise UsageError(f"the label file has the task {domain}/{task_id}, which the task list lacks")
    return "train"


def _natural(task_id: str) -> tuple[int, int, str]:
    return (0, int(task_id), "") if task_id.isascii() and task_id.isdigit() else (1, 0, task_id)


def _departures(labels_document: bytes, expected: Mapping) -> list[str]:
    try:
        found = json.loads(labels_document)
    except (ValueError, RecursionError):
        return ["the label file is not JSON: build the labels again"]
    if not isinstance(found, dict) or found.get("schema") != expected["schema"]:
        return [f"the label file is not of schema {expected['schema']}: build the labels again"]
    lines = []
    if found.get("revision") != expected["revision"]:
        lines.append(f"the label file is of revision {found.get('revision')}, the tasks of {expected['revision']}")
    ours, theirs = _flat(expected), _flat(found)
    for name in sorted(set(ours) | set(theirs)):
        if ours.get(name) != theirs.get(name):
            lines.append(f"{name}: the file has {_shown(theirs.get(name))}, the rules give {_shown(ours.get(name))}")
    return lines


def _flat(document: Mapping) -> dict[str, Mapping]:
    domains = document.get("domains")
    if not isinstance(domains, Mapping):
        return {}
    pairs = ((domain, entries) for domain, entries in domains.items() if isinstance(entries, Mapping))
    return {f"{domain}/{task_id}": entry for domain, entries in pairs for task_id, entry in entries.items()}


def _shown(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return "nothing" if entry is None else repr(entry)
    text = f"{entry.get('y')} ({entry.get('rule')})"
    return text + (", corrected by hand" if "override" in entry else "")
