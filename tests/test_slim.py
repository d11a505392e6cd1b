"""The slim install: few packages, pinned as everything else, enough for replay, diff, score and certify.

Set ``REPLAYKIT_SLIM_PYTHON`` to the interpreter of an environment made as docs/slim-install.md says to run the suite's
replay part in it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = os.environ.get("REPLAYKIT_SLIM_PYTHON")
REPLAY_PART = (
    "tests/test_replay.py",
    "tests/test_committed_cassettes.py",
    "tests/test_gateway.py",
    "tests/diff",
    "tests/test_scoring.py",
)
MEASURE = """
import importlib.metadata as m, json, os, sys
places = {p for p in sys.path if p.endswith("site-packages")}
size = sum(os.lstat(os.path.join(r, f)).st_size for p in places for r, _, fs in os.walk(p) for f in fs)
print(json.dumps({"packages": len({d.name for d in m.distributions()}), "mb": size / 2**20}))
"""
inside = pytest.mark.skipif(not PYTHON, reason="REPLAYKIT_SLIM_PYTHON names no slim environment")


def blocks(path: Path) -> dict[str, str]:
    """A requirements file's entries, hashes included, by name and pin."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    entries = [entry.strip() for entry in re.split(r"\n(?=[a-z0-9])", text)]
    return {entry.split(" \\")[0]: entry for entry in entries if entry}


def test_every_pin_and_hash_is_that_of_the_constraints():
    everything, slim = blocks(ROOT / "constraints.txt"), blocks(ROOT / "slim.txt")
    assert {name: entry for name, entry in slim.items() if everything.get(name) != entry} == {}
    assert all("--hash=sha256:" in entry for entry in slim.values())


def test_at_most_sixty_packages_are_listed():
    assert 20 < len({name.partition("==")[0] for name in blocks(ROOT / "slim.txt")}) <= 60


def test_the_documented_command_installs_this_list():
    text = (ROOT / "docs" / "slim-install.md").read_text(encoding="utf-8")
    assert "python -m pip install --no-deps -r slim.txt && python -m pip install --no-deps -e ." in text


@inside
def test_the_environment_is_slim():
    found = json.loads(subprocess.run([PYTHON, "-c", MEASURE], capture_output=True, text=True, check=True).stdout)
    assert found["packages"] <= 60 and found["mb"] <= 200


@inside
@pytest.mark.slow
def test_the_replay_part_of_the_suite_passes_in_it():
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *REPLAY_PART]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "REPLAYKIT_SLIM_PYTHON": ""}
    )
    assert done.returncode == 0, done.stdout[-3000:]
