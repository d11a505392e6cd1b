"""The two sides of a comparison: cassettes, replay reports, or folders of either; and which belong together."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit.cassette import SUFFIXES
from replaykit.errors import ReplaykitError, UsageError
from replaykit.store import reader
from replaykit.store.scan import scan

REPORT_SCHEMA = "replaykit.replay-report/1"
_DIVERGENCE = {"kind", "seat", "number", "pointer", "sentence"}
_LARGEST_REPORT = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Item:
    """One episode of a side.

    Attributes:
        name: How it is named in the result.
        panel: The panel's id; "" when the file cannot be read.
        case_seed: The trial, or None: a report does not say.
        arm: Name of the arm, or None.
        digest: Of the cassette a report is about.
        path: A cassette's file, or None.
        report: A report's entry for one cassette, or None.
        error: Why it cannot be read.
    """

    name: str
    panel: str = ""
    case_seed: int | None = None
    arm: str | None = None
    digest: str | None = None
    path: Path | None = None
    report: dict | None = None
    error: ReplaykitError | None = None


def items(path: Path) -> list[Item]:
    """The episodes of one side, in order of their names.

    Raises:
        UsageError: there is nothing there to compare.
        ReplaykitError: a single file cannot be read.
    """
    if path.is_dir():
        found = [item for file in _below(path) for item in _of_file(file, str(file.relative_to(path)), False)]
    else:
        found = _of_file(path, str(path), True)
    if not found:
        raise UsageError(f"there is neither a cassette (*.cassette.jsonl) nor a replay report (*.json) at {path}")
    return found


def pairs(left: list[Item], right: list[Item]) -> Iterator[tuple[Item | None, Item | None]]:
    """Which episodes belong together: by panel and trial, and among several of those by arm, digest and name."""
    if len(left) == len(right) == 1:
        yield left[0], right[0]
        return
    groups: dict[str, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for which, side in enumerate((left, right)):
        for item in side:
            groups[item.panel or item.name][which].append(item)
    for panel in sorted(groups, key=_panel_order):
        yield from _matched(*groups[panel])


_CLUES = (
    lambda item: (item.case_seed, item.arm, item.digest, item.name),
    lambda item: (item.case_seed, item.arm, item.name),
    lambda item: (item.case_seed, item.digest) if item.digest else None,
    lambda item: (item.case_seed, item.arm) if item.arm else None,
    lambda item: (item.case_seed,),
    lambda item: (item.digest,) if item.digest else None,
)
"""From the strongest to the weakest; None: does not say."""


def _matched(left: list[Item], right: list[Item]) -> Iterator[tuple[Item | None, Item | None]]:
    left, right, found = list(left), list(right), []
    for clue in _CLUES:
        for one in list(left):
            same = [other for other in right if clue(one) is not None and clue(one) == clue(other)]
            if same:
                found.append((one, same[0]))
                left.remove(one)
                right.remove(same[0])
    if len(left) == len(right) == 1 and None in (left[0].case_seed, right[0].case_seed):
        found, left, right = [*found, (left[0], right[0])], [], []
    yield from found
    yield from ((item, None) for item in left)
    yield from ((None, item) for item in right)


def _below(folder: Path) -> Iterable[Path]:
    names = sorted(Path(root, name) for root, _, files in os.walk(folder) for name in files)
    return [n for n in names if n.name.endswith((*SUFFIXES, ".json"))]


def _of_file(path: Path, name: str, is_named: bool) -> list[Item]:
    """The episodes in one file; a JSON file in a folder that is no report is passed over."""
    if not path.exists():
        raise UsageError(f"{path} does not exist: give a cassette, a replay report, or a folder of either")
    if path.name.endswith(".json"):
        return _of_report(path, name, is_named)
    try:
        found = scan(path)
    except ReplaykitError as error:
        if is_named:
            raise
        return [Item(name, path=path, error=error)]
    header = found.header
    return [Item(name, found.panel, header["seeds"].get("case"), header["arm"].get("name"), None, path)]


def _of_report(path: Path, name: str, is_named: bool) -> list[Item]:
    document = _report(path)
    if isinstance(document, dict) and document.get("schema") == REPORT_SCHEMA:
        return [_entry(entry, name) for entry in document.get("cassettes", ()) if isinstance(entry, dict)]
    if is_named:
        raise UsageError(
            f"{path} is no replay report of this version: write one with 'replaykit replay --json {path.name}'"
        )
    return []


def _report(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_REPORT:
            raise UsageError(f"{path} is larger than a report may be ({_LARGEST_REPORT} bytes)")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        return None


def _entry(entry: dict, name: str) -> Item:
    panel, cassette = str(entry.get("panel") or ""), str(entry.get("cassette"))
    divergences = entry.get("divergences", [])
    if not isinstance(divergences, list) or not all(
        isinstance(d, dict) and d.keys() >= _DIVERGENCE for d in divergences
    ):
        raise UsageError(f"{name}: the entry of {cassette} holds divergences of another form: write the report anew")
    return Item(f"{name}: {cassette}", panel, None, None, entry.get("digest"), None, entry)


def _panel_order(panel: str) -> tuple:
    domain, _, number = panel.partition("/")
    return (domain, int(number) if number.isdigit() else 0, number)


def read(item: Item) -> Any:
    """The cassette of an item.

    Raises:
        ReplaykitError: it cannot be read.
    """
    return reader.read(item.path)
