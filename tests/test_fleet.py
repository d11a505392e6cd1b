"""The fleet as a document: what names a panel, and what is no fleet."""

from __future__ import annotations

import copy

import pytest

from replaykit import fleet as fleets
from replaykit.errors import UsageError

SELECTED = {
    "an id": (["airline/0"], ["airline/0"]),
    "a range": (["retail/9-11"], ["retail/9", "retail/10", "retail/11"]),
    "several with commas, each once": (["retail/1,airline/3", "retail/1"], ["airline/3", "retail/1"]),
}
NOT_SELECTED = {
    "no such panel": "airline/99",
    "nothing": "",
    "a range that runs backwards": "retail/19-10",
    "a range of far too many digits": "retail/0-" + "9" * 5000,
    "digits of another script": "retail/٠-٢",
    "a path": "../airline/0",
}


@pytest.mark.parametrize(("selectors", "ids"), SELECTED.values(), ids=SELECTED.keys())
def test_selectors_name_panels_in_fleet_order(fleet, selectors, ids):
    assert [p.id for p in fleet.select(selectors)] == ids


@pytest.mark.parametrize("selector", NOT_SELECTED.values(), ids=NOT_SELECTED.keys())
def test_what_names_no_panel_is_wrong_use(fleet, selector):
    with pytest.raises(UsageError, match="there is no panel"):
        fleet.select([selector])


def test_a_domain_and_all_name_their_panels(fleet):
    assert [len(fleet.select([name])) for name in ("airline", "retail", "all")] == [50, 114, 164]


def changed(fleet, **members):
    document = copy.deepcopy(fleet.to_dict())
    document["panels"][1] |= members
    return document


BROKEN = {
    "a scenario that leads out of a folder": {"id": "airline/../x", "scenario": "../x"},
    "an id that names another scenario": {"scenario": "7"},
    "a panel that stands in it twice": {"id": "airline/0", "scenario": "0"},
    "a member nobody knows": {"extra": 1},
}


@pytest.mark.parametrize("members", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_fleet_is_refused_with_its_place(fleet, members):
    with pytest.raises(UsageError, match=r"not a fleet: .* at "):
        fleets.parse(changed(fleet, **members))


def test_differences_name_the_panel_and_the_place(fleet):
    other = fleets.parse(changed(fleet, reference_final_db_hash="0" * 64))
    (sentence,) = fleets.differences(fleet, other)
    assert sentence.startswith("airline/1: /reference_final_db_hash is ")
