"""Domain data files, each verified against its frozen digest before use.

Upstream reads them from its data folder. The packaged 0.2 line carries other tasks, so the embedded engine takes
tasks, policies, databases and splits from two data-only packages whose files equal the pin's.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from replaykit.engine import pins
from replaykit.engine.locate import INSTALL_EMBEDDED, Found
from replaykit.errors import EngineNotReady


@dataclass(frozen=True, slots=True)
class DomainData:
    """One domain's verified files.

    Attributes:
        tasks: The base split's scenarios as plain dictionaries, in file order.
        policy: The policy text.
        db_text: The database file's bytes.
        sources: Data file name -> distribution (or ``checkout``) it came from.
        splits: Upstream's splits: name -> ids. ``train`` and ``test`` share no scenario and together are ``base``.
    """

    domain: str
    tasks: tuple[dict, ...]
    policy: str
    db_text: bytes
    sources: dict[str, str]
    splits: dict[str, list[str]]


def load(found: Found, domain: str) -> DomainData:
    """Read and verify one domain's files.

    Raises:
        EngineNotReady: a file is missing (``data_missing``) or has another digest (``data_digest``).
    """
    contents, sources = {}, {}
    for name in ("db.json", "policy.md", "split_tasks.json", "tasks.json"):
        key = f"{domain}/{name}"
        contents[name], sources[key] = _verified(found, key)
    splits = json.loads(contents["split_tasks.json"])
    base = set(splits["base"])
    tasks = tuple(t for t in json.loads(contents["tasks.json"]) if t["id"] in base)
    return DomainData(domain, tasks, contents["policy.md"].decode("utf-8"), contents["db.json"], sources, splits)


def guidelines(found: Found) -> str:
    """The customer's guideline text as upstream 1.0.1 has it.

    Raises:
        EngineNotReady: missing, or not one of the two known texts.
    """
    path = (found.data_path or found.package_path / "data" / "tau2") / "user_simulator" / "simulation_guidelines.md"
    raw = _read(path, "user_simulator/simulation_guidelines.md")
    if hashlib.sha256(raw).hexdigest() == pins.PACKAGED_GUIDELINES_SHA256:
        raw = _corrected_guidelines(raw)
    _check(raw, "user_simulator/simulation_guidelines.md", str(path))
    return raw.decode("utf-8")


def _corrected_guidelines(raw: bytes) -> bytes:
    """The packaged text has a blank line before its last one and no final newline; upstream has it the other way."""
    head, _, last = raw.rpartition(b"\n\n")
    return head + b"\n" + last + b"\n"


def _verified(found: Found, key: str) -> tuple[bytes, str]:
    path, source = _place(found, key)
    raw = _read(path, key)
    _check(raw, key, str(path))
    return raw, source


def _place(found: Found, key: str) -> tuple[Path, str]:
    if found.data_path is not None and (found.data_path / "domains" / key).is_file():
        return found.data_path / "domains" / key, found.distribution
    domain = key.partition("/")[0]
    name, package = pins.DATA_DISTRIBUTIONS[domain]
    try:
        dist = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise EngineNotReady(
            f"the data package {name} is not installed, so the {domain} files of tau2 {pins.VERSION} are missing: "
            f"run {INSTALL_EMBEDDED}",
            "data_missing",
        ) from None
    return Path(str(dist.locate_file(f"{package}/data/tau2/domains/{key}"))), f"{name} {dist.version}"


def _read(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineNotReady(
            f"the data file {key} cannot be read at {path} ({error.strerror}): reinstall the engine's data, "
            f"or name upstream's data folder with {pins.DATA_VARIABLE}",
            "data_missing",
        ) from error


def _check(raw: bytes, key: str, path: str) -> None:
    actual, expected = hashlib.sha256(raw).hexdigest(), pins.DATA_SHA256[key]
    if actual != expected:
        raise EngineNotReady(
            f"{path} has digest {actual[:12]}… where tau2 {pins.VERSION} has {expected[:12]}…: "
            "reinstall the engine's data",
            "data_digest",
        )
