"""The scripted transport."""

from __future__ import annotations

import pytest

from replaykit.errors import UsageError
from replaykit.seats import SeatFailure, SeatReply
from replaykit.transports.scripted import Scripted

from .conftest import ask_for


def never(_exchange: object) -> None:
    raise AssertionError("a script has no wire")


def test_each_seat_has_its_own_list_and_the_last_entry_repeats():
    script = Scripted({"learner": [SeatReply("a"), SeatReply("b")], "customer": [SeatReply("c")]})
    order = ["learner", "customer", "learner", "learner", "customer"]
    assert [script.ask(ask_for(seat=s), never).content for s in order] == ["a", "c", "b", "b", "c"]
    assert [r.seat for r in script.asked] == order


def test_a_scripted_failure_is_raised_anew_each_time():
    script = Scripted({"judge": [SeatFailure("rate_limit", "slow", 429, 2.0)]})
    caught = []
    for _ in range(2):
        with pytest.raises(SeatFailure) as error:
            script.ask(ask_for(seat="judge"), never)
        caught.append(error.value)
    assert caught[0] is not caught[1]
    assert caught[1].to_dict() == {"kind": "rate_limit", "message": "slow", "status": 429, "retry_after_s": 2.0}


def test_a_script_can_be_plain_data():
    failure = {"failure": {"kind": "deadline", "message": "late"}}
    script = Scripted.from_dict({"learner": [{"content": "a"}, failure]})
    assert script.ask(ask_for(), never) == SeatReply("a")
    with pytest.raises(SeatFailure, match="late"):
        script.ask(ask_for(), never)


BAD = {
    "unknown seat": {"referee": [{"content": "a"}]},
    "empty list": {"learner": []},
    "no reply": {"learner": [{"text": "a"}]},
    "no failure": {"learner": [{"failure": {}}]},
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_a_script_that_is_none_is_refused(data):
    with pytest.raises(UsageError):
        Scripted.from_dict(data)


def test_a_seat_without_a_script_is_refused():
    with pytest.raises(UsageError, match="no script for the judge"):
        Scripted({"learner": [SeatReply("a")]}).ask(ask_for(seat="judge"), never)


def test_the_identity_says_that_it_is_a_control():
    assert Scripted({"learner": [SeatReply("a")]}).identity()["control"] is True
