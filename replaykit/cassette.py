"""A cassette as a value: what one episode recorded. No IO; see `replaykit.pages` for how its records unfold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaykit.episode import Diagnostic, EpisodeResult, LostTurn
from replaykit.errors import EvidenceError
from replaykit.pages import UNFIT, Pages
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, WireExchange

VERSION = 1
SCHEMA = f"replaykit.cassette/{VERSION}"
SUFFIXES = (".cassette.jsonl", ".cassette.jsonl.zst")
HEADER_KEYS = (
    "panel",
    "fleet_digest",
    "engine",
    "settings",
    "budget",
    "roster",
    "arm",
    "seeds",
    "controls",
    "created_by",
    "created_at",
)
SUMMARY_KEYS = ("termination", "reward", "steps", "errors", "initial_db_hash", "final_db_hash", "seed")
DIGEST_LENGTH = 16  # hex digits of a request digest in a record: a check, since the request itself is there


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One seat request and what became of it.

    Attributes:
        number: Position among all requests of the episode, from 1.
        seat: ``learner``, ``customer`` or ``judge``.
        digest: Ordered digest of the native request as stored (after redaction).
        outcome: `SeatReply`, `SeatFailure`, a dict (what else ended it: a budget, a refusal), or None: interrupted.
        exchange_records: The packed wire exchanges with their positions in the file (see `exchanges`).
    """

    number: int
    seat: str
    digest: str
    outcome: SeatReply | SeatFailure | dict | None
    exchange_records: tuple[tuple[int, dict], ...]
    _pages: Pages = field(repr=False, compare=False)

    @property
    def native(self) -> SeatRequest:
        """The native request as tau2 built it (after redaction). Its lists are shared: read-only.

        Raises:
            EvidenceError: the record does not unfold to a native request.
        """
        try:
            return SeatRequest.from_dict(self._pages.natives.value(self.number), self.number)
        except UNFIT as error:
            raise EvidenceError(f"request {self.number} does not unfold to a native request: {error}") from error

    @property
    def exchanges(self) -> tuple[WireExchange, ...]:
        """The wire exchanges, rebuilt.

        Raises:
            EvidenceError: a body does not unfold.
        """
        try:
            return tuple(self._pages.exchange(position, record) for position, record in self.exchange_records)
        except UNFIT as error:
            raise EvidenceError(f"a wire exchange of request {self.number} does not unfold: {error}") from error


@dataclass(frozen=True, slots=True)
class Cassette:
    """Everything one episode recorded, verified.

    Attributes:
        header: The header's members (panel, engine, settings, seeds, ...).
        requests: In order of their numbers.
        states: ``(turn, digest)`` of the policy state after each learner turn.
        notes: Free records: seams of a resume or a fork, in order.
        footer: None when interrupted; else ``result`` (`EpisodeResult.to_dict`), ``policy_states`` and what the
            recorder added.
        interrupted: The recording did not end: no footer.
        digest: Hex SHA-256 over all bytes before the footer (over the whole records when interrupted).
        whole_bytes: Bytes of the whole records; what follows them is a torn tail.
        path: Where it came from.
    """

    header: dict
    requests: tuple[RecordedRequest, ...]
    states: tuple[tuple[int, str], ...]
    notes: tuple[dict, ...]
    footer: dict | None
    digest: str
    whole_bytes: int
    path: Path | None = None

    @property
    def interrupted(self) -> bool:
        """The recording has no footer."""
        return self.footer is None

    @property
    def panel(self) -> str:
        """The panel's id, e.g. ``airline/0``."""
        return self.header["panel"]

    @property
    def result(self) -> EpisodeResult | None:
        """How the episode ended, or None when interrupted.

        Raises:
            EvidenceError: the stored result has other members than an episode's result.
        """
        if self.footer is None:
            return None
        try:
            return episode_result(self.footer["result"])
        except (KeyError, TypeError, AttributeError) as error:
            raise EvidenceError(f"the stored result is not an episode's result: {error}", self.path) from error


def episode_result(data: Mapping[str, Any]) -> EpisodeResult:
    """Undo `EpisodeResult.to_dict`.

    Raises:
        KeyError, TypeError: the data is not a result.
    """
    lost = data["lost_turn"]
    diagnostics = [Diagnostic(d["name"], d.get("detail")) for d in data["diagnostics"]]
    return EpisodeResult(**{**data, "lost_turn": LostTurn(**lost) if lost else None, "diagnostics": diagnostics})


@dataclass(frozen=True, slots=True)
class CassetteSummary:
    """What the header and the footer say; the records between were not read.

    Attributes:
        header: As in `Cassette`.
        footer: The short footer, or None when interrupted: ``summary`` (termination, reward, steps, ...),
            ``fields`` (what the recorder added), ``counts`` by kind, ``digest``.
        size_bytes: Size of the file.
    """

    path: Path
    header: dict
    footer: dict | None
    size_bytes: int

    @property
    def interrupted(self) -> bool:
        """The recording has no footer."""
        return self.footer is None

    @property
    def panel(self) -> str:
        """The panel's id."""
        return self.header["panel"]

    @property
    def summary(self) -> dict:
        """Termination, reward, steps, errors, hashes, seed, diagnostic names; empty when interrupted."""
        return self.footer["summary"] if self.footer else {}


def summary_of(result: Mapping[str, Any]) -> dict:
    """What a footer says of a result (`EpisodeResult.to_dict`): `SUMMARY_KEYS`, why a turn was lost, diagnostics.

    Raises:
        KeyError, TypeError, AttributeError: the data is not a result.
    """
    summary = {key: result[key] for key in SUMMARY_KEYS if key in result}
    lost = result.get("lost_turn") or {}
    names = [diagnostic["name"] for diagnostic in result.get("diagnostics", ())]
    return {**summary, "lost_turn": lost.get("reason"), "diagnostics": names}
