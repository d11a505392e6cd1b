"""The control provider of a certification: cases by name, and a route for gateways with one address."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from replaykit.controls.answering import Answered
from replaykit.controls.faults import Fault
from replaykit.controls.http import Request
from replaykit.controls.journal import Exchange
from replaykit.controls.server import ControlProvider

_BARE = re.compile(r"^/(?:v1(?:alpha|beta)?/)?(?:chat/completions|responses|messages|models/)")


class RoutedProvider(ControlProvider):
    """A control provider that also answers at its bare address, for the case and seat that `route` names.

    A gateway has one upstream address; the route is set by the certifier before each step and never seen on the wire.

    Attributes:
        route: Case and seat that the bare address stands for.
        fault_scale: Factor on the pauses of faults, on top of the provider's own.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.route: tuple[str, str] | None = None
        self.fault_scale = 1.0

    def _answering(self, request: Request, exchange: Exchange) -> tuple[Answered, Fault | None]:
        if self.route and _BARE.match(request.head.target):
            target = "/".join(("", *self.route)) + request.head.target
            request = replace(request, head=replace(request.head, target=target))
        answered, fault = super()._answering(request, exchange)
        return answered, _scaled(fault, self.fault_scale) if fault else None


def _scaled(fault: Fault, scale: float) -> Fault:
    """The fault with its pauses scaled; the journal keeps it as it was planned."""
    pauses = {k: v * scale for k, v in fault.options.items() if k.endswith("_s") and k != "retry_after_date_s" and v}
    return Fault(fault.kind, dict(fault.options) | pauses) if pauses and scale != 1.0 else fault
