"""Subjects by reference, so that another process certifies the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replaykit.certify import subject as subjects
from replaykit.certify.subject import Subject
from replaykit.errors import UsageError


def subject(reference: str, options: Mapping[str, Any]) -> Subject:
    """The subject of ``transport NAME`` or ``known-bad ID``.

    Raises:
        UsageError: there is no such thing.
    """
    kind, _, name = reference.partition(" ")
    if kind == "transport":
        return subjects.load(name, options)
    if kind == "known-bad":
        from replaykit.certify.known_bad import BY_ID

        return BY_ID[name].subject()
    raise UsageError(f"no subject is called {reference!r}")
