"""Transports and seat layers that are wrong on purpose: each check has at least one that it must catch."""

from __future__ import annotations

from replaykit.certify.known_bad import layers, replies, requests, universal
from replaykit.certify.known_bad.making import KnownBad

KNOWN_BADS: tuple[KnownBad, ...] = (*requests.known_bads(), *replies.known_bads(), *layers.known_bads())
UNIVERSAL: tuple[KnownBad, ...] = universal.universal()
BY_ID: dict[str, KnownBad] = {bad.id: bad for bad in (*KNOWN_BADS, *UNIVERSAL)}

__all__ = ["BY_ID", "KNOWN_BADS", "UNIVERSAL", "KnownBad"]
