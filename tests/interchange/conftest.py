"""Results documents in tau2's own form, made from recordings and then changed case by case."""

from __future__ import annotations

import json

import pytest

from replaykit import import_results, record_many
from replaykit.store import reader


@pytest.fixture
def document(recording, runtime):
    """A function that gives the results document of recorded panels of one domain."""
    from replaykit import export_results

    def made(*panels: str, controls: str = "reference") -> dict:
        cassettes = [reader.read(path) for path in recording(*panels, controls=controls)]
        return json.loads(json.dumps(export_results.results(cassettes, runtime)))

    return made


@pytest.fixture
def imported(fleet, tmp_path):
    """A function that imports a results document, or what is at a path, and returns what became of each simulation."""

    def run(source, name: str = "results.json") -> list[import_results.Imported]:
        path = source
        if isinstance(source, dict):
            path = tmp_path / "in" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(source), encoding="utf-8")
        return import_results.run(import_results.open_file(path, tmp_path / "out", fleet), record_many.Watch())

    return run


@pytest.fixture
def findings():
    """A function that names the findings of one simulation."""
    return lambda one: {d.name: d.detail for d in one.findings}
