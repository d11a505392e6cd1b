"""The fleet: the frozen index of all 164 panels, as a document. No IO; `store.fleet_file` reads and writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import comb
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from replaykit import canonical
from replaykit.errors import UsageError

SCHEMA = "replaykit.fleet/1"
RELIABILITY = "comb(successes, k) / comb(trials, k)"
DEFAULT_ROSTER = "upstream-default"
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_NAME = r"^[A-Za-z0-9_]{1,64}$"  # names of domains and scenarios are parts of file names


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Metric(_Frozen):
    """A panel's native metric."""

    reward_basis: list[str]
    evaluation_type: Literal["ALL"] = "ALL"
    reliability: str = RELIABILITY


class Judge(_Frozen):
    """Whether tau2 asks the judge, and about how many assertions in its one batched request."""

    required: bool
    assertions: int


class Population(_Frozen):
    """The scenarios and trials a panel draws from."""

    scenarios: list[str]
    trials: str = "native first trial"


class Seeds(_Frozen):
    """Case seed and the native first-trial seed it gives."""

    case: int
    trial: int


class PanelDigests(_Frozen):
    """SHA-256 of what a panel is made of."""

    scenario: str
    policy: str
    database: str
    tools: str


class Panel(_Frozen):
    """One base scenario with its native metric: an evaluation league of its own."""

    id: str
    domain: str = Field(pattern=_NAME)
    scenario: str = Field(pattern=_NAME)
    population: Population
    metric: Metric
    judge: Judge
    component: str
    roster: str
    seeds: Seeds
    reference_final_db_hash: str
    digests: PanelDigests

    @model_validator(mode="after")
    def _named_by_its_scenario(self) -> Panel:
        if self.id != f"{self.domain}/{self.scenario}":
            raise ValueError(f"the id {self.id!r} is not that of scenario {self.scenario} of {self.domain}")
        return self


class SeatIdentity(_Frozen):
    """A frozen customer or judge."""

    transport: str
    model: str
    arguments: dict[str, Any]


class Roster(_Frozen):
    """The frozen customer and judge identities under which arms are compared."""

    customer: SeatIdentity
    judge: SeatIdentity


class Source(_Frozen):
    """The source every engine is held to."""

    repository: str
    revision: str
    distribution: str
    version: str
    license: str


class DomainFacts(_Frozen):
    """What panels of a domain share."""

    database_hash: str
    write_tools: list[str]
    tools: list[str]


class Fleet(_Frozen):
    """The whole document."""

    schema_: Literal["replaykit.fleet/1"] = Field(alias="schema")
    source: Source
    settings: dict[str, Any]
    budget: dict[str, Any]
    domains: dict[str, DomainFacts]
    rosters: dict[str, Roster]
    panels: list[Panel]

    @model_validator(mode="after")
    def _each_panel_once(self) -> Fleet:
        if len({panel.id for panel in self.panels}) != len(self.panels):
            raise ValueError("a panel stands in it twice")
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document's canonical form; part of every cassette and certificate."""
        return canonical.digest(self.to_dict())

    def model_copy(self, **changes: Any) -> Fleet:
        """A copy works out its own digest."""
        copy = super().model_copy(**changes)
        copy.__dict__.pop("digest", None)
        return copy

    def to_dict(self) -> dict:
        """Plain data."""
        return self.model_dump(by_alias=True)

    def to_text(self) -> str:
        """The file's text: the same fleet gives the same bytes."""
        return canonical.pretty(self.to_dict())

    def panel(self, panel_id: str) -> Panel:
        """One panel.

        Raises:
            UsageError: there is no such panel.
        """
        for panel in self.panels:
            if panel.id == panel_id:
                return panel
        raise UsageError(
            f"there is no panel {panel_id!r}: panels are named like airline/0 or retail/113 "
            "(see 'replaykit fleet show')"
        )

    def select(self, selectors: Iterable[str]) -> list[Panel]:
        """Panels by id, domain, range or ``all``, in fleet order, each once.

        Args:
            selectors: ``airline/0``, ``retail``, ``retail/10-19``, ``all``, or several with commas.

        Raises:
            UsageError: a selector names no panel.
        """
        wanted: set[str] = set()
        for selector in (part.strip() for text in selectors for part in text.split(",")):
            wanted |= set(self._matching(selector))
        if not wanted:
            raise UsageError(
                "no panel was named: use an id such as airline/0, a domain, a range such as retail/10-19, or all"
            )
        return [p for p in self.panels if p.id in wanted]

    def _matching(self, selector: str) -> list[str]:
        if selector == "all":
            return [p.id for p in self.panels]
        domain, slash, scenario = selector.partition("/")
        inside = [p for p in self.panels if p.domain == domain]
        if not slash and inside:
            return [p.id for p in inside]
        span = _RANGE.fullmatch(scenario)
        if span and inside:
            found = [p.id for p in inside if p.scenario.isdecimal() and int(span[1]) <= int(p.scenario) <= int(span[2])]
            if found:
                return found
        return [self.panel(selector).id]


def parse(data: Any) -> Fleet:
    """A fleet from plain data.

    Raises:
        UsageError: not a fleet, or one of another schema.
    """
    try:
        return Fleet.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"not a fleet: {first['msg'].removeprefix('Value error, ')} at {canonical.pointer(*first['loc'])}"
        ) from error


def reliability(successes: int, trials: int, k: int) -> float | None:
    """``comb(successes, k) / comb(trials, k)``; None when k is larger than the number of trials."""
    return comb(successes, k) / comb(trials, k) if k <= trials else None


def differences(old: Fleet, new: Fleet) -> list[str]:
    """What differs between two fleets, as sentences; empty when they are equal."""
    a, b = old.to_dict(), new.to_dict()
    found = [
        f"{part}: {_where(a[part], b[part])}"
        for part in ("source", "settings", "budget", "domains", "rosters")
        if a[part] != b[part]
    ]
    before, after = ({p["id"]: p for p in side["panels"]} for side in (a, b))
    found += [f"{name}: only in the file" for name in before if name not in after]
    found += [f"{name}: not in the file" for name in after if name not in before]
    found += [
        f"{name}: {_where(before[name], after[name])}"
        for name in before
        if name in after and before[name] != after[name]
    ]
    if not found and list(before) != list(after):
        found.append("the panels stand in another order")
    return found


def _where(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    from replaykit import difference

    first = difference.first(old, new)
    return (
        f"{first.pointer} is {_short(first.left)} in the file and {_short(first.right)} from the engine"
        if first
        else "equal"
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 20 else text[:16] + "…"
