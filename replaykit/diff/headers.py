"""Compare what two episodes ran on: engine, fleet, settings, roster, arm, transports, versions, seeds."""

from __future__ import annotations

from collections.abc import Mapping

from replaykit import canonical
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import Finding
from replaykit.difference import MISSING, Difference

NEVER_COMPARED = {
    "/header/created_at": "the clock of the recording",
    "/replies/*/id": "the provider's own id of a reply, new in every call",
    "/exchanges/*/timing": "how long a provider took",
    "/notes": "seams of a resume or a fork: how a recording came about, not what it holds",
}
"""What no comparison looks at, and why."""
_SECTION_OF = {
    "panel": "panel",
    "engine": "engine",
    "fleet_digest": "fleet",
    "settings": "settings",
    "budget": "settings",
    "roster": "roster",
    "arm": "arm",
    "prompts": "arm",
    "transports": "transports",
    "created_by": "versions",
    "schema": "versions",
    "seeds": "seeds",
}


def compare(left: Mapping, right: Mapping, walk: Walk, ignored: Ignored) -> list[Finding]:
    """Differences between two headers, section by section."""
    found = []
    for member in dict.fromkeys((*_SECTION_OF, *left, *right)):
        if member in ("created_at", "fork", "configured") or ignored.covers("header", member):
            continue
        values = [ignored.without(side.get(member, MISSING), "header", member) for side in (left, right)]
        found += [_finding(member, d) for d in told(walk.compare(*values, (member,)))]
    return found


def told(differences: list[Difference]) -> list[Difference]:
    """Without digests that only repeat what is told beside them."""
    told = [d for d in differences if not d.pointer.endswith("/digest")]
    return told or differences


def _finding(member: str, found: Difference) -> Finding:
    section = _SECTION_OF.get(member, "header")
    place = canonical.pointer("header") + found.pointer
    return Finding(
        section, place, found.pointer, found.kind, found.left, found.right, right_pointer=found.right_pointer
    )
