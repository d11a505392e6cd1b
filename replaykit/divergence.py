"""Where a replay departs from its cassette, as values, and the report of one replay."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

KINDS = (
    "request",  # a native request differs
    "extra_request",  # asked, but not recorded
    "missing_request",  # recorded, but not asked
    "simulation",  # the trajectory, the steps or the errors differ
    "initial_db_hash",
    "final_db_hash",
    "db_changes",  # the changed database rows differ
    "learner_state",
    "customer_state",
    "policy_state",
    "reward",
    "termination",
    "lost_turn",
    "reference_actions",
    "diagnostics",
    "wire_request",  # the transport builds another wire request now
    "wire_reply",  # the transport reads another reply in the recorded response now
    "raised",  # the engine raised where the recording did not
)


_SUGGESTION = re.compile(r"(unexpected keyword argument '[^']*')\. Did you mean '[^']*'\?")
SUGGESTING = "Python 3.13 adds a suggestion to the error text of an unexpected keyword argument"


def without_suggestion(text: str) -> str:
    """A text as Pythons before 3.13 write it; their error texts enter learner requests."""
    return _SUGGESTION.sub(r"\1", text)


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place where a replay departs.

    Attributes:
        kind: One of `KINDS`.
        seat, number: Of the request, where it is about one.
        pointer: JSON pointer to the difference.
        recorded, actual: Both values there.
        sentence: What a person needs to know.
        environment: Why this is the environment's doing and not the engine's, or None.
    """

    kind: str
    pointer: str
    recorded: Any
    actual: Any
    sentence: str
    seat: str | None = None
    number: int | None = None
    environment: str | None = None

    def to_dict(self) -> dict:
        """Plain data in a fixed key order."""
        return {
            name: getattr(self, name)
            for name in ("kind", "seat", "number", "pointer", "recorded", "actual", "sentence", "environment")
        }


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What replaying one cassette showed. It holds no clock: the same cassette gives the same bytes.

    Attributes:
        cassette: Path as given.
        status: ``equal``, ``diverged``, or ``incomplete`` (an interrupted recording, equal as far as it goes).
        checked: Names of the comparisons that were made, in order.
        divergences: All that were found; the first is the one to look at.
        notes: What differs in the environment without being a divergence, e.g. another engine.
        engine: Identity of the engine that replayed (`EngineIdentity.to_dict`).
    """

    cassette: str
    panel: str
    digest: str | None
    status: str
    requests: int
    checked: tuple[str, ...]
    divergences: tuple[Divergence, ...] = ()
    notes: tuple[str, ...] = field(default=())
    final_db_hash: str | None = None
    reward: float | None = None
    termination: str | None = None
    engine: dict | None = None

    def to_dict(self) -> dict:
        """Plain data in a fixed key order."""
        return {
            "cassette": self.cassette,
            "panel": self.panel,
            "digest": self.digest,
            "status": self.status,
            "requests": self.requests,
            "checked": list(self.checked),
            "divergences": [d.to_dict() for d in self.divergences],
            "notes": list(self.notes),
            "final_db_hash": self.final_db_hash,
            "reward": self.reward,
            "termination": self.termination,
            "engine": self.engine,
        }

    @classmethod
    def from_dict(cls, data: dict) -> ReplayReport:
        """Undo `to_dict`.

        Raises:
            KeyError, TypeError: the data is not a report.
        """
        divergences = tuple(Divergence(**d) for d in data["divergences"])
        return cls(
            **{**data, "divergences": divergences, "checked": tuple(data["checked"]), "notes": tuple(data["notes"])}
        )
