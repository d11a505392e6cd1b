"""E: envelopes and faults."""

from __future__ import annotations

from typing import Any

from replaykit.certify.check import Check
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.probe import Probe, Step, hello, says, tool
from replaykit.certify.profile import Profile
from replaykit.certify.views import Views
from replaykit.controls.faults import STATUSES, Fault
from replaykit.controls.replies import Call, Reply
from replaykit.seats import SEATS

FAILED = (
    "malformed",
    "status",
    "overloaded",
    "unreachable",
    "rate_limit",
    "auth",
    "context_overflow",
    "capability",
    "deadline",
)
UNKNOWN_FINISH = "shrugged"
BODIES = (
    "error_under_200",
    "html",
    "empty_body",
    "wrong_type",
    "invalid_utf8",
    "gzip_lie",
    "byte_order_mark",
    "event_stream",
    "cut_json",
)
BROKEN = ("wrong_length", "reset_before_headers", "reset_mid_body", "unterminated_chunks", "close_after_headers")
PARALLEL = 8
RETRY_AFTER = (("seconds", "1"), ("zero", "0"), ("hour", "3600"), ("garbage", "soon"))


def _faulty(name: str, fault: Fault, seat: str = "learner", **more: Any) -> Step:
    return Step(name, seat, hello(seat, f"Meet {name}."), fault=fault, healthy=False, **more)


def _cut_off(profile: Profile) -> list[Probe]:
    call = Call("call_a", "get_x", '{"key": "a')
    tools = [tool("get_x")]
    return [
        Probe(
            "finish",
            (
                _faulty("length-text", says(Reply("Half a sent", finish_reason="length"))),
                _faulty("length-call", says(Reply(None, (call,), finish_reason="length")), tools=tools),
                _faulty("unknown", says(Reply("A whole sentence.", finish_reason=UNKNOWN_FINISH))),
                _faulty("missing", says(Reply("A whole sentence.", omit=("finish",)))),
            ),
        )
    ]


def _judge_cut_off(views: Views) -> None:
    for seen in views.steps:
        seen.only()
        if seen.step.name.startswith("length") and seen.outcome not in ("truncated", "malformed", "invalid_arguments"):
            raise Failed("incomplete_as_answer", f"{seen.step.name}: {seen.outcome}")
        if seen.step.name in ("unknown", "missing") and seen.reply is not None and seen.reply.finish_reason == "stop":
            raise Failed("finish_invented", f"{seen.step.name}: stop")


EMPTY = (
    ("null", Reply(None)),
    ("nothing", Reply("")),
    ("blanks", Reply("  \n ")),
    ("no-choice", Reply(None, empty=True)),
    ("reasoning", Reply(None, reasoning="Hm, let me think.")),
)


def _empties(profile: Profile) -> list[Probe]:
    steps = [_faulty(f"{name}-{seat}", says(reply), seat) for seat in ("learner", "customer") for name, reply in EMPTY]
    return [Probe("empty", (*steps, _faulty("refusal", says(Reply(None, refusal="I cannot do that.")))))]


def _judge_empties(views: Views) -> None:
    for seen in views.steps:
        seen.only()
        if seen.step.name == "refusal":
            if seen.reply is not None and seen.reply.finish_reason == "stop":
                raise Failed("refusal_as_answer", "a refusal came as a plain answer")
        elif seen.delivered is not None or seen.outcome not in ("empty", "malformed"):
            raise Failed("empty_as_answer", f"{seen.step.name}: {seen.outcome}")


def _malformed(profile: Profile) -> list[Probe]:
    return [Probe("bodies", tuple(_faulty(kind, Fault(kind)) for kind in BODIES))]


def _judge_malformed(views: Views) -> None:
    for seen in views.steps:
        seen.only()
        if seen.reply is not None:
            raise Failed("error_as_content", f"{seen.step.name}: {str(seen.reply.content)[:40]!r}")
        if seen.outcome not in FAILED:
            raise Failed("malformed_unclassified", f"{seen.step.name}: {seen.outcome}")


def _broken(profile: Profile) -> list[Probe]:
    pairs = [
        (_faulty(kind, Fault(kind)), Step(f"after-{kind}", "learner", hello("learner", f"After {kind}.")))
        for kind in BROKEN
    ]
    return [Probe("connections", tuple(step for pair in pairs for step in pair), {"scaled": True})]


def _judge_broken(views: Views) -> None:
    for seen in views.steps:
        seen.only()
        if seen.step.fault is None and seen.reply is None:
            raise Failed("poisoned", f"{seen.step.name}: {seen.outcome}")
        if seen.step.fault is not None and seen.reply is not None:
            raise Failed("partial_accepted", seen.step.name)
        if seen.step.fault is not None and seen.outcome not in ("unreachable", "malformed", "deadline"):
            raise Failed("break_unclassified", f"{seen.step.name}: {seen.outcome}")


def _statuses(profile: Profile) -> list[Probe]:
    return [Probe("statuses", tuple(_faulty(f"status-{s}", Fault("status", {"status": s})) for s in STATUSES))]


def _judge_statuses(views: Views) -> None:
    for seen in views.steps:
        status = int(seen.step.name.removeprefix("status-"))
        seen.only()
        if seen.failure is None or seen.failure.status != status:
            raise Failed("status_unnamed", f"{status}: {seen.outcome}")


def _waits(profile: Profile) -> list[Probe]:
    steps = [
        _faulty(f"wait-{name}", Fault("status", {"status": 429, "retry_after": value})) for name, value in RETRY_AFTER
    ]
    steps.append(_faulty("wait-date", Fault("status", {"status": 429, "retry_after_date_s": 2.0})))
    # A transport that retries meets the same answer again, so that the gap before every retry is seen.
    again = [Fault("status", {"status": 429, "retry_after": "1"})] * 3
    return [Probe("waits", (*steps, *(_faulty(f"again-{i}", f) for i, f in enumerate(again))))]


def _judge_waits(views: Views) -> None:
    for seen in views.steps:
        asked_s = dict(RETRY_AFTER).get(seen.step.name.removeprefix("wait-"), "1")
        asked_us = int(asked_s) * 10**6 if asked_s.isdigit() else 0
        for first, second in zip(seen.wire, seen.wire[1:], strict=False):
            if second.at - first.data["times_us"].get("response_last", first.at) < asked_us:
                raise Failed("retried_early", seen.step.name)
        seen.only()
        if seen.outcome != "rate_limit":
            raise Failed("wait_unclassified", f"{seen.step.name}: {seen.outcome}")
        if seen.told_us > 10**7:
            raise Failed("slept", seen.step.name)
    wanted = views.step("wait-seconds").failure
    if wanted is None or wanted.retry_after_s != 1.0:
        raise Failed("wait_unreported", "Retry-After: 1")


def _first_attempt(profile: Profile) -> list[Probe]:
    return [
        Probe(
            "first",
            (
                _faulty("failing", Fault("status", {"status": 500})),
                Step("after", "learner", hello("learner", "Then well.")),
            ),
        )
    ]


def _judge_first_attempt(views: Views) -> None:
    seen = views.step("failing")
    if not seen.wire:
        raise Unseen("the request never reached the wire")
    logged = [x["status"] for x in seen.data["exchanges"]]
    if views.profile.sees_wire and len(seen.wire) != len(logged):
        raise Failed("first_attempt_hidden", f"{len(seen.wire)} attempts, {len(logged)} reported")
    if seen.reply is None and (seen.failure is None or seen.failure.status != 500):
        raise Failed("first_attempt_hidden", "the status of the first attempt is not reported")
    seen.only()


def _twice(profile: Profile) -> list[Probe]:
    same = hello("learner", "Exactly the same.")
    return [Probe("twice", tuple(Step(f"same-{i}", "learner", same) for i in (1, 2, 3)))]


def _judge_twice(views: Views) -> None:
    ids = [s.reply.id for s in (*views.twins, *views.steps) if s.reply is not None]
    if len(set(ids)) != len(ids):
        raise Failed("memoized", "one reply was given twice")
    for seen in views.steps:
        seen.only()


STREAMS = {
    "whole": 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Half"}}]}\n\ndata: [DONE]\n\n',
    "no-end": 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Half"}}]}\r\n\r\n',
    "comments": ': keep-alive\n\ndata: {"id":"x","choices":[{"delta":{"content":"Half"}}]}\n\ndata: {broken\n\n',
}


def _streams(profile: Profile) -> list[Probe]:
    raw = [
        _faulty(f"stream-{n}", Fault("raw", {"body": t, "content_type": "text/event-stream"}))
        for n, t in STREAMS.items()
    ]
    return [Probe("streams", (_faulty("stream-reply", Fault("event_stream")), *raw))]


def _judge_streams(views: Views) -> None:
    if views.profile.streaming:
        raise Unseen(
            "the control provider offers no streams, so a transport that declares them cannot be seen to read one"
        )
    for seen in views.steps:
        if seen.only().body.get("stream"):
            raise Failed("stream_asked", seen.step.name)
        if seen.reply is not None:
            raise Failed("stream_merged", f"{seen.step.name}: {str(seen.reply.content)[:40]!r}")
        if seen.outcome not in FAILED:
            raise Failed("malformed_unclassified", f"{seen.step.name}: {seen.outcome}")


def _crowd(profile: Profile) -> list[Probe]:
    steps = [
        Step(
            f"caller-{i}",
            SEATS[i % 2],
            hello(SEATS[i % 2], f"I am caller {i}."),
            group="crowd",
            fault=Fault("late", {"headers_s": 0.03 * (PARALLEL - i), "body_s": 0.03 * (PARALLEL - i)}),
            settings={"temperature": 0.0, "max_output_tokens": 100 + i},
        )
        for i in range(PARALLEL)
    ]
    return [Probe("crowd", tuple(steps))]


def _judge_crowd(views: Views) -> None:
    by_text = {_marker(e): e for e in views.wire}
    for i, seen in enumerate(views.steps):
        exchange = by_text.get(f"I am caller {i}.")
        if exchange is None:
            raise Unseen(f"caller {i} never reached the wire")
        if seen.reply is not None and seen.reply.id not in exchange.reply_ids():
            raise Failed("crossed", f"caller {i} got the answer of another")
        if exchange.seat != seen.step.seat:
            raise Failed("crossed", f"caller {i} was asked at another seat")


def _marker(exchange: Any) -> str:
    users = [m["content"] for m in exchange.asked.messages if m["role"] == "user"]
    return users[-1] if users else ""


def checks() -> list[Check]:
    """C28 to C37."""
    return [
        Check(
            "C28",
            "what was cut off is never a plain answer, and no finish is invented",
            "MUST",
            "seat",
            ("incomplete_as_answer", "finish_invented"),
            _cut_off,
            _judge_cut_off,
        ),
        Check(
            "C29",
            "an empty answer is no answer, at the seat that gave it",
            "MUST",
            "seat",
            ("empty_as_answer", "refusal_as_answer"),
            _empties,
            _judge_empties,
        ),
        Check(
            "C30",
            "bodies that are no reply never become content",
            "MUST",
            "transport",
            ("error_as_content", "malformed_unclassified"),
            _malformed,
            _judge_malformed,
        ),
        Check(
            "C31",
            "broken connections give no partial answer and harm no later call",
            "MUST",
            "transport",
            ("partial_accepted", "poisoned", "break_unclassified"),
            _broken,
            _judge_broken,
        ),
        Check(
            "C32",
            "each error status has one attempt and keeps its name",
            "MUST",
            "transport",
            ("retried", "status_unnamed"),
            _statuses,
            _judge_statuses,
        ),
        Check(
            "C33",
            "what Retry-After asks is honoured or nothing is sent again",
            "MUST",
            "transport",
            ("retried_early", "wait_unclassified", "wait_unreported", "slept"),
            _waits,
            _judge_waits,
        ),
        Check(
            "C34",
            "a failed first attempt stays in the evidence",
            "MUST",
            "transport",
            ("first_attempt_hidden",),
            _first_attempt,
            _judge_first_attempt,
        ),
        Check("C35", "the same request twice is sent twice", "MUST", "transport", ("memoized",), _twice, _judge_twice),
        Check(
            "C36",
            "no stream is asked for unless declared; one that comes is never merged",
            "MUST",
            "transport",
            ("stream_merged", "stream_asked"),
            _streams,
            _judge_streams,
        ),
        Check(
            "C37",
            "calls at the same time each get their own answer",
            "MUST",
            "transport",
            ("crossed",),
            _crowd,
            _judge_crowd,
        ),
    ]
