"""Where the fleet's file is, and reading it."""

from __future__ import annotations

import json
from pathlib import Path

from replaykit import fleet
from replaykit.errors import UsageError

NAME = "fleet.json"


def locate(path: Path | None = None) -> Path:
    """The fleet file to use: the one named, else ``fleet.json`` here, else the one the package came with.

    Raises:
        UsageError: there is none.
    """
    package = Path(__file__).resolve().parent.parent
    candidates = [path] if path else [Path(NAME), package / "data" / NAME, package.parent / NAME]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise UsageError(f"there is no fleet file {candidates[0]}: run 'replaykit fleet build'")


def read(path: Path | None = None) -> fleet.Fleet:
    """Read and check a fleet.

    Raises:
        UsageError: there is none, or it is not a fleet.
    """
    place = locate(path)
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{place} cannot be read as a fleet: {error}") from error
    try:
        return fleet.parse(data)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
