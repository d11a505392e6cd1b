"""Where a recording was taken up again: the seams of a resume or a fork, from a cassette's notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Seam:
    """One seam.

    Attributes:
        request: Number of the first request that went live behind it.
        text: What was done there.
    """

    request: int
    text: str


def seams(notes: Iterable[Mapping[str, Any]]) -> list[Seam]:
    """The seams among a cassette's notes, in order of their requests; what is no seam is left out."""
    found = (_seam(note.get("seam")) for note in notes)
    return sorted((seam for seam in found if seam is not None), key=lambda seam: seam.request)


def _seam(data: Any) -> Seam | None:
    if not isinstance(data, dict):
        return None
    if data.get("kind") == "fork" and _is_count(data.get("at")):
        parent = f"{data.get('parent_name')} ({str(data.get('parent'))[:16]}…)"
        other = ", with another system prompt for the learner" if "prompt" in data else ""
        return Seam(data["at"], f"forked from {parent} at request {data['at']}{other}")
    if data.get("kind") == "resume" and _is_count(data.get("after_request")):
        again = ", which was asked again" if data.get("asked_again") else ""
        return Seam(data["after_request"] + 1, f"resumed after request {data['after_request']}{again}")
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
