"""The ranks of the house: a module imports lower ranks only, and no edge imports another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "replaykit"
RANKS = {
    0: {"_version", "errors", "canonical"},
    1: {
        "arm", "budget", "cassette", "certificate", "database_rows", "difference", "divergence", "episode", "fleet", "labels", "pages", "policy", "prompts",
        "request_digest", "scoring", "seats", "settings", "turn_rules",
    },
    2: {"controls", "engine", "interchange", "offline", "store", "transports"},
    3: {
        "agentloop", "certify", "cluster", "coverage", "coverage_files", "diff", "engines", "exchange", "export_results", "fleet_build", "fork", "gateway", "handover", "import_results", "import_wire", "labels_build", "parity", "policy_record", "prefix", "processes", "record",
        "record_many", "recorded_terms", "replay", "replay_many", "resume", "rewrite", "score", "seating", "wire_replay",
    },
    4: {"__init__", "__main__", "cli", "pytest_plugin", "reports"},
}  # fmt: skip
RANK_OF = {name: rank for rank, names in RANKS.items() for name in names}
MODULES = sorted(p for p in PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """The part of the package a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Rooms a module imports, function-local and type-checking imports included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("replaykit.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "replaykit":
            found |= {a.name for a in node.names if a.name != "__version__"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("replaykit."):
            found.add(node.module.split(".")[1])
    return found


def test_every_room_has_a_rank():
    assert {room(p) for p in MODULES} - set(RANK_OF) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_lower_ranks_only(path):
    own = room(path)
    for other in imported(path) - {own}:
        allowed = RANK_OF[other] < RANK_OF[own] or (RANK_OF[other] == RANK_OF[own] and RANK_OF[own] != 2)
        assert allowed, f"{path.name} of rank {RANK_OF[own]} imports {other} of rank {RANK_OF[other]}"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) != "engine"], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_engine_imports_tau2(path):
    names = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    }
    assert "tau2" not in names
