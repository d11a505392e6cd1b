"""The fast digest of a growing conversation equals the plain one."""

from __future__ import annotations

import random

from replaykit.request_digest import RequestDigests, request_digest
from replaykit.seats import SeatRequest


def request(messages: list[dict], seat: str = "learner", tools: list[dict] | None = None, **arguments) -> SeatRequest:
    return SeatRequest(seat, 1, "m", messages, tools, "auto" if tools else None, arguments)


def test_it_equals_the_plain_digest_over_a_whole_episode(episode):
    digests = RequestDigests()
    assert all(digests.of(r) == request_digest(r) for r, _, _ in episode.turns(60))


def test_it_equals_the_plain_digest_for_any_history():
    choose = random.Random(5)
    texts, kinds = ("a", "ü", "\ud83d", ""), (1, 1.0, True, None)
    pool = [{"role": "user", "content": text, "n": n} for text in texts for n in kinds]
    digests = RequestDigests()
    for _ in range(400):
        messages = [choose.choice(pool) for _ in range(choose.randrange(6))]
        tools = choose.choice([None, [{"name": "x"}], [{"name": "y"}]])
        asked = request(messages, choose.choice(["learner", "customer"]), tools, temperature=choose.choice([0, 0.0]))
        assert digests.of(asked) == request_digest(asked)


def test_equal_messages_that_are_other_objects_give_the_same_digest():
    digests = RequestDigests()
    first = digests.of(request([{"role": "user", "content": "a"}]))
    assert digests.of(request([{"role": "user", "content": "a"}])) == first


def test_a_replaced_message_is_noticed():
    digests = RequestDigests()
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    before = digests.of(request(list(messages)))
    messages[0] = {"role": "user", "content": "c"}
    assert digests.of(request(messages)) == request_digest(request(messages)) != before


def test_key_order_counts():
    digests = RequestDigests()
    assert digests.of(request([{"a": 1, "b": 2}])) != digests.of(request([{"b": 2, "a": 1}]))
