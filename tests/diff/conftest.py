"""Recorded episodes that the tests of a comparison change."""

from __future__ import annotations

import pytest

PANELS = ("retail/2", "airline/23", "retail/37", "airline/7")


@pytest.fixture(scope="session")
def episodes(runtime, fleet, tmp_path_factory):
    """Recorded episodes with tool calls and changed rows, by panel."""
    from replaykit import record_many
    from replaykit.store import reader

    plan = record_many.Plan(fleet, PANELS, (300,), tmp_path_factory.mktemp("episodes"), False, 2)
    return {o.panel: reader.read(o.path) for o in record_many.run(plan, "reference", None, record_many.Watch())}
