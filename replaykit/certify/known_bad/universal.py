"""Known-bads that no check may let pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from replaykit import canonical
from replaykit.certify.known_bad.making import Exchanges, KnownBad, asking
from replaykit.certify.probe import ANSWERS
from replaykit.seats import SeatFailure, SeatReply, TransportRequest, WireExchange


def _canned(good: Callable, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
    """Right-looking replies without a wire."""
    answer = json.dumps({"results": [], "control": "0" * 32}) if request.seat == "judge" else ANSWERS[request.seat]
    return SeatReply(content=answer, finish_reason="stop", model=request.model, id="chatcmpl-" + "0" * 32)


def _always_raise(good: Callable, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
    raise SeatFailure("unreachable", "this transport refuses everything")


def _memoize() -> type:
    known: dict[str, SeatReply] = {}

    def ask(good: Callable, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
        key = canonical.digest([request.seat, request.model, request.messages, request.settings])
        if key not in known:
            known[key] = good(request, on_exchange)
        return known[key]

    return asking(ask)


def _lying_log(good: Callable, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
    """Reports other bytes than it sent."""

    def lie(exchange: WireExchange) -> None:
        on_exchange(replace(exchange, request=exchange.request | {"body": b"{}"}))

    return good(request, lie)


def _first_seat_only(good: Callable, request: TransportRequest, on_exchange: Exchanges) -> SeatReply:
    if request.seat != "learner":
        raise SeatFailure("unreachable", "this transport knows one seat")
    return good(request, on_exchange)


def universal() -> tuple[KnownBad, ...]:
    """U1 to U5; they target every check."""
    ways = {
        "U1_canned": asking(_canned),
        "U2_always_raise": asking(_always_raise),
        "U3_memoize": _memoize(),
        "U4_lying_log": asking(_lying_log),
        "U5_first_seat_only": asking(_first_seat_only),
    }
    return tuple(KnownBad(id_, "*", "*", transport) for id_, transport in ways.items())
