"""Who sits at the three seats: an arm file as a document, and what of it identifies arm and roster."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.seats import SEATS
from replaykit.settings import TAU3_TEXT_1

_EXAMPLE = "see 'replaykit record --help' for an example"


class SeatConfig(BaseModel):
    """One seat of an arm file.

    Attributes:
        transport: A built-in name, an entry point's name, or ``module:attribute``.
        model: The model to ask for.
        base_url: Where; each wire's usual form.
        key_env: Name of the environment variable that holds the key; the key itself never stands in a file.
        headers, body: Extra headers and body fields, sent as they are.
        headers_env: Extra headers whose values are secrets, by the names of the environment variables that hold them.
        dialect: The transport's own switches.
        arguments: Arguments tau2 is configured with for this seat; they stand in its native requests. The transport
            settings are frozen, so nothing but ``temperature = 0.0`` can be asked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    transport: str = "openai-chat"
    model: str
    base_url: str | None = None
    key_env: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    headers_env: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)
    dialect: dict[str, Any] = Field(default_factory=dict)
    arguments: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})

    @field_validator("arguments")
    @classmethod
    def _frozen_settings(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments not in ({}, {"temperature": 0.0}):
            raise ValueError(f"the settings {TAU3_TEXT_1.version} are frozen, so this would not be sent: leave it out")
        return arguments

    @model_validator(mode="after")
    def _each_header_once(self) -> SeatConfig:
        names = [name.lower() for name in (*self.headers, *self.headers_env)]
        if len(set(names)) < len(names):
            raise ValueError("headers and headers_env name a header twice")
        return self

    def identity(self) -> dict:
        """What makes this seat the same in two runs: everything but place and key."""
        data = self.model_dump(exclude={"base_url", "key_env", "headers", "headers_env"})
        return data | {"headers": sorted(name.lower() for name in (*self.headers, *self.headers_env))}


class Arm(BaseModel):
    """An arm file: a learner, and the roster it plays under."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    learner: SeatConfig
    customer: SeatConfig
    judge: SeatConfig

    def seat(self, name: str) -> SeatConfig:
        """One seat's configuration."""
        return getattr(self, name)

    def header(self) -> dict:
        """``arm`` and ``roster`` as cassettes hold them, each with a digest of what identifies it."""
        learner, customer, judge = (self.seat(s).identity() for s in SEATS)
        return arm_header(self.name, learner, customer, judge)


def arm_header(name: str, learner: dict, customer: dict, judge: dict) -> dict:
    """``arm`` and ``roster`` of a cassette's header."""
    roster = {"customer": customer, "judge": judge}
    return {
        "arm": {"name": name, "learner": learner, "digest": canonical.digest(learner)},
        "roster": {**roster, "digest": canonical.digest(roster)},
    }


def parse(data: Any, default_name: str, place: str) -> Arm:
    """An arm from a TOML document.

    Args:
        default_name: Used when the document names none.
        place: For error messages.

    Raises:
        UsageError: naming the first member that is wrong.
    """
    if isinstance(data, dict):
        data = {"name": default_name, **data}
    try:
        return Arm.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UsageError(f"{place}: {where}: {first['msg'].removeprefix('Value error, ')} ({_EXAMPLE})") from error
