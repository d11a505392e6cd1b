"""Faults and schedules as values."""

from __future__ import annotations

import pytest

from replaykit.controls import Fault, Schedule
from replaykit.controls.faults import KINDS


def test_a_schedule_gives_the_fault_of_seat_and_ordinal_only():
    schedule = Schedule({"learner": {2: Fault("silence")}})
    assert schedule.fault("learner", 2) == Fault("silence")
    assert schedule.fault("learner", 1) is None
    assert schedule.fault("judge", 2) is None


def test_a_fault_of_its_own_goes_before_the_one_for_all():
    schedule = Schedule({"learner": {2: Fault("html")}}, {"learner": Fault("late", {"headers_s": 16})})
    assert schedule.fault("learner", 1).kind == "late"
    assert schedule.fault("learner", 2).kind == "html"


def test_a_schedule_survives_its_plain_form():
    faults = {n: Fault(kind) for n, kind in enumerate(KINDS, start=1)}
    schedule = Schedule({"learner": faults}, {"judge": Fault("half_body", {"then": "reset"})})
    assert Schedule.from_dict(schedule.to_dict()).digest == schedule.digest


def test_the_digest_sees_a_changed_option():
    one, other = (Schedule({"judge": {1: Fault("late", {"body_s": s})}}) for s in (26, 28))
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("explode", {}, "no fault 'explode'"),
        ("status", {"code_": 1}, "no option 'code_'"),
        ("half_body", {"then": "sleep"}, "then of the fault"),
        ("redirect", {"status": 200}, "statuses"),
        ("late", {"body_s": "26"}, "body_s of the fault 'late' is a number"),
        ("reply", {"reply": {"text": "x"}}, "describes no reply"),
        ("patch", {"patch": {"omit": ["everything"]}}, "describes no reply"),
    ],
)
def test_a_wrong_fault_is_refused(kind, options, says):
    with pytest.raises(ValueError, match=says):
        Fault(kind, options)


@pytest.mark.parametrize("faults", [{"referee": {1: Fault("html")}}, {"judge": {0: Fault("html")}}])
def test_a_schedule_for_nobody_is_refused(faults):
    with pytest.raises(ValueError, match=r"seat|ordinals"):
        Schedule(faults)
