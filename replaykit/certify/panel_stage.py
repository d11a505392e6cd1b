"""The panels of a certification: captured here or on a cluster, replayed in other processes, written one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replaykit import cluster, engine
from replaykit.certify import assemble, capture, panels, profile, references, replaying, self_test
from replaykit.certify.subject import Subject
from replaykit.engine.protocol import Engine
from replaykit.errors import Incomplete, UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.store.certificate_file import Evidence

if TYPE_CHECKING:
    from replaykit.certify.run import Order

_CHUNK = 82  # a killed run loses no more than one
_GROUP = 8  # panels that go to a worker together, since their replays share the start of two processes


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every panel of a run is captured with."""

    subject: Subject
    context: capture.Context
    engine: Engine
    fleet: Fleet
    script: str | None


def run(order: Order, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    """Capture the panels that evidence lacks, and write each with what its replays said.

    Raises:
        UsageError, ClusterUnavailable, EngineNotReady: as `cluster.each` does.
        Incomplete: some panels were not captured on the cluster; the others are in the evidence.
    """
    missing = [p for p in order.panels if not evidence.has(assemble.part_name(p.id))]
    for _ in range(len(order.panels) - len(missing)):
        watch.step()
    if order.cluster is None:
        _run_here(missing, order, context, evidence, watch)
    elif missing:
        _run_there(missing, order, context, evidence, watch)


def _run_here(missing: list[Panel], order: Order, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    bench = _Bench(order.subject, context, order.engine, order.fleet, "script" if order.script else None)
    for some in _chunks(missing, _CHUNK):
        for found in _captured(bench, some, lambda found: watch.step(errors="error" in found)):
            evidence.write(assemble.part_name(found["panel"]), found)


def _run_there(missing: list[Panel], order: Order, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    job = Job.of(order, context)
    groups = list(_chunks(missing, min(_GROUP, max(1, len(missing) // _GROUP))))
    pieces = (cluster.Piece(some[0].id, (job, [p.id for p in some])) for some in groups)
    trouble: list[str] = []
    for position, result in cluster.each(order.cluster, capture_there, pieces, cluster_terms(order), order.tell):  # type: ignore[arg-type]
        if isinstance(result, cluster.Failed):
            trouble += [f"{p.id}: {result.sentence}" for p in groups[position]]
            continue
        for found in result:
            evidence.write(assemble.part_name(found["panel"]), found)
            watch.step(errors="error" in found)
    if trouble:
        raise Incomplete(
            f"{len(trouble)} of {len(missing)} panels were not captured on the cluster; the first: {trouble[0]}; "
            "the others are kept: give the same command again to go on"
        )


def cluster_terms(order: Order) -> cluster.Terms:
    """What the workers of a cluster must agree on with this process."""
    return cluster.Terms.of(order.fleet.digest)


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker needs to capture panels for a run elsewhere; plain values.

    Attributes:
        reference, options, subject_sha256: The transport; the worker's own must have the same digest.
        source_sha256: The sources that a certification runs on.
        entropy: Of the run, in hexadecimal.
        profile: As plain data.
    """

    reference: str
    options: dict
    subject_sha256: str
    source_sha256: str
    entropy: str
    profile: dict

    @classmethod
    def of(cls, order: Order, context: capture.Context) -> Job:
        """Of an order."""
        subject = order.subject
        return cls(
            subject.reference,
            dict(subject.options),
            subject.digest,
            self_test.source_digest(),
            context.entropy.hex(),
            context.profile.to_dict(),
        )


def capture_there(job: Job, panel_ids: Sequence[str]) -> list[dict]:
    """Capture panels on a worker.

    Raises:
        UsageError: the worker's transport or its sources of the certification are others.
    """
    subject = references.subject(job.reference, job.options)
    if subject.digest != job.subject_sha256:
        raise UsageError(f"the transport {subject.name} is another on the worker than here: install the same there")
    if _own_source_digest() != job.source_sha256:
        raise UsageError("the certification's own code is another on the worker than here: install the same there")
    fleet = cluster.own_fleet()
    context = capture.Context(bytes.fromhex(job.entropy), profile.Profile.from_dict(job.profile))
    bench = _Bench(subject, context, engine.load(), fleet, None)
    return _captured(bench, [fleet.panel(id_) for id_ in panel_ids])


@cache
def _own_source_digest() -> str:
    return self_test.source_digest()


def _captured(bench: _Bench, some: Sequence[Panel], tell: Callable[[dict], None] = lambda found: None) -> list[dict]:
    """Captures of panels, with what their replays in other processes said."""
    with panels.temporary() as name:
        folder = Path(name)

        def one(panel: Panel) -> dict:
            found = panels.capture(panel, bench.subject, bench.context, bench.engine, bench.fleet, folder)
            tell(found)
            return found

        if bench.context.provider is None:
            with ThreadPoolExecutor(2, thread_name_prefix="panel") as pool:
                captures = list(pool.map(one, some))
        else:  # one route at a time
            captures = [one(panel) for panel in some]
        replays, trouble = _replays(folder, bench)
    for panel, found in zip(some, captures, strict=True):
        file = panels.file_name(panel.id)
        found["replays"] = [said[file] for said in replays if file in said]
        found["replay_trouble"] = trouble
    return captures


def _replays(folder: Path, bench: _Bench) -> tuple[list[dict], str | None]:
    """What the replays said, and what kept them from being made: the rows then say that they were not exercised."""
    try:
        return replaying.elsewhere(folder, bench.subject, bench.fleet.to_dict(), bench.script), None
    except (RuntimeError, OSError, ValueError) as error:
        return [], str(error)


def _chunks(some: list[Panel], size: int) -> Iterator[list[Panel]]:
    for start in range(0, len(some), size):
        yield some[start : start + size]
