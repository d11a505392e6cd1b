"""The user's file of named interpreters: name -> path of a Python that has another tau2."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from replaykit.errors import UsageError
from replaykit.store import atomic

SCHEMA = "replaykit.engines/1"


def locate(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the file is: ``replaykit/engines.json`` in the user's configuration folder."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(configured) if os.path.isabs(configured) else Path.home() / ".config"
    return folder / "replaykit" / "engines.json"


def read(path: Path) -> dict[str, str]:
    """The interpreters by name; none when there is no file.

    Raises:
        UsageError: the file is there and is not a file of engines.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as a file of engines: {error}") from error
    engines = data.get("engines") if isinstance(data, dict) and data.get("schema") == SCHEMA else None
    if not isinstance(engines, dict) or not all(isinstance(python, str) for python in engines.values()):
        raise UsageError(f"{path} is no file of engines of this version: move it away and add the engines again")
    return engines


def write(path: Path, engines: Mapping[str, str]) -> None:
    """Write the file.

    Raises:
        UsageError: it cannot be written.
    """
    text = json.dumps({"schema": SCHEMA, "engines": dict(sorted(engines.items()))}, ensure_ascii=False, indent=1)
    try:
        atomic.write_text(path, text + "\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
