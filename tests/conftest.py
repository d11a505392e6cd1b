"""Fixtures that many rooms share: the engine and the fleet of this process, and recorded episodes."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def runtime():
    """The tau2 engine of this environment; tests that need one skip where there is none."""
    from replaykit import engine
    from replaykit.errors import EngineNotReady

    try:
        found = engine.load()
        found.domain("airline")
    except EngineNotReady as error:
        pytest.skip(f"no tau2 engine: {error}")
    return found


@pytest.fixture(scope="session")
def fleet():
    """The repository's fleet."""
    from replaykit.store import fleet_file

    return fleet_file.read(ROOT / "fleet.json")


@pytest.fixture(scope="session")
def facts():
    """What upstream tau2 1.0.1 did in 556 scripted episodes."""
    from replaykit import parity

    return parity.read(DATA / "facts" / "tau2-1.0.1-open.json.gz")


@pytest.fixture
def recording(runtime, fleet, tmp_path):
    """A function that records panels with controls and returns the cassettes' paths, in fleet order."""
    from replaykit import record_many

    def record(*panels: str, controls: str = "reference", out: Path = tmp_path / "rec", jobs: int = 1, zstd: bool = False):
        plan = record_many.Plan(fleet, panels, (300,), out, zstd, jobs)
        return [o.path for o in record_many.run(plan, controls, None, record_many.Watch())]

    return record
