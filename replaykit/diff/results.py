"""Compare what two episodes ended in: simulation, database rows, policy states, reward, diagnostics, usage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from replaykit import canonical, database_rows
from replaykit.cassette import Cassette
from replaykit.diff import renumbering
from replaykit.diff.headers import told
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import Finding
from replaykit.difference import MISSING, Difference

_MEMBERS = (
    ("simulation", ("trajectory", "steps", "errors", "seed", "learner_state", "customer_state")),
    ("database", ()),
    ("policy states", ()),
    ("reward", ("reward", "reward_info", "reference_actions")),
    ("termination", ("termination", "lost_turn")),
    ("diagnostics", ("diagnostics",)),
    ("usage", ()),
)
_HISTORIES = ("trajectory", "learner_state")
_ELSEWHERE = ("result", "policy_states", "policy_counts", "usage", "summary")


class Results:
    """The comparison of two results.

    Args:
        left, right: Complete cassettes.
        ids: Tool call ids by seat of both, where they have to be renamed.
        walk: Does the comparing, and keeps count.
        ignored: What is left out.
    """

    def __init__(
        self,
        left: Cassette,
        right: Cassette,
        ids: tuple[renumbering.Turns, renumbering.Turns] | None,
        walk: Walk,
        ignored: Ignored,
    ) -> None:
        self._walk, self._ignored = walk, ignored
        self._seen: set[tuple] = set()
        self._footers = [side.footer or {} for side in (left, right)]
        results = [footer["result"] for footer in self._footers]
        if ids is not None:
            results = [_renamed(result, of_side) for result, of_side in zip(results, ids, strict=True)]
        self._results = results

    def findings(self) -> Iterable[Finding]:
        """Differences, section by section; what each follows from is not said yet."""
        own = {"database": self._database, "policy states": self._policy_states, "usage": self._usage}
        for section, members in _MEMBERS:
            yield from own[section]() if section in own else self._members(section, members)

    @property
    def same_calls(self) -> bool:
        """Both trajectories make the same tool calls in the same order, with the same arguments."""
        calls = [[_bare(c) for m in r["trajectory"] for c in m.get("tool_calls") or ()] for r in self._results]
        return canonical.same(*calls)

    def _members(self, section: str, members: Iterable[str]) -> Iterable[Finding]:
        for member in members:
            values = [result.get(member, MISSING) for result in self._results]
            found = self._compared(section, values, ("result", member))
            yield from filter(self._is_new, found) if section == "simulation" else found

    def _is_new(self, found: Finding) -> bool:
        """Not what the trajectory said already: both conversation states repeat it."""
        key = (found.kind, *map(canonical.ordered, (found.left, found.right)))
        is_known = key in self._seen
        self._seen.add(key)
        return not (is_known and "_state/" in found.pointer)

    def _compared(self, section: str, values: list, path: tuple[str, ...]) -> Iterable[Finding]:
        if self._ignored.covers(*path):
            return
        left, right = (self._ignored.without(value, *path) for value in values)
        top = len(canonical.pointer(path[0]))
        for d in told(self._walk.compare(left, right, path)):
            yield Finding(section, d.pointer, d.pointer[top:], d.kind, d.left, d.right, right_pointer=d.right_pointer)

    def _database(self) -> Iterable[Finding]:
        left, right = (r.get("db_changes") for r in self._results)
        begins = [r["initial_db_hash"] for r in self._results]
        if begins[0] != begins[1]:
            note = "both began on different databases: rows that neither changed are not in a cassette"
            yield Finding("database", "/result/initial_db_hash", "/initial_db_hash", "value", *begins, note=note)
        differs = self._results[0]["final_db_hash"] != self._results[1]["final_db_hash"]
        located = False
        for table, key in _touched(left, right):
            pair = database_rows.finals(*((side or {}).get(table, {}).get(key) for side in (left, right)))
            located = located or not canonical.same(*pair)
            yield from self._row(
                table, key, pair, [side[table][key] for side in (left, right) if key in (side or {}).get(table, {})]
            )
        if differs and not located and begins[0] == begins[1]:
            yield self._not_located(left, right)

    def _row(self, table: str, key: str, pair: tuple[Any, Any], changes: list[dict]) -> Iterable[Finding]:
        path = ("database", table, key)
        if self._ignored.covers(*path):
            return
        left, right = (self._ignored.without(value, *path) for value in pair)
        for d in _row_differences(self._walk, left, right, path):
            steps = d.pointer.split("/")[4:]
            field = "/".join(steps) or None
            below = d.pointer[len(canonical.pointer("database")) :]
            before = tuple(b for b in (_lookup(c["before"], steps) for c in changes) if b != MISSING)[:1]
            yield Finding(
                "database", d.pointer, below, d.kind, d.left, d.right, table=table, key=key, field=field, before=before
            )

    def _not_located(self, left: Any, right: Any) -> Finding:
        sides = [name for name, rows in (("left", left), ("right", right)) if rows is None]
        why = f"the {' and '.join(sides)} cassette holds no rows" if sides else "the recorded rows do not show it"
        hashes = [r["final_db_hash"] for r in self._results]
        return Finding(
            "database",
            "/result/final_db_hash",
            "/final_db_hash",
            "not_located",
            *hashes,
            note=f"the hashes differ, but {why}",
        )

    def _policy_states(self) -> Iterable[Finding]:
        states = [f.get("policy_states") for f in self._footers]
        if self._ignored.covers("policy_states"):
            return
        if all(isinstance(s, dict) and isinstance(s.get("turns"), list) for s in states):
            yield from self._parting([{str(t["turn"]): t["digest"] for t in s["turns"]} for s in states])
            states = [{k: v for k, v in s.items() if k != "turns"} for s in states]
        yield from self._compared("policy states", states, ("policy_states",))
        counts = [f.get("policy_counts", MISSING) for f in self._footers]
        yield from self._compared("policy states", counts, ("policy_counts",))

    def _parting(self, turns: list[dict]) -> Iterable[Finding]:
        """The first turn whose policy states differ; the later digests only repeat it."""
        parting = self._walk.compare(*turns, ("policy_states", "turns"))
        if parting and not self._ignored.covers("policy_states", "turns"):
            first = parting[0]
            note = f"the policy state parts after message {first.pointer.rpartition('/')[2]} of the trajectory"
            pointer = first.pointer[len("/policy_states") :]
            yield Finding("policy states", first.pointer, pointer, first.kind, first.left, first.right, note=note)

    def _usage(self) -> Iterable[Finding]:
        yield from self._compared("usage", [f.get("usage", MISSING) for f in self._footers], ("usage",))
        others = [{k: v for k, v in f.items() if k not in _ELSEWHERE} for f in self._footers]
        yield from self._compared("usage", others, ("footer",))


def with_causes(findings: Iterable[Finding], before: Iterable[Finding], same_calls: bool) -> Iterable[Finding]:
    """Say of each difference in a result what it can follow from.

    The simulation is determined by engine, fleet, seeds and replies; the database by engine and tool calls; the policy
    state by engine and simulation; the reward by those and by the judge's reply; usage by replies and who gave them.
    """
    differing: dict[str, None] = dict.fromkeys(f.section for f in before)
    outside = [s for s in ("panel", "engine", "fleet", "seeds", "versions") if s in differing]
    talk = [s for s in ("requests", "replies") if s in differing]
    inputs = {
        "simulation": (*outside, *talk),
        "database": (*outside, *(() if same_calls else ("simulation",))),
        "policy states": (*outside, "simulation"),
        "reward": (*outside, *talk, "simulation", "database"),
        "termination": (*outside, *talk, "simulation"),
        "diagnostics": (*outside, *talk, "simulation", "database", "reward"),
        "usage": (*talk, "arm", "roster", "transports"),
    }
    for finding in findings:
        causes = tuple(s for s in inputs[finding.section] if s in differing)
        yield replace(finding, follows_from=causes)
        differing[finding.section] = None


def _renamed(result: dict, ids: renumbering.Turns) -> dict:
    names = renumbering.Renaming(ids.get("learner", []))
    return {**result, **{member: names.history(result[member]) for member in _HISTORIES}}


def _bare(call: dict) -> dict:
    return {key: value for key, value in call.items() if key != "id"}


def _touched(left: dict | None, right: dict | None) -> list[tuple[str, str]]:
    rows = {(table, key) for side in (left, right) for table, of_table in (side or {}).items() for key in of_table}
    return sorted(rows) if left is not None and right is not None else []


def _row_differences(walk: Walk, left: Any, right: Any, path: tuple[str, ...]) -> list[Difference]:
    """A row that is on one side only is one difference."""
    if (left is None) == (right is None):
        return walk.compare(left, right, path)
    kind, values = ("missing", (left, MISSING)) if right is None else ("extra", (MISSING, right))
    return [Difference(canonical.pointer(*path), kind, *values)]


def _lookup(value: Any, steps: list[str]) -> Any:
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return MISSING
    return value
