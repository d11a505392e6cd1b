"""Put reply sources on the three seats: from an arm file, or from the labelled controls of a loopback provider."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replaykit import transports
from replaykit.arm import Arm, SeatConfig, arm_header
from replaykit.controls import identities
from replaykit.controls.server import ControlProvider
from replaykit.engine import pins
from replaykit.engine.protocol import Scenario, SeatModels
from replaykit.errors import UsageError
from replaykit.seats import SEATS, ReplySource
from replaykit.transports.sender import Sender
from replaykit.transports.wire import names_secret

CONTROLS = ("one-exchange", "reference")
CONTROL_KEY = "control-key-000000"


@dataclass(frozen=True, slots=True)
class Seating:
    """Who answers in one episode, and how a cassette names them.

    Attributes:
        sources: Reply source by seat.
        models: What tau2 is configured with.
        header: ``arm``, ``roster``, ``controls`` and ``transports`` of the cassette's header.
        secrets: Values that may appear in no file.
    """

    sources: Mapping[str, ReplySource]
    models: SeatModels
    header: dict
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def arm_name(self) -> str:
        """Short name of the arm."""
        return self.header["arm"]["name"]


def from_arm(
    arm: Arm, sender: Sender, environment: Mapping[str, str] = os.environ, seats: Sequence[str] = SEATS
) -> Seating:
    """Seats as an arm file says.

    Args:
        seats: Those that get a source; the others are answered from outside.

    Raises:
        UsageError: a transport is unknown or an environment variable is not set.
    """
    keys = {seat: _key(arm.seat(seat), seat, environment) for seat in seats}
    hidden = {seat: _hidden_headers(arm.seat(seat), seat, environment) for seat in seats}
    sources = {seat: _source(arm.seat(seat), keys[seat], hidden[seat], sender) for seat in seats}
    header = arm.header() | {"controls": None, "transports": {seat: _identity(sources[seat]) for seat in seats}}
    models = SeatModels(*[(arm.seat(seat).model, dict(arm.seat(seat).arguments)) for seat in SEATS])
    secrets = [key for key in keys.values() if key]
    for seat in seats:
        secrets += [bare for value in hidden[seat].values() for bare in (value, value.removeprefix("Bearer "))]
        secrets += _credentials(arm.seat(seat))
    return Seating(sources, models, header, tuple(dict.fromkeys(secrets)))


def from_controls(kind: str, scenario: Scenario, case: str, provider: ControlProvider, sender: Sender) -> Seating:
    """The labelled controls ``one-exchange`` or ``reference`` at a loopback provider, asked over real HTTP.

    Args:
        case: A name for this episode at the provider.

    Raises:
        UsageError: there are no such controls.
    """
    if kind not in CONTROLS:
        raise UsageError(f"there are no controls {kind!r}: use one of {', '.join(CONTROLS)}")
    hosts = identities.one_exchange() if kind == "one-exchange" else identities.reference(_control_scenario(scenario))
    return from_identities(kind, hosts, case, provider, sender)


def from_identities(
    name: str, hosts: Mapping[str, identities.Identity], case: str, provider: ControlProvider, sender: Sender
) -> Seating:
    """Any set of labelled controls, asked over real HTTP.

    Args:
        name: Name of the set; it becomes the arm's name.
        hosts: Who sits at each seat.
        case: A name for this episode at the provider.
    """
    provider.add_case(case, hosts, key=CONTROL_KEY)
    factory = transports.load("openai-chat")
    sources = {seat: factory(provider.base_url(case, seat), pins.DEFAULT_MODEL, CONTROL_KEY, sender) for seat in SEATS}
    named = {
        seat: {"transport": "openai-chat", "model": pins.DEFAULT_MODEL, "control": hosts[seat].to_dict()}
        for seat in SEATS
    }
    header = arm_header(
        name, named["learner"], _roster_part(hosts["customer"], name), _roster_part(hosts["judge"], name)
    )
    header |= {"controls": name, "transports": {seat: _without_place(_identity(sources[seat])) for seat in SEATS}}
    models = SeatModels(*[(pins.DEFAULT_MODEL, dict(pins.DEFAULT_ARGUMENTS)) for _ in SEATS])
    return Seating(sources, models, header, (CONTROL_KEY,))


def _roster_part(host: identities.Identity, kind: str) -> dict:
    """A control in a roster: its label and kind; what it says depends on the panel and is not part of the roster."""
    return {"transport": "openai-chat", "model": pins.DEFAULT_MODEL, "control": host.label, "set": kind}


def _control_scenario(scenario: Scenario) -> identities.Scenario:
    actions = tuple(identities.Action(a["name"], a["arguments"]) for a in scenario.reference_actions)
    return identities.Scenario(actions, scenario.communicate_info, scenario.assertions)


def _key(config: SeatConfig, seat: str, environment: Mapping[str, str]) -> str | None:
    return None if config.key_env is None else _variable(config.key_env, f"the {seat}'s key", environment)


def _hidden_headers(config: SeatConfig, seat: str, environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: _variable(variable, f"the {seat}'s header {name}", environment)
        for name, variable in config.headers_env.items()
    }


def _variable(name: str, what: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name)
    if not value:
        raise UsageError(f"{what} is to come from the environment variable {name}, which is not set")
    return value


def _credentials(config: SeatConfig) -> list[str]:
    """Values of the extra headers whose names speak of a credential: a provider may echo them."""
    return [v.removeprefix("Bearer ") for name, v in config.headers.items() if names_secret(name)]


def _source(config: SeatConfig, key: str | None, hidden: Mapping[str, str], sender: Sender) -> ReplySource:
    factory = transports.load(config.transport)
    given = (("headers", config.headers | hidden), ("body_fields", config.body), ("dialect", config.dialect))
    options = {name: value for name, value in given if value}
    for value in hidden.values():
        sender.secrets.keep(value)
        sender.secrets.keep(value.removeprefix("Bearer "))
    if config.base_url is None:
        raise UsageError(f"the transport {config.transport} needs a base_url in the arm file")
    return factory(config.base_url, config.model, key, sender, **options)


def _identity(source: ReplySource) -> dict:
    describe = getattr(source, "identity", None)
    return describe() if describe else {"name": type(source).__name__}


def _without_place(identity: dict) -> dict:
    """A control's port is new in every run and says nothing."""
    return {k: v for k, v in identity.items() if k != "base_url"}
