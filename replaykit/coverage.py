"""What is qualified, recorded, stale or missing, panel by panel and transport by transport. No IO: certificates and
cassette headers are given in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replaykit.certificate import VERDICTS
from replaykit.fleet import Fleet

STATES = ("qualified", "passed", "waived", "failed", "incomplete", "stale", "missing")


@dataclass(frozen=True, slots=True)
class Certified:
    """One certificate as the coverage sees it.

    Attributes:
        name: Where it came from.
        statement: The statement.
        subject_digest: Digest of the transport as installed here; None: not installed.
    """

    name: str
    statement: Mapping[str, Any]
    subject_digest: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One cassette's header: its panel, the transport of its learner, the fleet it was recorded with."""

    name: str
    panel: str
    transport: str
    fleet_digest: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The table.

    Attributes:
        transports: Column names.
        cells: Panel id -> transport -> one of `STATES`.
        why: Transport -> why its certificate is stale, if it is.
        recorded: Panel id -> transport -> number of cassettes; ``stale`` counts those of another fleet.
    """

    transports: tuple[str, ...]
    cells: Mapping[str, Mapping[str, str]]
    why: Mapping[str, str]
    recorded: Mapping[str, Mapping[str, int]]

    def counts(self, transport: str) -> dict[str, int]:
        """How many panels have each state under a transport."""
        column = [row[transport] for row in self.cells.values()]
        return {state: column.count(state) for state in STATES if state in column}

    def to_dict(self) -> dict:
        """Plain data."""
        return {
            "transports": {t: {"panels": self.counts(t), "stale_because": self.why.get(t)} for t in self.transports},
            "panels": [
                {"id": id_, "certified": dict(row), "recorded": dict(self.recorded.get(id_, {}))}
                for id_, row in self.cells.items()
            ],
        }


def coverage(fleet: Fleet, certificates: Iterable[Certified], cassettes: Iterable[Recorded], now: str) -> Coverage:
    """The table for a fleet.

    Args:
        certificates: Of several for one transport the highest version, then the latest, counts.
        now: ``YYYY-MM-DDTHH:MM:SSZ``: expired certificates are stale.
    """
    latest: dict[str, Certified] = {}
    for one in sorted(certificates, key=_age):
        latest[_transport(one.statement)] = one
    transports = tuple(sorted(latest))
    why = {t: reason for t, one in latest.items() if (reason := stale_because(one, fleet, now))}
    rows = {t: {row["id"]: row for row in one.statement["predicate"]["panels"]["rows"]} for t, one in latest.items()}
    verdicts = {t: one.statement["predicate"]["verdict"] for t, one in latest.items()}
    cells = {p.id: {t: _state(rows[t].get(p.id), verdicts[t], t in why) for t in transports} for p in fleet.panels}
    return Coverage(transports, cells, why, _recorded(fleet, cassettes))


def stale_because(one: Certified, fleet: Fleet, now: str) -> str | None:
    """Why a certificate says nothing about today, or None."""
    predicate = one.statement["predicate"]
    if predicate["panels"]["fleet_sha256"] != fleet.digest:
        return "made for another fleet"
    if one.subject_digest is None:
        return "the transport is not installed here"
    if one.statement["subject"][0]["digest"]["sha256"] != one.subject_digest:
        return "the transport's code or options changed"
    if predicate["certificate"]["expires_at"] <= now:
        return f"expired at {predicate['certificate']['expires_at']}"
    return None


def _transport(statement: Mapping[str, Any]) -> str:
    return statement["subject"][0]["name"].removeprefix("transport:")


def _age(one: Certified) -> tuple:
    stated = one.statement["predicate"]["certificate"]
    return stated["version"], stated["issued_at"], one.name


def _state(row: Mapping[str, Any] | None, verdict: str, stale: bool) -> str:
    if row is None:
        return "missing"
    if stale:
        return "stale"
    if row["status"] in ("FAIL", "WAIVED"):
        return {"FAIL": "failed", "WAIVED": "waived"}[row["status"]]
    if row["status"] != "PASS" or verdict not in VERDICTS[:2]:
        return "incomplete"
    return "qualified" if verdict == "QUALIFIED" else "passed"


def _recorded(fleet: Fleet, cassettes: Iterable[Recorded]) -> dict[str, dict[str, int]]:
    counted: dict[str, dict[str, int]] = {}
    for cassette in cassettes:
        column = cassette.transport if cassette.fleet_digest == fleet.digest else "stale"
        row = counted.setdefault(cassette.panel, {})
        row[column] = row.get(column, 0) + 1
    return counted
