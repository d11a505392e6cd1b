"""Find the tau2 on this machine without importing it, and say what is wrong with it in one sentence.

Distribution metadata tells apart upstream tau2, the packaged 0.2 line, the unrelated physics package that also
installs a ``tau2`` import, and two distributions that own the same import.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path

from replaykit.engine import pins
from replaykit.errors import EngineNotReady

# By name, since replaykit itself may have been installed from a checkout.
INSTALL_EMBEDDED = f"python -m pip install {' '.join(pins.EMBEDDED_REQUIREMENTS)}"


@dataclass(frozen=True, slots=True)
class Found:
    """A usable tau2.

    Attributes:
        kind: ``pinned`` or ``embedded``.
        package_path: The ``tau2`` package folder.
        import_path: Folder to put on ``sys.path`` first, or None when the import already resolves there.
        data_path: Upstream's ``data/tau2`` folder for the pinned engine, or None.
        revision: Source revision if it can be told, else ``unknown``.
    """

    kind: str
    distribution: str
    version: str
    package_path: Path
    import_path: Path | None = None
    data_path: Path | None = None
    revision: str = "unknown"
    notes: tuple[str, ...] = field(default=())


def find() -> Found:
    """The engine to use: a checkout named by environment variable first, else what is installed.

    Raises:
        EngineNotReady: none, foreign or ambiguous; ``finding`` names which.
    """
    checkout = os.environ.get(pins.CHECKOUT_VARIABLE)
    if checkout:
        return _from_checkout(Path(checkout))
    upstream, packaged = _distribution(pins.DISTRIBUTION), _distribution(pins.EMBEDDED_DISTRIBUTION)
    if upstream is not None and packaged is not None:
        raise EngineNotReady(
            f"both {pins.DISTRIBUTION} {upstream.version} and {pins.EMBEDDED_DISTRIBUTION} {packaged.version} "
            "own the import "
            f"'tau2', so which one runs is chance: uninstall one of them",
            "two_distributions",
        )
    if packaged is not None:
        return _packaged(packaged)
    if upstream is not None:
        return _upstream(upstream)
    if util.find_spec("tau2") is not None:
        raise EngineNotReady(
            "a 'tau2' folder is importable but no distribution owns it: "
            "remove it from sys.path or install tau2 properly",
            "unowned_tau2",
        )
    raise EngineNotReady(f"no tau2 engine is installed: run {INSTALL_EMBEDDED}", "no_engine")


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _from_checkout(root: Path) -> Found:
    package = root / "src" / "tau2"
    if not (package / "orchestrator" / "orchestrator.py").is_file():
        raise EngineNotReady(
            f"{pins.CHECKOUT_VARIABLE} does not name a tau2 checkout (no src/tau2/orchestrator in it): "
            "correct or unset it",
            "bad_checkout",
        )
    _check_python()
    data = Path(os.environ.get(pins.DATA_VARIABLE) or root / "data") / "tau2"
    version, revision = _checkout_version(root), _git_revision(root)
    notes = _notes(version, revision)
    return Found("pinned", pins.DISTRIBUTION, version, package, package.parent, data, revision, notes)


def _notes(version: str, revision: str) -> tuple[str, ...]:
    """What to know of an upstream tau2 that is not the pinned one; its data files are held to the pins anyway."""
    notes = []
    if version != pins.VERSION:
        notes.append(f"tau2 {version} is not the version facts and fleet were made with, {pins.VERSION}")
    if revision not in ("unknown", pins.REVISION):
        notes.append(f"revision {revision[:12]} is not the one facts and fleet were made with, {pins.REVISION[:12]}")
    return tuple(notes)


def _packaged(dist: metadata.Distribution) -> Found:
    package = _package_path()
    notes = (
        ()
        if dist.version in pins.EMBEDDED_VERSIONS
        else (f"{pins.EMBEDDED_DISTRIBUTION} {dist.version} is not a version the corrections were made for",)
    )
    return Found("embedded", pins.EMBEDDED_DISTRIBUTION, dist.version, package, notes=notes)


def _upstream(dist: metadata.Distribution) -> Found:
    package = _package_path()
    if not (package / "orchestrator" / "orchestrator.py").is_file():
        raise EngineNotReady(
            f"the installed distribution 'tau2' {dist.version} is an unrelated physics package, not tau2-bench: "
            f"uninstall it and run {INSTALL_EMBEDDED}",
            "unrelated_tau2",
        )
    _check_python()
    override = os.environ.get(pins.DATA_VARIABLE)
    data = (Path(override) if override else package.parent.parent / "data") / "tau2"
    revision = _installed_revision(dist, package)
    notes = _notes(dist.version, revision)
    return Found("pinned", pins.DISTRIBUTION, dist.version, package, None, data, revision, notes)


def _check_python() -> None:
    if sys.version_info < (3, 12):
        raise EngineNotReady(
            "upstream tau2 1.0.1 needs Python 3.12 or newer: use the embedded engine here", "python_too_old"
        )


def _package_path() -> Path:
    spec = util.find_spec("tau2")
    if spec is None or not spec.submodule_search_locations:
        raise EngineNotReady(
            "the tau2 distribution is installed but its import does not resolve: reinstall it", "broken_install"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _checkout_version(root: Path) -> str:
    import tomllib

    try:
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "unknown"


def _installed_revision(dist: metadata.Distribution, package: Path) -> str:
    text = dist.read_text("direct_url.json")
    commit = (json.loads(text).get("vcs_info") or {}).get("commit_id") if text else None
    return commit or _git_revision(package.parent.parent)


def _git_revision(root: Path) -> str:
    """The commit a checkout stands on, read from its .git folder without running git."""
    head = root / ".git" / "HEAD"
    try:
        text = head.read_text(encoding="ascii").strip()
        if text.startswith("ref: "):
            text = (root / ".git" / text[5:]).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return "unknown"
    return text if len(text) == 40 else "unknown"
