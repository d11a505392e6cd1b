"""Record many episodes at once: threads, because waiting for seats is almost all a recording does."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from replaykit import arm, engine, record, seating
from replaykit.controls.server import ControlProvider
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.errors import UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.sender import Sender


@dataclass(frozen=True)
class Plan:
    """What to record.

    Attributes:
        selectors: Panels as the user named them.
        case_seeds: One trial each.
    """

    fleet: Fleet
    selectors: tuple[str, ...]
    case_seeds: tuple[int, ...]
    out: Path
    zstd: bool
    jobs: int

    @cached_property
    def episodes(self) -> list[tuple[Panel, int]]:
        """Panel and case seed of each episode, in fleet order."""
        if len(set(self.case_seeds)) != len(self.case_seeds):
            raise UsageError("a case seed is named twice: trials of a panel have different case seeds")
        return [(panel, seed) for panel in self.fleet.select(self.selectors) for seed in self.case_seeds]

    def path(self, panel: Panel, arm_name: str, case_seed: int) -> Path:
        """Where an episode's cassette goes."""
        suffix = ".cassette.jsonl.zst" if self.zstd else ".cassette.jsonl"
        return self.out / panel.domain / f"{panel.scenario}-{arm_name}-s{case_seed}{suffix}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One recorded episode."""

    panel: str
    path: Path
    result: EpisodeResult

    @property
    def trouble(self) -> str | None:
        """Why the outside world ended it, or None."""
        lost = self.result.lost_turn
        return lost.detail if lost and self.result.termination == "infrastructure_error" else None

    @property
    def mismatch(self) -> bool:
        """Whether two tool names disagreed in a native request."""
        lost = self.result.lost_turn
        return bool(lost and lost.reason == "tool_name_mismatch")

    def line(self) -> str:
        """One line for a person."""
        r = self.result
        reward = "unknown" if r.reward is None else f"{r.reward:g}"
        names = sorted({d.name for d in r.diagnostics if d.name not in ("judge.raw_reply", "reference.action_raised")})
        extra = f"  [{', '.join(names)}]" if names else ""
        return f"{self.panel:<12} {r.termination:<24} reward {reward:<8} {len(r.trajectory)} messages  {self.path}{extra}"

    def to_dict(self) -> dict:
        """Plain data."""
        r = self.result
        return {
            "panel": self.panel,
            "path": str(self.path),
            "termination": r.termination,
            "reward": r.reward,
            "final_db_hash": r.final_db_hash,
            "diagnostics": [d.to_dict() for d in r.diagnostics],
            "trouble": self.trouble,
        }


class Watch:
    """Told of each request and each finished episode; `reports.progress.Progress` is one."""

    def request(self) -> None:
        """A request was asked."""

    def step(self, errors: bool = False) -> None:
        """An episode is done."""


def read_arm(path: Path) -> arm.Arm:
    """An arm file.

    Raises:
        UsageError: missing, not TOML, or not an arm.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read as an arm file: {error}") from error
    return arm.parse(data, path.stem, str(path))


def run(plan: Plan, controls: str | None, arm_path: Path | None, watch: Any) -> list[Outcome]:
    """Record every episode of a plan.

    Raises:
        UsageError: a cassette exists already; nothing is recorded then.
    """
    arm_file = read_arm(arm_path) if arm_path else None
    _refuse_existing(plan, controls or arm_file.name)
    runtime = engine.load()
    with ExitStack() as stack:
        seats = seats_of(runtime, controls, arm_file, stack)
        pool = stack.enter_context(ThreadPoolExecutor(plan.jobs, thread_name_prefix="episode"))
        work = [pool.submit(_episode, plan, runtime, panel, seed, seats, watch) for panel, seed in plan.episodes]
        try:
            return [future.result() for future in work]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _refuse_existing(plan: Plan, arm_name: str) -> None:
    for panel, seed in plan.episodes:
        path = plan.path(panel, arm_name, seed)
        if path.exists():
            raise UsageError(f"{path} exists and a cassette is never overwritten: choose another --out, or 'replaykit resume' an interrupted one")


def seats_of(
    runtime: Engine, controls: str | None, arm_file: arm.Arm | None, stack: ExitStack
) -> Callable[[Panel, int], seating.Seating]:
    """Who answers in the episode of a panel and case seed, while the stack is open."""
    sender = stack.enter_context(Sender())
    provider = stack.enter_context(ControlProvider(keep_bytes=False)) if controls else None
    if arm_file is not None:
        seated = seating.from_arm(arm_file, sender)
        return lambda panel, seed: seated

    def controlled(panel: Panel, seed: int) -> seating.Seating:
        scenario = runtime.scenarios(panel.domain)[panel.scenario]
        return seating.from_controls(controls, scenario, f"{panel.domain}-{panel.scenario}-{seed}", provider, sender)

    return controlled


def _episode(plan: Plan, runtime: Engine, panel: Panel, seed: int, seats: Callable[[Panel, int], seating.Seating], watch: Any) -> Outcome:
    seated = seats(panel, seed)
    redactor = Redactor(seated.secrets)
    path = plan.path(panel, seated.arm_name, seed)
    with Journal.create(path, record.header(runtime, plan.fleet, panel, seated, seed), redactor) as journal:
        result = record.play(runtime, panel, seated, journal, seed, redactor, on_request=watch.request)
    outcome = Outcome(panel.id, path, result)
    watch.step(errors=outcome.trouble is not None)
    return outcome
