"""Run a certification: plan, captures into evidence one by one, rows, certificate. A killed run goes on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from replaykit import canonical, certificate, cluster
from replaykit.certify import assemble, capture, catalogue, panel_stage, profile
from replaykit.certify.check import Check
from replaykit.certify.control import RoutedProvider
from replaykit.certify.subject import Subject
from replaykit.engine.protocol import Engine
from replaykit.errors import InternalError, UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.store.certificate_file import Evidence

CLOCKED = ("C39", "C40", "C41", "C42", "C44")
ALONE = ("C02",)
_THREADS = 4


@dataclass(frozen=True)
class Order:
    """What to certify.

    Attributes:
        panels: Those selected, in fleet order.
        mode: ``full`` or ``fast``.
        control_port: Port of the control provider when a gateway stands between; else None.
        self_test: The report of the self-test.
        waivers: As in the certificate, without ``used``.
        previous: Statement of the certificate that this one follows, or None.
        script: Whether the engine is the scripted one of the known panels.
        cluster: Address of the Dask scheduler whose workers capture the panels, or None: here.
        tell: Given a sentence for every worker that is refused.
    """

    subject: Subject
    fleet: Fleet
    panels: list[Panel]
    mode: str
    engine: Engine
    self_test: dict
    wire: str | None = None
    control_port: int | None = None
    waivers: list[dict] = field(default_factory=list)
    previous: dict | None = None
    script: bool = False
    days: int = 28
    cluster: str | None = None
    tell: Callable[[str], None] = print

    @property
    def profile(self) -> profile.Profile:
        """The profile."""
        wire = self.wire or self.subject.wire
        return profile.of_subject(self.subject.identity(), self.mode, wire, self.subject.base_url is not None)


class Watch:
    """Told of each finished check and panel; `reports.progress.Progress` is one."""

    def step(self, errors: bool = False) -> None:
        """One more is done."""


def work_count(order: Order) -> int:
    """How many steps a `Watch` is told of: checks and panels."""
    return len(catalogue.checks()) + len(order.panels)


def run(order: Order, evidence: Evidence, watch: Any) -> dict:
    """Certify.

    Returns:
        The sealed statement.

    Raises:
        UsageError: the evidence folder belongs to another run, or a gateway is to be certified on a cluster.
        ClusterUnavailable, EngineNotReady, Incomplete: as `cluster.each` does.
    """
    if order.cluster is not None:
        _meet_cluster(order)
    plan = _plan(order, evidence)
    entropy = bytes.fromhex(plan["entropy"])
    began = datetime.now(UTC)
    with ExitStack() as stack:
        provider = None
        if order.control_port is not None:
            provider = stack.enter_context(RoutedProvider(entropy=entropy, port=order.control_port))
        context = capture.Context(entropy, order.profile, provider)
        _capture_all(order, context, evidence, watch, stack)
    ended = datetime.now(UTC)
    statement = assemble.statement(order, plan, evidence, (began, ended))
    return certificate.seal(statement)


def _plan(order: Order, evidence: Evidence) -> dict:
    """The plan of this run: an old one of the same terms is gone on with, so that nothing is asked twice."""
    terms = assemble.terms(order)
    old = evidence.read_plan()
    if old is None:
        plan = {
            "terms": terms,
            "entropy": secrets.token_bytes(32).hex(),
            "run_id": secrets.token_hex(8),
            "began": _now(),
        }
        evidence.write_plan(plan)
        return plan
    if old.get("terms") != terms:
        raise UsageError(
            f"{evidence.folder} holds the evidence of another certification: choose another --out, or move it away"
        )
    return old


def _meet_cluster(order: Order) -> None:
    """Fail before the first check, not after the last, when there is nobody to capture the panels."""
    if order.control_port is not None:
        raise UsageError("a gateway is certified here: it forwards to one control provider, which no worker can reach")
    cluster.meet(order.cluster, panel_stage.cluster_terms(order))  # type: ignore[arg-type]


def _capture_all(order: Order, context: capture.Context, evidence: Evidence, watch: Any, stack: ExitStack) -> None:
    checks = [c for c in catalogue.checks() if c.id not in context.profile.not_applicable]
    alone = [c for c in checks if c.id in ALONE]
    _some_checks(alone, 1, order, context, evidence, watch)
    rest = [c for c in checks if c.id not in ALONE]
    if context.provider is not None:  # one route at a time
        _some_checks(rest, 1, order, context, evidence, watch)
        panel_stage.run(order, context, evidence, watch)
        return
    clocked = [c for c in rest if c.id in CLOCKED]
    if order.mode == "fast":  # short clocks want a quiet machine
        _some_checks(clocked, len(clocked), order, context, evidence, watch)
        clocked = []
    beside = stack.enter_context(_pool(len(CLOCKED), "clock"))
    waiting = [beside.submit(_check, c, order.subject, context, evidence, watch) for c in clocked]
    others = [c for c in rest if c.id not in CLOCKED]
    if order.cluster is None:
        _some_checks(others, _THREADS, order, context, evidence, watch)
    else:  # the panels are captured elsewhere meanwhile
        here = stack.enter_context(_pool(_THREADS, "check"))
        waiting += [here.submit(_check, c, order.subject, context, evidence, watch) for c in others]
    panel_stage.run(order, context, evidence, watch)
    for future in waiting:
        future.result()


@contextmanager
def _pool(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """A pool whose waiting work is dropped when the run breaks off."""
    pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _some_checks(
    checks: list[Check], threads: int, order: Order, context: capture.Context, evidence: Evidence, watch: Any
) -> None:
    with _pool(threads, "check") as pool:
        list(pool.map(lambda c: _check(c, order.subject, context, evidence, watch), checks))


def _check(check: Check, subject: Subject, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    name = f"checks/{check.id}"
    if not evidence.has(name):
        evidence.write(
            name, {p.name: capture.perform(check.id, p, subject, context) for p in check.probes(context.profile)}
        )
    watch.step()


def _now() -> str:
    return assemble.stamp(datetime.now(UTC))


def check_whole(statement: dict) -> None:
    """Refuse to hand out a certificate that its own rule contradicts.

    Raises:
        InternalError: the statement does not survive being written and read.
    """
    again, _ = certificate.parse(certificate.to_bytes(statement))
    if canonical.digest(again) != canonical.digest(statement):
        raise InternalError("the certificate changes when it is written and read")
