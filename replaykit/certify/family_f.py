"""F: budgets of requests, time and connections."""

from __future__ import annotations

import contextlib
import math
import socket

from replaykit.budget import Budget
from replaykit.certify import killing
from replaykit.certify.capture import NEVER, Bench, Context
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.probe import Probe, Step, hello, twins, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.certify.views import Seen, Views, deliver
from replaykit.controls.faults import Fault

LIMITS = Budget()
ASKED = 215
SLOW_S = {"full": 16.0, "fast": 8.0}  # a scaled second is short: leave a machine under load its time
_TWINS = len(twins())


def _endless(profile: Profile) -> list[Probe]:
    return [Probe("endless", _many(None)), Probe("faulty", _many(Fault("status", {"status": 500})))]


def _many(fault: Fault | None) -> tuple[Step, ...]:
    """More requests than an episode may make; those beyond the limit must be refused."""
    return tuple(
        Step(
            f"ask-{i}",
            seat,
            hello(seat, f"Question {i}."),
            fault=fault if i < LIMITS.requests - _TWINS else None,
            healthy=fault is None and i < LIMITS.requests - _TWINS,
            expect=None if i < LIMITS.requests - _TWINS else "refused",
        )
        for i, seat in ((i, ("learner", "customer")[i % 2]) for i in range(ASKED - _TWINS))
    )


def _judge_endless(views: Views) -> None:
    count = sum(e.request_complete for e in views.wire)
    if not count:
        raise Unseen("nothing reached the wire")
    if count > LIMITS.requests:
        raise Failed("more_than_201", f"{count} requests")
    refused = [s for s in views.steps if s.step.expect == "refused"]
    for seen in refused:
        if seen.outcome != "budget_requests":
            raise Failed("budget_unclassified", f"{seen.step.name}: {seen.outcome}")
    if count < LIMITS.requests and all(s.wire for s in views.twins):
        raise Failed("fewer_than_201", f"{count} requests")


def _silent(profile: Profile) -> list[Probe]:
    step = Step("silence", "learner", hello("learner", "Anybody?"), fault=Fault("silence"), healthy=False)
    return [Probe("silence", (step,), {"scaled": True, "again": 4})]


def _judge_silent(views: Views) -> dict[str, int]:
    seen, scale = views.step("silence"), views.profile.request_scale
    if not seen.wire:
        raise Unseen("the request never reached the wire")
    told, limit = seen.told_us, LIMITS.request_s * scale * 1e6
    if told > (LIMITS.request_s + LIMITS.grace_s) * scale * 1e6 + _tolerance(views) or seen.outcome == "hung":
        raise Failed("told_late", f"after {told // 1000} ms")
    if "end" not in seen.wire[0].data["times_us"]:
        raise Failed("closed_late", "the connection was never closed")
    closed = seen.wire[0].data["times_us"]["end"] - seen.wire[0].at
    if closed > limit + _tolerance(views):
        raise Failed("closed_late", f"after {closed // 1000} ms")
    _is_deadline(seen)
    seen.only()
    return {"client_closed_ms": closed // 1000, "caller_told_ms": told // 1000}


def _tolerance(views: Views) -> int:
    return views.profile.tolerance_us(views.capture.get("stall_us", 0))


def _is_deadline(seen: Seen) -> None:
    if seen.reply is None and seen.outcome != "deadline":
        raise Failed("deadline_unclassified", f"{seen.step.name}: {seen.outcome}")


def _dribbling(profile: Profile) -> list[Probe]:
    def step(name: str, fault: Fault) -> Step:
        return Step(name, "learner", hello("learner", name), fault=fault, healthy=False)

    late = [step(f"body-at-{s}", Fault("late", {"headers_s": 16.0, "body_s": float(s)})) for s in (26, 28)]
    return [
        Probe("slow", (step("dribble", Fault("dribble", {"interval_s": 1.0, "for_s": 60.0})), *late), {"scaled": True})
    ]


def _judge_dribbling(views: Views) -> dict[str, int]:
    timing, limit = {}, LIMITS.request_s * views.profile.request_scale * 1e6 + _tolerance(views)
    for seen in views.steps:
        if not seen.wire:
            raise Unseen(f"{seen.step.name} never reached the wire")
        code = "dribbled_on" if seen.step.name == "dribble" else "grace_without_end"
        if seen.reply is not None or seen.told_us > limit or seen.outcome == "hung":
            raise Failed(code, f"{seen.step.name}: {seen.outcome} after {seen.told_us // 1000} ms")
        _is_deadline(seen)
        timing[f"{seen.step.name}_ms"] = seen.told_us // 1000
    return timing


def _steady(profile: Profile) -> list[Probe]:
    age_s = LIMITS.connection_s * profile.connection_scale
    steps = tuple(Step(f"call-{i}", "learner", hello("learner", f"Call {i}."), think_s=age_s * 0.2) for i in range(8))
    full = Step("backlog", "learner", hello("learner", "Nobody accepts."), healthy=False, expect="refused")
    return [
        Probe("steady", steps, {"sender": {"max_connection_age_s": age_s}}),
        Probe("backlog", (full,), {"scaled": True}, perform=_backlog),
    ]


def _backlog(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """The last step asks a listener that never accepts and whose queue is full."""
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(Bench(f"{check}-{probe.name}", with_twins(probe), probe.options, subject, context))
        listener = stack.enter_context(contextlib.closing(socket.socket()))
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(contextlib.closing(socket.socket()))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        for index in range(_TWINS):
            bench.ask(index)
        bench.sources["learner"] = subject.source(
            f"http://127.0.0.1:{listener.getsockname()[1]}/v1", bench.canary.key, bench.sender
        )
        bench.ask(_TWINS)
        return bench.capture()


def _judge_steady(views: Views) -> dict[str, int]:
    if views.probe.name == "backlog":
        return _judge_backlog(views)
    opened = {c["id"]: c for c in views.capture["connections"]}
    limit = LIMITS.connection_s * views.profile.connection_scale * 1e6
    ages = [e.at - opened[e.connection]["opened_us"] for e in views.wire]
    if not ages:
        raise Unseen("nothing reached the wire")
    if max(ages) > limit * 1.25:
        raise Failed("old_connection", f"a request on a connection of {max(ages) // 1000} ms")
    used = {e.connection for e in views.wire}
    if len(used) > 1 and opened[min(used)]["closed_us"] is None:
        raise Failed("old_connection", "the old connection was not closed")
    return {"oldest_ms": max(ages) // 1000}


def _judge_backlog(views: Views) -> dict[str, int]:
    seen = views.step("backlog")
    limit = LIMITS.request_s * views.profile.request_scale * 1e6 + _tolerance(views)
    if seen.told_us > limit or seen.outcome == "hung":
        raise Failed("connect_unbounded", f"{seen.told_us // 1000} ms")
    if seen.outcome not in ("deadline", "unreachable"):
        raise Failed("connect_unclassified", seen.outcome)
    return {"connect_ms": seen.told_us // 1000}


def _simulation(profile: Profile) -> list[Probe]:
    limit_s = LIMITS.simulation_s * profile.simulation_scale
    gone = [
        Step(
            "too-late",
            "learner",
            hello("learner", "Too late."),
            think_s=limit_s * 1.02,
            healthy=False,
            expect="refused",
        ),
        Step("later-still", "customer", hello("customer", "Later."), healthy=False, expect="refused"),
    ]
    slow = _slow(profile)
    patient = tuple(Step(f"slow-{i}", "learner", hello("learner", f"Slow {i}."), fault=slow) for i in range(3))
    return [
        Probe("own-time", tuple(gone), {"budget": {"simulation_s": limit_s}}),
        Probe("waiting", patient, {"scaled": True, "budget": {"simulation_s": 15 * profile.request_scale}}),
    ]


def _slow(profile: Profile) -> Fault:
    return Fault("late", {"headers_s": SLOW_S[profile.mode], "body_s": SLOW_S[profile.mode]})


def _judge_simulation(views: Views) -> dict[str, int]:
    for seen in views.steps:
        if seen.step.expect != "refused":
            continue
        if "returned" in seen.data and not seen.wire:
            raise Failed("timeout_as_stop", f"{seen.step.name}: {seen.data['returned']!r}")
        if seen.wire:
            raise Failed("ran_on", f"{seen.step.name} was asked after the simulation's time")
        if seen.outcome != "budget_simulation" or seen.data["lost"]["termination"] != "timeout":
            raise Failed("timeout_unclassified", f"{seen.step.name}: {seen.outcome}")
    return {}


def _idle(profile: Profile) -> list[Probe]:
    return [
        Probe(
            "idle",
            (
                Step("closing", "learner", hello("learner", "Close after this."), fault=Fault("idle_close")),
                Step("fresh", "learner", hello("learner", "And again."), think_s=0.15),
                Step(
                    "vanish", "learner", hello("learner", "Vanish."), fault=Fault("close_without_reply"), healthy=False
                ),
                Step("after", "learner", hello("learner", "Still there?")),
            ),
        )
    ]


def _judge_idle(views: Views) -> None:
    vanish = views.step("vanish")
    if len(vanish.wire) > 1:
        raise Failed("resent", f"{len(vanish.wire)} requests after a close without reply")
    if vanish.only() and vanish.outcome != "unreachable":
        raise Failed("close_unclassified", vanish.outcome)
    first, second = views.step("closing").only(), views.step("fresh").only()
    if first.connection == second.connection:
        raise Failed("stale_connection", "a request on a connection that was closed")


def _queued(profile: Profile) -> list[Probe]:
    count = math.ceil(profile.wall_s / (SLOW_S[profile.mode] * profile.request_scale)) + 3
    slow = _slow(profile)
    steps = tuple(
        Step(f"panel-{i}", "learner", hello("learner", f"Panel {i}."), fault=slow, healthy=False) for i in range(count)
    )
    return [Probe("queue", steps, {"scaled": True}, perform=_queue)]


def _queue(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    with Bench(f"{check}-{probe.name}", with_twins(probe), probe.options, subject, context) as bench:
        for index in range(_TWINS):
            bench.ask(index)
        done = subject.layer.queue(
            range(_TWINS, len(bench.steps)), lambda i: bench.ask(i) or True, context.profile.wall_s
        )
        rows = [{"id": bench.steps[i].name, "status": "PASS" if result else "INCOMPLETE"} for i, result in done]
        return bench.capture() | {"rows": rows}


def _judge_queue(views: Views) -> None:
    wall_us = views.profile.wall_s * 1e6
    began = views.steps[0].data["began_us"]
    late = [
        s.step.name
        for s in views.steps
        if s.data["began_us"] != NEVER and s.data["began_us"] - began > wall_us + 50_000
    ]
    if late:
        raise Failed("started_after_wall", late[0])
    rows = {r["id"]: r["status"] for r in views.capture["rows"]}
    for seen in views.steps:
        if seen.step.name not in rows:
            raise Failed("row_dropped", seen.step.name)
        if (rows[seen.step.name] == "PASS") != (seen.data["began_us"] != NEVER):
            raise Failed("row_wrong", seen.step.name)
        if seen.data["began_us"] != NEVER:
            deliver(seen)
    if set(rows.values()) != {"PASS", "INCOMPLETE"}:
        raise Unseen("the wall was not reached, or nothing was done before it")


def _judge_killed(views: Views) -> None:
    killing.judge(views)


def checks() -> list[Check]:
    """C38 to C45."""
    return [
        Check(
            "C38",
            "an episode makes at most 201 requests, all seats and attempts together",
            "MUST",
            "transport",
            ("more_than_201", "fewer_than_201", "budget_unclassified"),
            _endless,
            _judge_endless,
        ),
        Check(
            "C39",
            "a silent provider is left after 17 seconds, and the caller told before 27",
            "MUST",
            "transport",
            ("told_late", "closed_late", "deadline_unclassified"),
            _silent,
            _judge_silent,
        ),
        Check(
            "C40",
            "slow bodies are cut by the deadline of the whole request",
            "MUST",
            "transport",
            ("dribbled_on", "grace_without_end", "deadline_unclassified"),
            _dribbling,
            _judge_dribbling,
        ),
        Check(
            "C41",
            "no request on a connection older than 180 seconds; connecting is bounded",
            "MUST",
            "transport",
            ("old_connection", "connect_unbounded", "connect_unclassified"),
            _steady,
            _judge_steady,
        ),
        Check(
            "C42",
            "the simulation's own time ends the episode, waiting for seats does not count",
            "MUST",
            "transport",
            ("ran_on", "timeout_as_stop", "timeout_unclassified"),
            _simulation,
            _judge_simulation,
        ),
        Check(
            "C43",
            "closed connections are replaced, and nothing is sent twice",
            "MUST",
            "transport",
            ("resent", "stale_connection", "close_unclassified"),
            _idle,
            _judge_idle,
        ),
        Check(
            "C44",
            "nothing starts beyond the wall, and what is unfinished stays as incomplete",
            "MUST",
            "transport",
            ("started_after_wall", "row_dropped", "row_wrong"),
            _queued,
            _judge_queue,
        ),
        Check(
            "C45",
            "a kill gives no request back, loses nothing and resets nothing",
            "MUST",
            "transport",
            ("debit_lost", "budget_reset", "torn_lost", "chain_broken"),
            killing.probes,
            _judge_killed,
        ),
    ]
