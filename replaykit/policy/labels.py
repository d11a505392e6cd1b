"""Transfer labels: should the agent hand a task to a human, and which rule says so.

======================== = ==========================================================================
``gold_transfer_action`` 1 an upstream task whose reference solution calls ``transfer_to_human_agents``
``no_transfer``          0 any other upstream task
``explicit_request``     1 a derived task: the user insists on a human
``out_of_scope``         1 a derived task: no tool or policy clause covers the request
``hard_negative``        0 a derived task: a difficult user, a solvable issue
======================== = ==========================================================================

Everything here makes documents from documents; reading and writing files is the caller's. A task list is
``[{"domain": str, "id": str, "reference_actions": [{"name": str, ...}, ...]}, ...]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.policy.context import TRANSFER_TOOL

LABELS_SCHEMA = "replaykit.labels/1"
DERIVED_SCHEMA = "replaykit.derived-tasks/1"

UPSTREAM_RULES = {"gold_transfer_action": 1, "no_transfer": 0}
DERIVED_RULES = {"explicit_request": 1, "out_of_scope": 1, "hard_negative": 0}
LABEL_RULES = UPSTREAM_RULES | DERIVED_RULES

_DERIVED_KEYS = {"domain", "id", "rule", "base", "note"}
_OVERRIDE_KEYS = {"should_transfer", "reason"}


def transferred(trajectory: Iterable[Mapping]) -> bool:
    """Whether the learner called the transfer tool, whatever it returned."""
    return any(
        call["name"] == TRANSFER_TOOL
        for message in trajectory
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or ()
    )


def upstream_rule(reference_actions: Iterable[Mapping]) -> str:
    """The rule that labels an upstream task."""
    return "gold_transfer_action" if any(a["name"] == TRANSFER_TOOL for a in reference_actions) else "no_transfer"


def build_labels(tasks: Iterable[Mapping], derived: Mapping | None, overrides: Mapping | None, revision: str) -> dict:
    """The label document.

    Args:
        tasks: All upstream tasks.
        derived: The user's derived tasks, ``{"schema": DERIVED_SCHEMA, "tasks": [{"domain", "id", "rule", "base"?,
            "note"?}, ...]}``, or None.
        overrides: Corrections after a hand check, ``{"domains": {DOMAIN: {ID: {"should_transfer": bool, "reason":
            str}}}}``, or None.
        revision: The tau2 revision that the tasks come from.

    Returns:
        ``{"schema", "revision", "domains": {DOMAIN: {ID: {"y": 0 | 1, "rule": str, ...}}}}``; a derived task's entry
        also has ``base``, a corrected one ``override`` with its reason and the label the rule gave.

    Raises:
        UsageError: a document has another shape, an id appears twice, an override has no reason or no task.
    """
    domains = _upstream_entries(tasks)
    for task in _derived_tasks(derived):
        _add_derived(domains, task)
    for domain, task_id, override in _overrides(overrides):
        _apply_override(domains, domain, task_id, override)
    return {"schema": LABELS_SCHEMA, "revision": revision, "domains": domains}


def label_of(labels: Mapping, domain: str, task_id: str) -> dict:
    """The entry of one task.

    Raises:
        UsageError: the document has no such task.
    """
    entry = labels["domains"].get(domain, {}).get(task_id)
    if entry is None:
        raise UsageError(f"the label file has no task {domain}/{task_id}: build the labels again")
    return entry


def document_bytes(document: Mapping) -> bytes:
    """A label or split document as the bytes of its file."""
    return canonical.pretty(document).encode("utf-8")


def _upstream_entries(tasks: Iterable[Mapping]) -> dict[str, dict[str, dict]]:
    domains: dict[str, dict[str, dict]] = {}
    for task in tasks:
        rule = upstream_rule(task["reference_actions"])
        _add(domains, task["domain"], str(task["id"]), {"y": UPSTREAM_RULES[rule], "rule": rule})
    return domains


def _add(domains: dict[str, dict[str, dict]], domain: str, task_id: str, entry: dict) -> None:
    entries = domains.setdefault(domain, {})
    if task_id in entries:
        raise UsageError(f"the task {domain}/{task_id} appears twice: give every task an id of its own")
    entries[task_id] = entry


def _derived_tasks(derived: Mapping | None) -> Sequence[Mapping]:
    if derived is None:
        return ()
    tasks = derived.get("tasks") if isinstance(derived, Mapping) else None
    if not isinstance(tasks, list) or derived.get("schema") != DERIVED_SCHEMA:
        raise UsageError(f"the derived tasks are not an object with schema {DERIVED_SCHEMA!r} and a list of tasks")
    for place, task in enumerate(tasks):
        _check_derived(task, canonical.pointer("tasks", place))
    return tasks


def _check_derived(task: Any, where: str) -> None:
    if not isinstance(task, Mapping) or not set(task) <= _DERIVED_KEYS:
        raise UsageError(f"the derived task at {where} may have only {', '.join(sorted(_DERIVED_KEYS))}")
    for key in ("domain", "id", "rule"):
        if not isinstance(task.get(key), str) or not task[key]:
            raise UsageError(f"the derived task at {where} needs a text as {key!r}")
    if task["rule"] not in DERIVED_RULES:
        raise UsageError(f"the derived task at {where} has rule {task['rule']!r}: use {', '.join(DERIVED_RULES)}")
    if task.get("base") is not None and not isinstance(task["base"], str):
        raise UsageError(f"the derived task at {where} needs the id of an upstream task as 'base'")


def _add_derived(domains: dict[str, dict[str, dict]], task: Mapping) -> None:
    domain, base = task["domain"], task.get("base")
    if domain not in domains:
        raise UsageError(f"the derived task {domain}/{task['id']} is of a domain without upstream tasks")
    if base is not None and domains[domain].get(base, {}).get("rule") not in UPSTREAM_RULES:
        raise UsageError(f"the derived task {domain}/{task['id']} is based on {base!r}, which is no upstream task")
    entry = {"y": DERIVED_RULES[task["rule"]], "rule": task["rule"]}
    _add(domains, domain, task["id"], entry if base is None else entry | {"base": base})


def _overrides(overrides: Mapping | None) -> Iterable[tuple[str, str, Mapping]]:
    if overrides is None:
        return
    domains = overrides.get("domains") if isinstance(overrides, Mapping) else None
    if not isinstance(domains, Mapping) or not all(isinstance(tasks, Mapping) for tasks in domains.values()):
        raise UsageError('the label overrides are not shaped {"domains": {"<domain>": {"<task id>": {...}}}}')
    for domain, tasks in domains.items():
        for task_id, override in tasks.items():
            _check_override(f"{domain}/{task_id}", override)
            yield domain, task_id, override


def _check_override(task: str, override: Any) -> None:
    if not isinstance(override, Mapping) or not set(override) <= _OVERRIDE_KEYS:
        raise UsageError(f"the override of {task} may have only 'should_transfer' and 'reason'")
    if not isinstance(override.get("should_transfer"), bool):
        raise UsageError(f"the override of {task} needs true or false as 'should_transfer'")
    if not isinstance(override.get("reason"), str) or not override["reason"].strip():
        raise UsageError(f"the override of {task} has no reason: say why the rule's label is wrong")


def _apply_override(domains: dict[str, dict[str, dict]], domain: str, task_id: str, override: Mapping) -> None:
    entry = domains.get(domain, {}).get(task_id)
    if entry is None:
        raise UsageError(f"the override of {domain}/{task_id} is for an unknown task: correct its domain or id")
    corrected = {"y": int(override["should_transfer"])}
    kept = {"override": {"reason": override["reason"].strip(), "y_by_rule": entry["y"]}}
    domains[domain][task_id] = entry | corrected | kept
