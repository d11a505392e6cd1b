"""Record many episodes at once: threads, because waiting for seats is almost all a recording does."""

from __future__ import annotations

import itertools
import threading
import tomllib
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from replaykit import arm, cluster, engine, record, seating
from replaykit.controls.server import ControlProvider
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.errors import Incomplete, UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.sender import Sender

_MAX_ARM_BYTES = 1 << 20


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

    def begun(self, arm_name: str) -> list[Path]:
        """Cassettes of the plan's episodes that are there."""
        return [path for panel, seed in self.episodes if (path := self.path(panel, arm_name, seed)).exists()]

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
    """One recorded episode, without its conversation: there may be many.

    Attributes:
        messages: Length of the trajectory.
        trouble: Why the outside world ended it, or None.
        mismatch: Two tool names disagreed in a native request.
    """

    panel: str
    path: Path
    termination: str
    reward: float | None
    final_db_hash: str
    messages: int
    diagnostics: tuple[dict, ...]
    trouble: str | None
    mismatch: bool

    @classmethod
    def of(cls, panel: str, path: Path, result: EpisodeResult) -> Outcome:
        """What is kept of an episode."""
        lost = result.lost_turn
        return cls(
            panel,
            path,
            result.termination,
            result.reward,
            result.final_db_hash,
            len(result.trajectory),
            tuple(d.to_dict() for d in result.diagnostics),
            lost.detail if lost and result.termination == "infrastructure_error" else None,
            bool(lost and lost.reason == "tool_name_mismatch"),
        )

    def line(self) -> str:
        """One line for a person."""
        reward = "unknown" if self.reward is None else f"{self.reward:g}"
        names = sorted({d["name"] for d in self.diagnostics} - {"judge.raw_reply", "reference.action_raised"})
        extra = f"  [{', '.join(names)}]" if names else ""
        return (
            f"{self.panel:<12} {self.termination:<24} reward {reward:<8} {self.messages} messages  {self.path}{extra}"
        )

    def to_dict(self) -> dict:
        """Plain data."""
        return {
            "panel": self.panel,
            "path": str(self.path),
            "termination": self.termination,
            "reward": self.reward,
            "final_db_hash": self.final_db_hash,
            "diagnostics": list(self.diagnostics),
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
        with open(path, "rb") as file:
            data = tomllib.loads(file.read(_MAX_ARM_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as an arm file: {error}") from error
    return arm.parse(data, path.stem, str(path))


def run(
    plan: Plan,
    controls: str | None,
    arm_path: Path | None,
    watch: Any,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Record every episode of a plan.

    As many episodes are in flight as the plan has jobs, and no other is begun. A journal that writes slowly holds up
    its own episode, which asks nothing more until its record is written.

    Args:
        done: Given each episode's outcome as it ends, since a run may not come to its own end.

    Raises:
        UsageError: a cassette exists already; nothing is recorded then.
    """
    arm_file = read_arm(arm_path) if arm_path else None
    _refuse_existing(plan, controls or arm_file.name)
    runtime = engine.load()
    with ExitStack() as stack:
        seats, interruption = seats_of(runtime, controls, arm_file, stack), threading.Event()
        work = [
            partial(_episode, plan, runtime, panel, seed, seats, watch, interruption) for panel, seed in plan.episodes
        ]
        return _in_threads(work, plan.jobs, interruption, done)


def _in_threads(
    work: Sequence[Callable[[], Any]],
    jobs: int,
    interruption: threading.Event,
    tell: Callable[[Any], None] = lambda result: None,
) -> list[Any]:
    """Results in the order of the work; the first error interrupts all that runs."""
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="episode")
    waiting, flying = iter(enumerate(work)), {}
    outcomes: dict[int, Any] = {}
    try:
        while len(outcomes) < len(work):
            flying |= {pool.submit(one): position for position, one in itertools.islice(waiting, jobs - len(flying))}
            for done in futures.wait(flying, return_when=futures.FIRST_COMPLETED).done:
                outcomes[flying.pop(done)] = done.result()
                tell(done.result())
    except BaseException:
        interruption.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [outcomes[position] for position in range(len(work))]


def run_on(
    address: str,
    plan: Plan,
    controls: str | None,
    arm_path: Path | None,
    watch: Any,
    tell: Callable[[str], None] = print,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Record every episode of a plan on a cluster (see `cluster.each`), into a folder that all its workers share.

    An episode whose worker is lost is resumed by another: nothing that was answered is asked again. Keys come from the
    workers' own environment.

    Raises:
        UsageError: a cassette exists already; nothing is recorded then.
        Incomplete: some episodes were not recorded, or not where this process can see them.
    """
    arm_file = read_arm(arm_path) if arm_path else None
    _refuse_existing(plan, controls or arm_file.name)
    out, named = str(plan.out.absolute()), arm_file and (arm_file.model_dump(), str(arm_path))
    pieces = [
        cluster.Piece(panel.id, (panel.id, seed, out, plan.zstd, controls, named)) for panel, seed in plan.episodes
    ]
    outcomes: dict[int, Outcome] = {}
    failed = []
    for position, result in cluster.each(address, record_there, pieces, cluster.Terms.of(plan.fleet.digest), tell):
        if isinstance(result, cluster.Failed):
            failed.append(f"{pieces[position].name}: {result.sentence}")
        else:
            outcomes[position] = replace(result, path=plan.out / result.path.relative_to(out))
            done(outcomes[position])
        watch.step(errors=isinstance(result, cluster.Failed) or result.trouble is not None)
    failed += [
        f"{o.path} is not to be seen here: give an --out that all workers share"
        for o in outcomes.values()
        if not o.path.exists()
    ]
    if failed:
        raise Incomplete(f"{len(failed)} of {len(pieces)} episodes were not recorded; the first: {failed[0]}")
    return [outcomes[position] for position in range(len(pieces))]


def record_there(
    panel_id: str, seed: int, out: str, zstd: bool, controls: str | None, named: tuple[dict, str] | None
) -> Outcome:
    """Record one episode on a worker; go on with it where a lost worker left it."""
    fleet, runtime = cluster.own_fleet(), engine.load()
    arm_file = arm.parse(named[0], "arm", named[1]) if named else None
    plan = Plan(fleet, (panel_id,), (seed,), Path(out), zstd, 1)
    panel = fleet.panel(panel_id)
    path = plan.path(panel, controls or arm_file.name, seed)
    if path.exists():
        return _gone_on_with(path, panel_id, controls, arm_file)
    with ExitStack() as stack:
        return _episode(
            plan, runtime, panel, seed, seats_of(runtime, controls, arm_file, stack), Watch(), threading.Event()
        )


def _gone_on_with(path: Path, panel_id: str, controls: str | None, arm_file: arm.Arm | None) -> Outcome:
    from replaykit import resume

    cassette = reader.read(path)
    if cassette.result is not None:
        return Outcome.of(panel_id, path, cassette.result)
    return Outcome.of(panel_id, path, resume.resume(path, cluster.own_fleet(), controls, arm_file).result)


def _refuse_existing(plan: Plan, arm_name: str) -> None:
    for panel, seed in plan.episodes:
        path = plan.path(panel, arm_name, seed)
        if path.exists():
            raise UsageError(
                f"{path} exists and a cassette is never overwritten: choose another --out, "
                "or 'replaykit resume' an interrupted one"
            )


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


def _episode(
    plan: Plan,
    runtime: Engine,
    panel: Panel,
    seed: int,
    seats: Callable[[Panel, int], seating.Seating],
    watch: Any,
    interruption: threading.Event,
) -> Outcome:
    seated = seats(panel, seed)
    sources = {seat: record.Interruptible(source, interruption) for seat, source in seated.sources.items()}
    redactor = Redactor(seated.secrets)
    path = plan.path(panel, seated.arm_name, seed)
    with Journal.create(path, record.header(runtime, plan.fleet, panel, seated, seed), redactor) as journal:
        result = record.play(runtime, panel, seated, journal, seed, redactor, sources, on_request=watch.request)
    outcome = Outcome.of(panel.id, path, result)
    watch.step(errors=outcome.trouble is not None)
    return outcome
