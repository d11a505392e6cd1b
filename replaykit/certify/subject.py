"""What is certified: a transport, and the parts of the seat layer that it runs through."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from replaykit import canonical, transports
from replaykit.budget import Ledger
from replaykit.certify import engine_less
from replaykit.controls.identities import Identity
from replaykit.errors import UsageError
from replaykit.gateway import Gateway
from replaykit.replay import replay
from replaykit.seats import ReplySource, SeatReply, TransportRequest, WireExchange
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.transports.sender import Sender

WIRES = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate")
# Loopback has no TLS; loading authorities for every probe would cost more than the probe.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def loopback_sender(**options: Any) -> Sender:
    """A sender as recordings use it, without the authorities of TLS."""
    return Sender(ssl_context=_NO_AUTHORITIES, **options)


def artefact_label(identity: Identity) -> dict:
    """How an artefact names a control."""
    return identity.to_dict()


@dataclass(frozen=True)
class Layer:
    """The seat layer around a transport; a known-bad may replace one part.

    Attributes:
        sender: Makes the shared sender.
        gateway: The gateway's class.
        ledger: The ledger's class.
        journal: Begins a cassette: path, header, redactor.
        read: Reads a cassette.
        replay: Replays a cassette: cassette, engine, fleet, name.
        spent: Requests that a resumed episode has spent already, from its cassette.
        label: Names a control in an artefact.
        rows: The rows of a result, from the rows that were measured.
        queue: Works through a queue of panels within a wall limit.
        native: What becomes of a native request before the gateway; itself.
        order: The order in which a scripted engine offers its tools; the list itself.
    """

    sender: Callable[..., Sender] = loopback_sender
    gateway: type[Gateway] = Gateway
    ledger: type[Ledger] = Ledger
    journal: Callable[..., Any] = Journal.create
    read: Callable[..., Any] = reader.read
    replay: Callable[..., Any] = replay
    spent: Callable[..., int] = lambda cassette: len(cassette.requests)
    label: Callable[[Identity], dict] = artefact_label
    rows: Callable[[Sequence[dict]], list[dict]] = list
    queue: Callable[..., list] = engine_less.queue
    native: Callable[[Any], Any] = lambda request: request
    order: Callable[[list], list] = list


@dataclass(frozen=True)
class Subject:
    """A transport to certify.

    Attributes:
        name: As the user named it; a hint only.
        reference: How another process finds it, see `replaykit.certify.references`.
        factory: See `replaykit.transports`.
        options: Keyword arguments of the factory beside address, model, key and sender.
        layer: The seat layer.
        base_url: Address of a gateway between the transport and the control provider, or None.
        model_prefix: Put before model names for libraries that demand it.
        wire: The wire it speaks with that prefix, or None: as its identity says.
    """

    name: str
    factory: Callable[..., Any]
    reference: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    layer: Layer = field(default_factory=Layer)
    base_url: str | None = None
    model_prefix: str = ""
    wire: str | None = None

    def source(self, base_url: str, key: str | None, sender: Any) -> ReplySource:
        """The transport at an address; model names come from the requests."""
        made = self.factory(base_url, None, key, sender=sender, **self.options)
        return _Prefixed(made, self.model_prefix) if self.model_prefix and sender is not None else made

    def identity(self) -> dict:
        """What the transport says of itself; without an address, which differs from run to run."""
        source = self.source("http://127.0.0.1:1/v1", None, None)
        described = source.identity() if hasattr(source, "identity") else {}
        return {k: v for k, v in described.items() if k not in ("base_url", "model")}

    @property
    def digest(self) -> str:
        """SHA-256 of code, options and address of the transport bundle."""
        return canonical.digest([self.identity(), dict(self.options), self.base_url or ""])


class _Prefixed:
    """A source whose requests name their model as its library demands."""

    def __init__(self, source: ReplySource, prefix: str) -> None:
        self._source, self._prefix = source, prefix

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """Ask with the prefix."""
        return self._source.ask(replace(request, model=self._prefix + request.model), on_exchange)


def load(name: str, options: Mapping[str, Any], base_url: str | None = None) -> Subject:
    """A subject by the name of its transport.

    Raises:
        UsageError: there is no such transport, or it takes no such options.
    """
    factory = transports.load(name)
    subject = Subject(
        name,
        factory,
        f"transport {name}",
        dict(options),
        base_url=base_url,
        model_prefix="openai/" if name == "litellm" else "",
        wire="openai-chat" if name == "litellm" else None,
    )
    try:
        subject.identity()
    except TypeError as error:
        raise UsageError(
            f"the transport {name} cannot be made as a factory of transports is called: {error}"
        ) from error
    return subject
