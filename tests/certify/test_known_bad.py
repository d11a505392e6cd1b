"""Every known-bad is caught by the check it targets, for the reason it is expected to be; the good ones pass."""

from __future__ import annotations

import pytest

from replaykit.certify import catalogue, self_test
from replaykit.certify.known_bad import KNOWN_BADS, UNIVERSAL
from replaykit.certify.self_test import GOOD, Job

from .conftest import ideal_report

SLOW = {"C38", "C39", "C40", "C41", "C42", "C44", "C45", "C46"}
QUICK = [bad for bad in KNOWN_BADS if bad.targets not in SLOW]


@pytest.mark.parametrize("bad", QUICK, ids=lambda bad: bad.id)
def test_a_known_bad_is_caught_for_its_reason(bad) -> None:
    [(_, found)] = self_test.findings([Job(bad.id, bad.targets)])
    assert (found.status, found.code) == ("FAIL", bad.expected), found.where


@pytest.mark.slow
@pytest.mark.parametrize("bad", [bad for bad in KNOWN_BADS if bad.targets in SLOW], ids=lambda bad: bad.id)
def test_a_slow_known_bad_is_caught_for_its_reason(bad) -> None:
    [(_, found)] = self_test.findings([Job(bad.id, bad.targets)])
    assert (found.status, found.code) == ("FAIL", bad.expected), found.where


@pytest.mark.parametrize("check", [c.id for c in catalogue.checks() if c.id not in SLOW])
def test_good_transports_of_all_wires_pass(check: str) -> None:
    found = {name: self_test.findings([Job(name, check)])[0][1] for name in GOOD}
    assert {name: (f.status, f.code, f.where) for name, f in found.items() if f.status != "PASS"} == {}


@pytest.mark.parametrize("bad", UNIVERSAL, ids=lambda bad: bad.id)
@pytest.mark.parametrize("check", ["C01", "C05", "C12", "C19", "C25", "C29", "C35", "C43", "C47", "C48", "C49", "C50"])
def test_a_universal_known_bad_passes_nothing(bad, check: str) -> None:
    assert self_test.findings([Job(bad.id, check)])[0][1].status != "PASS"


def test_every_check_has_a_known_bad_with_one_of_its_codes() -> None:
    targeted = {bad.targets: catalogue.check(bad.targets).codes for bad in KNOWN_BADS}
    assert sorted(targeted) == [c.id for c in catalogue.checks()]
    assert [bad.id for bad in KNOWN_BADS if bad.expected not in targeted[bad.targets]] == []


def test_the_catalogue_is_whole_and_in_order() -> None:
    assert [c.id for c in catalogue.checks()] == [f"C{n:02d}" for n in range(1, 51)]


def test_ids_of_known_bads_are_unique() -> None:
    assert len({bad.id for bad in (*KNOWN_BADS, *UNIVERSAL)}) == len(KNOWN_BADS) + len(UNIVERSAL)


def test_a_report_in_which_all_went_well_holds() -> None:
    assert self_test.holds(ideal_report())


@pytest.mark.parametrize("part", ["alarms", "survivors", "idle_checks"])
def test_a_report_with_something_left_does_not_hold(part: str) -> None:
    assert not self_test.holds(ideal_report() | {part: ["something"]})


def test_a_part_of_the_matrix_is_no_self_test() -> None:
    assert not self_test.holds(ideal_report() | {"jobs": 3})


def test_a_universal_pass_does_not_hold() -> None:
    assert not self_test.holds(ideal_report() | {"universal": {"U1_canned": 1}})
