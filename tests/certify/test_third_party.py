"""The transport that the documentation shows is certified as documented."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaykit.certify import subject

from .conftest import certify, order

DOCUMENT = Path(__file__).parents[2] / "docs" / "certify.md"


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The module of the documentation, importable here and in child processes; its name."""
    [code] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (tmp_path / "documented_transport.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    yield "documented_transport:Mine"
    sys.modules.pop("documented_transport", None)


def test_the_documented_transport_passes_every_check(documented: str, tmp_path: Path) -> None:
    done = certify(tmp_path / "out", order(subject.load(documented, {})))
    predicate = done.statement["predicate"]
    assert [(r["id"], r["code"], r["where"]) for r in predicate["checks"] if r["status"] != "PASS"] == []
    assert predicate["panels"]["counts"]["PASS"] == 2


def test_the_documented_transport_is_about_fifty_lines() -> None:
    [code] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 60
