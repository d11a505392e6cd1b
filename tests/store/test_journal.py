"""What is written comes back: requests, exchanges, replies, states, notes, the result."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from replaykit import canonical
from replaykit.errors import InternalError, UsageError
from replaykit.request_digest import request_digest
from replaykit.seats import SeatFailure, SeatReply, SeatRequest
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

CONTAINERS = ["a.cassette.jsonl", "a.cassette.jsonl.zst"]


@pytest.mark.parametrize("name", CONTAINERS)
def test_native_requests_come_back_as_they_were_asked(begin, episode, name):
    asked = []
    with begin(name) as journal:
        for request, _, _ in episode.turns(7):
            journal.request(request)
            asked.append(request)
    assert [r.native for r in reader.read(journal.path).requests] == asked


@pytest.mark.parametrize("name", CONTAINERS)
def test_wire_exchanges_come_back_byte_for_byte(begin, episode, turns, name):
    with begin(name) as journal:
        turns(journal, episode, 6)
    fresh = type(episode)()
    for recorded, (_, exchange, _) in zip(reader.read(journal.path).requests, fresh.turns(6), strict=True):
        assert recorded.exchanges == (exchange,)


def test_a_stored_digest_is_the_ordered_digest_of_the_request(begin, episode):
    with begin() as journal:
        digests = [(journal.request(request), request_digest(request)) for request, _, _ in episode.turns(5)]
    assert all(stored == whole for stored, whole in digests)
    assert [r.digest for r in reader.read(journal.path).requests] == [whole for _, whole in digests]


OUTCOMES = {
    "text": SeatReply("A text", finish_reason="stop", usage={"prompt_tokens": 3}, model="m", id="r1", cost=0.25),
    "nothing": SeatReply(),
}


@pytest.mark.parametrize("reply", OUTCOMES.values(), ids=OUTCOMES)
def test_a_reply_comes_back_whole(begin, episode, reply):
    with begin() as journal:
        request, _, _ = next(episode.turns(1))
        journal.request(request)
        journal.reply(1, reply)
    assert reader.read(journal.path).requests[0].outcome == reply


def test_tool_calls_and_side_members_of_a_reply_come_back(begin, episode, calling_reply):
    with begin() as journal:
        for request, _, _ in episode.turns(2):
            journal.request(request)
            journal.reply(request.number, calling_reply)
    assert [r.outcome for r in reader.read(journal.path).requests] == [calling_reply, calling_reply]


def test_a_failure_comes_back_with_its_kind_and_status(begin, episode):
    with begin() as journal:
        journal.request(next(episode.turns(1))[0])
        journal.failure(1, SeatFailure("rate_limit", "too many", 429, 2.5))
    outcome = reader.read(journal.path).requests[0].outcome
    assert outcome.to_dict() == {"kind": "rate_limit", "message": "too many", "status": 429, "retry_after_s": 2.5}


def test_what_else_ends_a_request_comes_back(begin, episode):
    with begin() as journal:
        journal.request(next(episode.turns(1))[0])
        journal.end(1, {"reason": "budget", "limit": "requests"})
    assert reader.read(journal.path).requests[0].outcome == {"reason": "budget", "limit": "requests"}


def test_states_and_notes_keep_their_order(begin):
    with begin() as journal:
        journal.note({"seam": "fork", "at": 3})
        journal.state(1, "a" * 64)
        journal.state(2, "b" * 64)
    cassette = reader.read(journal.path)
    assert (cassette.states, cassette.notes) == (((1, "a" * 64), (2, "b" * 64)), ({"seam": "fork", "at": 3},))


def test_the_result_comes_back_as_an_episode_result(record):
    cassette = reader.read(record())
    assert not cassette.interrupted
    assert (cassette.result.termination, cassette.result.diagnostics[0].name) == ("user_stop", "judge.all_true_default")
    assert (cassette.footer["policy_states"], cassette.footer["tokens"]) == ([{"authenticated": False}], {"prompt": 7})


def test_a_journal_left_without_closing_leaves_an_interrupted_cassette(record):
    cassette = reader.read(record(close=False))
    assert (cassette.interrupted, cassette.footer, cassette.result, len(cassette.requests)) == (True, None, None, 4)


def test_an_existing_file_is_never_overwritten(record, header):
    path = record()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        Journal.create(path, header, Redactor())
    assert path.read_bytes() == before


def test_parent_folders_are_made(tmp_path, header):
    path = tmp_path / "deep" / "er" / "a.cassette.jsonl"
    Journal.create(path, header, Redactor()).abandon()
    assert path.exists()


def test_a_header_that_lacks_a_member_is_refused_before_a_file_exists(tmp_path, header):
    del header["panel"]
    with pytest.raises(InternalError, match="lacks panel"):
        Journal.create(tmp_path / "a.cassette.jsonl", header, Redactor())
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_refuses_more(record, begin, result):
    with begin() as journal:
        journal.close({"result": result})
        with pytest.raises(InternalError, match="already closed"):
            journal.note({})


def test_what_a_reader_would_refuse_is_not_written(begin, episode):
    with begin() as journal:
        first, exchange, reply = next(episode.turns(1))
        with pytest.raises(InternalError, match="was not asked before"):
            journal.exchange(1, exchange)
        journal.request(first)
        journal.reply(1, reply)
        with pytest.raises(InternalError, match="comes where request 2 was due"):
            journal.request(first)
        with pytest.raises(InternalError, match="has an outcome already"):
            journal.reply(1, reply)
    assert reader.read(journal.path).requests[0].outcome == reply


def test_each_record_is_in_the_file_when_the_call_returns(begin, episode):
    with begin() as journal:
        for request, _, _ in episode.turns(3):
            journal.request(request)
            assert len(reader.read(journal.path).requests) == request.number


def test_every_line_is_compact_json_with_its_sum_last(record):
    for line in record().read_bytes().splitlines():
        value = json.loads(line)
        assert (next(iter(value)), next(reversed(value))) == ("kind", "sum")
        assert canonical.line(value) == line


def test_values_that_repeat_are_stored_once(record):
    text = record(8).read_text(encoding="utf-8")
    assert text.count("You are an agent. Follow the policy to the letter.") == 1
    assert text.count("Turn 3 of the customer, a text long enough to be shared.") == 1
    assert text.count("Get the user with this id, if any.") == 1


def test_the_size_grows_with_the_conversation_and_not_with_its_square(record):
    sizes = [record(count, f"{count}.cassette.jsonl").stat().st_size for count in (20, 40, 60)]
    assert abs((sizes[2] - sizes[1]) - (sizes[1] - sizes[0])) < 0.05 * sizes[0]


def test_eight_threads_write_eight_journals_without_mixing(record):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda n: record(n, f"{n}.cassette.jsonl"), range(20, 28)))
    assert [len(reader.read(path).requests) for path in paths] == list(range(20, 28))


STRANGE = {
    "lone surrogate": "half of a pair: \ud83d, in a text that is shared",
    "emoji": "a whole pair \U0001f600 and umlauts äöü and enough text",
    "line separators": "a\u2028b\u0085c\nd\re\x00f and so on and on",
    "looks like a reference": '{"$": 3} and then some more text',
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_strange_text_survives_in_requests_and_replies(begin, text):
    request = SeatRequest("learner", 1, "m", [{"role": "user", "content": text}], None, None, {})
    with begin() as journal:
        journal.request(request)
        journal.reply(1, SeatReply(text))
    journal.path.read_bytes().decode("utf-8")
    recorded = reader.read(journal.path).requests[0]
    assert (recorded.native, recorded.outcome.content) == (request, text)


ODD_VALUES = {
    "not a number": {"a": float("nan"), "b": float("-inf")},
    "one of each kind": {"a": 1, "b": 1.0, "c": True, "d": None, "e": [], "f": {}},
    "a reference's own form": {"$": 3},
    "a reference in a list": [{"$": [1]}, {"$": {"$": 2}}],
    "a huge integer": 10**300,
    "minus zero": -0.0,
}


def test_an_episode_does_not_end_while_a_request_has_no_outcome(begin, result):
    with begin() as journal:
        journal.request(SeatRequest("learner", 1, "m", [], None, None, {}))
        with pytest.raises(InternalError, match="request 1 has no outcome"):
            journal.close({"result": result})


@pytest.mark.parametrize("value", ODD_VALUES.values(), ids=ODD_VALUES)
def test_odd_values_survive_everywhere(begin, value, result):
    message = {"role": "tool", "content": None, "odd": value}
    request = SeatRequest("learner", 1, "m", [message, message], None, None, {"odd": value})
    with begin() as journal:
        journal.request(request)
        journal.reply(1, SeatReply("x"))
        journal.note({"odd": value})
        journal.close({"result": {**result, "reward_info": {"odd": value}}, "odd": value})
    cassette = reader.read(journal.path)
    ended = cassette.footer["result"]["reward_info"], cassette.footer["odd"]
    found = (cassette.requests[0].native.to_dict(), cassette.notes[0], *ended)
    wanted = (request.to_dict(), {"odd": value}, {"odd": value}, value)
    assert canonical.same(found, wanted)


def test_one_and_true_and_one_point_nought_are_not_taken_for_the_same(begin):
    kinds = [1, 1.0, True]
    with begin() as journal:
        for number, value in enumerate(kinds, 1):
            messages = [{"role": "user", "n": value}]
            journal.request(SeatRequest("learner", number, "m", messages, None, None, {"n": value}))
    natives = [r.native for r in reader.read(journal.path).requests]
    assert [(type(n.messages[0]["n"]), type(n.arguments["n"])) for n in natives] == [(t, t) for t in (int, float, bool)]


def test_a_history_that_shrinks_or_changes_comes_back_too(begin):
    a, b, c = ({"role": "user", "content": letter} for letter in "abc")
    histories = [[a, b], [a], [a, c], [c], [], [a, b, c]]
    with begin() as journal:
        for number, messages in enumerate(histories, 1):
            journal.request(SeatRequest("learner", number, "m", list(messages), None, None, {}))
    assert [r.native.messages for r in reader.read(journal.path).requests] == histories


@pytest.mark.parametrize("depth", [30, 33, 60, 300])
def test_values_nested_however_deep_come_back(begin, episode, result, depth):
    deep = [1]
    for level in range(depth):
        deep = {"in": deep} if level % 2 else [deep]
    call = {"id": "c", "name": "get_user", "arguments": {"deep": deep}, "requestor": "assistant"}
    trajectory = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    with begin() as journal:
        journal.request(next(episode.turns(1))[0])
        journal.reply(1, SeatReply("x", side={"c": deep}))
        journal.close({"result": {**result, "trajectory": trajectory}})
    cassette = reader.read(journal.path)
    assert canonical.same([cassette.requests[0].outcome.side["c"], cassette.result.trajectory], [deep, trajectory])
