"""Run a certification: plan, captures into evidence one by one, rows, certificate. A killed run goes on."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replaykit import canonical, certificate
from replaykit.certify import assemble, capture, catalogue, panels, profile, replaying
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

    @property
    def profile(self) -> profile.Profile:
        """The profile."""
        return profile.of_subject(self.subject.identity(), self.mode, self.wire, self.subject.base_url is not None)


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
        UsageError: the evidence folder belongs to another run.
    """
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


def _capture_all(order: Order, context: capture.Context, evidence: Evidence, watch: Any, stack: ExitStack) -> None:
    checks = [c for c in catalogue.checks() if c.id not in context.profile.not_applicable]
    for check in (c for c in checks if c.id in ALONE):
        _check(check, order.subject, context, evidence, watch)
    rest = [c for c in checks if c.id not in ALONE]
    if context.provider is not None:  # one route at a time
        for check in rest:
            _check(check, order.subject, context, evidence, watch)
        _panels(order, context, evidence, watch)
        return
    clocked = [c for c in rest if c.id in CLOCKED]
    if order.mode == "fast":  # short clocks want a quiet machine
        with ThreadPoolExecutor(len(clocked)) as pool:
            list(pool.map(lambda c: _check(c, order.subject, context, evidence, watch), clocked))
        clocked = []
    waiting = stack.enter_context(ThreadPoolExecutor(len(CLOCKED), thread_name_prefix="clock"))
    slow = [waiting.submit(_check, c, order.subject, context, evidence, watch) for c in clocked]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="check") as pool:
        list(
            pool.map(
                lambda c: _check(c, order.subject, context, evidence, watch), [c for c in rest if c.id not in CLOCKED]
            )
        )
    _panels(order, context, evidence, watch)
    for future in slow:
        future.result()


def _check(check: Check, subject: Subject, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    name = f"checks/{check.id}"
    if not evidence.has(name):
        evidence.write(
            name, {p.name: capture.perform(check.id, p, subject, context) for p in check.probes(context.profile)}
        )
    watch.step()


def _panels(order: Order, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    """Capture the panels that are missing, replay them elsewhere, and write each with what its replays said."""
    missing = [p for p in order.panels if not evidence.has(assemble.part_name(p.id))]
    for _ in range(len(order.panels) - len(missing)):
        watch.step()
    # Chunks, so that a killed run loses no more than one.
    size = max(1, min(82, len(missing)))
    for start in range(0, len(missing), size):
        _some_panels(missing[start : start + size], order, context, evidence, watch)


def _some_panels(some: list[Panel], order: Order, context: capture.Context, evidence: Evidence, watch: Any) -> None:
    with panels.temporary() as name:
        folder = Path(name)

        def one(panel: Panel) -> dict:
            found = panels.capture(panel, order.subject, context, order.engine, order.fleet, folder)
            watch.step(errors="error" in found)
            return found

        if context.provider is None:
            with ThreadPoolExecutor(2, thread_name_prefix="panel") as pool:
                captures = list(pool.map(one, some))
        else:
            captures = [one(panel) for panel in some]
        replays, trouble = _replays(folder, order)
        for panel, found in zip(some, captures, strict=True):
            found["replays"] = [
                said[panels.file_name(panel.id)] for said in replays if panels.file_name(panel.id) in said
            ]
            found["replay_trouble"] = trouble
            evidence.write(assemble.part_name(panel.id), found)


def _replays(folder: Path, order: Order) -> tuple[list[dict], str | None]:
    """What the replays said, and what kept them from being made: the rows then say that they were not exercised."""
    try:
        return replaying.elsewhere(
            folder, order.subject, order.fleet.to_dict(), "script" if order.script else None
        ), None
    except (RuntimeError, OSError, ValueError) as error:
        return [], str(error)


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
