"""One thing is changed in a recorded episode: the comparison names it first, and names its place."""

from __future__ import annotations

import random

import pytest

from replaykit.diff import episodes as comparison

from . import rewriting, single_changes

SEEDS = range(110)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_difference_is_the_one_thing_that_was_changed(seed, episodes, tmp_path):
    rng = random.Random(seed)
    change = single_changes.CHANGES[seed % len(single_changes.CHANGES)]
    source = episodes[rng.choice(sorted(episodes))]
    expected = {}
    changed = rewriting.rewritten(
        source, tmp_path / "changed.cassette.jsonl", lambda data: expected.update(change(data, rng))
    )
    inner = expected.pop("inner", None)
    found = comparison.compare(source, changed)
    assert found.status == "different"
    assert {name: getattr(found.first, name) for name in expected} == expected, change.__name__
    assert found.first.is_cause
    if inner is not None:
        assert found.first.inner[0].pointer.startswith(inner)


def test_a_cassette_written_anew_is_the_same(episodes, tmp_path):
    for panel, source in episodes.items():
        path = tmp_path / f"{panel.replace('/', '-')}.cassette.jsonl"
        assert comparison.compare(source, rewriting.rewritten(source, path, lambda data: None)).status == "same"
