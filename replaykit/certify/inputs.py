"""What a user gives to a certification beside the transport: options and waivers, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from replaykit.certify import catalogue
from replaykit.certify.subject import WIRES, Subject
from replaykit.errors import UsageError

_WAIVER = ("id", "check", "panel", "reason", "owner", "link", "granted", "expires")


def options(given: Iterable[str]) -> dict[str, Any]:
    """``KEY=JSON`` texts as options of a transport.

    Raises:
        UsageError: one is neither.
    """
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        try:
            found[key] = json.loads(value) if equals else None
        except ValueError as error:
            raise UsageError(f"the option {key} is not JSON: {error}") from error
        if not equals or not key:
            raise UsageError(f"{text!r} is no option: write it as KEY=JSON")
    return found


def check_wire(subject: Subject, wire: str | None) -> None:
    """Check that the wire to speak is known.

    Raises:
        UsageError: the transport names none of the four wires, and no option does.
    """
    named = wire or subject.wire or subject.identity().get("wire")
    if named not in WIRES:
        raise UsageError(
            f"{subject.name} speaks {named!r}, which the control provider does not: "
            f"give --wire, one of {', '.join(WIRES)}"
        )


def waivers(path: Path | None) -> list[dict]:
    """The waivers of a file.

    Raises:
        UsageError: it cannot be read, or one is not whole.
    """
    if path is None:
        return []
    try:
        given = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as a list of waivers: {error}") from error
    if not isinstance(given, list):
        raise UsageError(f"{path} is no list of waivers")
    return [_waiver(w, path, i) for i, w in enumerate(given)]


def _waiver(given: Any, path: Path, index: int) -> dict:
    place = f"waiver {index} of {path}"
    if not isinstance(given, dict) or not all(isinstance(given.get(k), str) and given[k].strip() for k in _WAIVER):
        raise UsageError(f"{place} needs the texts {', '.join(_WAIVER)}")
    if given["check"] not in {c.id for c in catalogue.checks()}:
        raise UsageError(f"{place} names no check: {given['check']!r}")
    try:
        date.fromisoformat(given["expires"])
        date.fromisoformat(given["granted"])
    except ValueError as error:
        raise UsageError(f"{place} has a date that is none: {error}") from error
    return {k: given[k] for k in _WAIVER}
