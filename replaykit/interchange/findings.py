"""What a recorded simulation says otherwise than the engine that played it again; every finding names its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from replaykit import difference
from replaykit.episode import Diagnostic, EpisodeResult
from replaykit.interchange.tau2_results import Simulation, normal_message


def of_messages(simulation: Simulation, result: EpisodeResult, write_tools: frozenset[str]) -> Iterator[Diagnostic]:
    """Tool results that the engine gives otherwise, other messages that differ, and messages nobody asked for."""
    recorded = [normal_message(m) for m in simulation.messages]
    calls: list[dict] = []
    for index, (old, new) in enumerate(zip(recorded, result.trajectory, strict=False)):
        if old["role"] == new["role"] == "tool":
            yield from _of_result(index, old, new, calls.pop(0) if calls else {}, write_tools)
        elif (first := difference.first(old, new)) is not None:
            yield Diagnostic("import.message_differs", {"index": index, **_both(first)})
        if old["role"] != "tool":
            calls = list(old["tool_calls"] or ())
    if len(recorded) > len(result.trajectory):
        yield Diagnostic(
            "import.messages_unused",
            {"from_index": len(result.trajectory), "count": len(recorded) - len(result.trajectory)},
        )


def _of_result(index: int, old: dict, new: dict, call: dict, write_tools: frozenset[str]) -> Iterator[Diagnostic]:
    if old == new:
        return
    tool = call.get("name")
    about = {"index": index, "call": old["id"], "tool": tool, "write": tool in write_tools}
    parts = [_parsed(m["content"]) for m in (old, new)]
    if old["error"] == new["error"] and all(p is not None for p in parts):
        first = difference.first(*parts)
        if first is not None:
            yield Diagnostic("import.result_differs", {**about, "field": "content", **_both(first)})
            return
    first = difference.first(old, new)
    if first is not None:
        yield Diagnostic(
            "import.result_differs",
            {
                **about,
                "field": first.pointer.split("/")[1],
                "pointer": "",
                "recorded": first.left,
                "derived": first.right,
            },
        )


def _parsed(text: Any) -> Any:
    """The JSON object or list in a result, or None."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _both(first: difference.Difference) -> dict:
    return {"pointer": first.pointer, "recorded": first.left, "derived": first.right}


def of_end(simulation: Simulation, result: EpisodeResult) -> Iterator[Diagnostic]:
    """Another termination, reward or database verdict than recorded. What was not recorded is not compared."""
    if simulation.termination != result.termination:
        yield Diagnostic(
            "import.termination_differs", {"recorded": simulation.termination, "derived": result.termination}
        )
    info = simulation.reward_info
    if info is None:
        return
    check, derived = info.get("db_check"), (result.reward_info or {}).get("db")
    match = check.get("db_match") if isinstance(check, dict) else None
    if match is not None and derived is not None and match != derived["match"]:
        yield Diagnostic("import.db_match_differs", {"recorded": match, "derived": derived["match"]})
    reward = info.get("reward")
    if reward is not None and result.reward is not None and not _close(reward, result.reward):
        yield Diagnostic("import.reward_differs", {"recorded": reward, "derived": result.reward})


def _close(a: Any, b: float) -> bool:
    return isinstance(a, (int, float)) and abs(a - b) <= 1e-6


_OF_A_TASK = ("user_scenario", "initial_state", "evaluation_criteria")


def of_task(recorded: dict, ours: dict) -> Iterator[Diagnostic]:
    """A task that is not the engine's; its description, which no episode depends on, is not compared."""
    left, right = ({key: task.get(key) for key in _OF_A_TASK} for task in (recorded, ours))
    first = difference.first(left, right)
    if first is not None:
        yield Diagnostic("import.task_differs", _both(first))


def of_text(name: str, recorded: str | None, ours: str) -> Iterator[Diagnostic]:
    """A policy or guideline text that is not the engine's, by the first line that differs."""
    if recorded is None or recorded == ours:
        return
    pairs = zip([*recorded.splitlines(), None], [*ours.splitlines(), None], strict=False)
    line, (old, new) = next(((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, ("", "")))
    yield Diagnostic(f"import.{name}_differs", {"line": line, "recorded": old, "derived": new})
