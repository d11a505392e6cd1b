"""Label and split manifests as files: built from the engine's scenarios, read for scores, checked by building again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit.engine import pins
from replaykit.engine.protocol import Scenario
from replaykit.errors import UsageError
from replaykit.policy import labels, splits
from replaykit.store import atomic

FOLDER = Path("data") / "manifests"
LABELS, SPLITS, OVERRIDES = "labels_v1.json", "splits_v1.json", "label_overrides_v1.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """What the manifests are built from.

    Attributes:
        tasks: ``{"domain", "id", "split", "reference_actions"}`` each, all upstream tasks.
        derived: The document of derived tasks, or None.
        overrides: The document of corrections, or None.
        revision: The tau2 revision of the tasks.
    """

    tasks: list[dict]
    derived: Any = None
    overrides: Any = None
    revision: str = pins.REVISION

    def build(self) -> tuple[bytes, bytes]:
        """The label file and the split manifest.

        Raises:
            UsageError: the derived tasks or the corrections cannot be used.
        """
        document = labels.build_labels(self.tasks, self.derived, self.overrides, self.revision)
        text = labels.document_bytes(document)
        return text, labels.document_bytes(splits.build_splits(text, self.tasks))

    def differences(self, folder: Path) -> list[str]:
        """Where the manifests of a folder depart from what would be built; empty: they are the same bytes.

        Raises:
            UsageError: a manifest is missing, or the derived tasks or the corrections cannot be used.
        """
        texts = [_read(folder / name, "manifest", "run 'replaykit labels build'") for name in (LABELS, SPLITS)]
        return splits.check(*texts, self.tasks, self.derived, self.overrides, self.revision)


def sources(engine: Any, derived: Path | None = None, overrides: Path | None = None) -> Sources:
    """What to build from.

    Args:
        engine: The loaded tau2 engine.
        derived: A file of derived tasks (see docs/policy.md), or None.
        overrides: A file of corrections; None: the one beside the manifests, if there is one.

    Raises:
        UsageError: a file cannot be read.
    """
    overrides = overrides or locate(OVERRIDES)
    return Sources(tasks(engine), derived and _document(derived), overrides and _document(overrides))


def tasks(engine: Any) -> list[dict]:
    """All upstream tasks of the engine, each with the split that upstream puts it in."""
    return [_task(engine, scenario) for domain in pins.DOMAINS for scenario in engine.scenarios(domain).values()]


def write(folder: Path, texts: tuple[bytes, bytes]) -> None:
    """Write both manifests.

    Raises:
        UsageError: one cannot be written.
    """
    for name, text in zip((LABELS, SPLITS), texts, strict=True):
        try:
            atomic.write_bytes(folder / name, text)
        except OSError as error:
            raise UsageError(f"{folder / name} cannot be written: {error.strerror}") from error


def locate(name: str) -> Path | None:
    """A manifest: in ``data/manifests`` here, else as replaykit came with it; None: in neither place."""
    package = Path(__file__).resolve().parent
    candidates = [FOLDER / name, package / FOLDER / name, package.parent / FOLDER / name]
    return next((path for path in candidates if path.is_file()), None)


def folder() -> Path:
    """The folder of the manifests in use; ``data/manifests`` here where there are none."""
    found = locate(LABELS)
    return found.parent if found else FOLDER


def read_labels(path: Path | None = None) -> dict | None:
    """A label file; by default the one in use, or None where there is none.

    Raises:
        UsageError: it cannot be read or is no label file.
    """
    path = path or locate(LABELS)
    if path is None:
        return None
    document = _document(path)
    if not isinstance(document, dict) or document.get("schema") != labels.LABELS_SCHEMA:
        raise UsageError(f"{path} is no label file of schema {labels.LABELS_SCHEMA}: run 'replaykit labels build'")
    if not _is_whole(document.get("domains")):
        raise UsageError(f"{path} holds entries that are no labels: build it again with 'replaykit labels build'")
    return document


def _task(engine: Any, scenario: Scenario) -> dict:
    domain, name = scenario.domain, scenario.id
    split = "test" if name in engine.domain(domain).files.splits["test"] else "train"
    return {"domain": domain, "id": name, "split": split, "reference_actions": scenario.reference_actions}


def _is_whole(domains: Any) -> bool:
    if not isinstance(domains, dict) or not all(isinstance(entries, dict) for entries in domains.values()):
        return False
    found = [entry for entries in domains.values() for entry in entries.values()]
    return all(isinstance(e, dict) and e.get("y") in (0, 1) and e.get("rule") in labels.LABEL_RULES for e in found)


def _document(path: Path) -> Any:
    raw = _read(path, "file", "give a file that exists")
    try:
        return json.loads(raw, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict:
    """An object whose names are all different: of two corrections of one task, neither may be lost silently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return found


def _read(path: Path, what: str, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be read ({error.strerror}): {remedy}") from error
