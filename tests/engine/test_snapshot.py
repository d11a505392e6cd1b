"""Tool calls on database views answer, hash and end as they do on tau2's own databases."""

from __future__ import annotations

import random

import pytest

from replaykit.engine import pins

from .pairs import Pair

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def test_the_base_hash_is_tau2s_hash_of_the_untouched_database(full, domain):
    assert full.base.hash == full.hash(full.view()) == pins.DB_HASH[domain]
    full.check_base()


def test_a_small_base_hashes_as_tau2_hashes_it(small):
    assert small.base.hash == small.view().get_hash()


def test_random_calls_answer_and_end_as_they_do_natively(tau2, domain, small):
    done = failed = 0
    for seed in range(1000 if small._shared_iteration else 100):
        chance, pair = random.Random(seed), Pair(tau2, domain, small)
        ok, errors = pair.run(chance, chance.randint(1, 5))
        done, failed = done + ok, failed + errors
        assert pair.viewed.get_db_hash() == pair.native.get_db_hash(), f"seed {seed}"
        if seed % 10 == 0:
            pair.check()
    assert done > 100 and failed > 100
    small.check_base()


def test_random_calls_on_the_whole_database_end_as_they_do_natively(tau2, domain, full):
    for seed in range(3):
        pair = Pair(tau2, domain, full)
        pair.run(random.Random(seed), 12)
        assert pair.viewed.get_db_hash() == pair.native.get_db_hash(), f"seed {seed}"
    full.check_base()


def test_reference_solutions_end_as_they_do_natively(tau2, domain, full):
    scenarios = tau2.scenarios(domain)
    for scenario_id in random.Random(1).sample(sorted(scenarios), 4):
        check_reference(tau2, domain, full, scenarios[scenario_id])


def check_reference(tau2, domain, full, scenario):
    pair = Pair(tau2, domain, full)
    for action in scenario.reference_actions:
        pair.call(action["name"], action["arguments"])
    hashes = {pair.native.get_db_hash(), pair.viewed.get_db_hash(), tau2.reference_outcome(domain, scenario.id)[0]}
    assert len(hashes) == 1, scenario.id


@pytest.mark.exhaustive
def test_every_reference_solution_ends_as_it_does_natively(tau2, domain, full):
    for scenario in tau2.scenarios(domain).values():
        check_reference(tau2, domain, full, scenario)
    full.check_base()


@pytest.mark.exhaustive
def test_many_random_sequences_on_the_whole_database_end_as_they_do_natively(tau2, domain, full):
    for seed in range(200):
        chance, pair = random.Random(seed), Pair(tau2, domain, full)
        pair.run(chance, chance.randint(1, 6))
        assert pair.viewed.get_db_hash() == pair.native.get_db_hash(), f"seed {seed}"
    full.check_base()


def test_a_failing_call_that_changes_a_row_first_leaves_the_same_state(tau2):
    full = tau2.domain("airline").databases
    pair, db = Pair(tau2, "airline", full), full.view()
    row, payment = next(
        (r, p.id)
        for r in db.reservations.values()
        for p in db.users[r.user_id].payment_methods.values()
        if p.source == "gift_card" and p.amount > 100
    )
    arguments = {
        "reservation_id": row.reservation_id,
        "total_baggages": 9,
        "nonfree_baggages": row.nonfree_baggages + 0.01,
    }
    error, said = pair.call("update_reservation_baggages", {**arguments, "payment_id": payment})
    assert error and "Payment" in said
    assert pair.viewed.get_db_hash() == pair.native.get_db_hash() != full.base.hash
    assert list(full.touched(pair.viewed.tools.db)) == ["users"]
