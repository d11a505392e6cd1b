"""Export the wire: a cassette's HTTP as a vcrpy cassette or as an HTTP archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from replaykit._version import __version__
from replaykit.cassette import Cassette, RecordedRequest
from replaykit.errors import UsageError
from replaykit.interchange import har, vcr_file
from replaykit.interchange.vcr_file import Interaction
from replaykit.recorded_terms import models
from replaykit.seats import SEATS, WireExchange
from replaykit.store import atomic, reader


def export_vcr(path: Path, out: Path) -> tuple[int, int]:
    """Write a vcrpy cassette with every response of a cassette, in the order in which they came.

    Returns:
        How many interactions were written, and how many exchanges were left out: those without a whole response, and
        those whose body was withheld.

    Raises:
        UsageError: the cassette holds no wire, or the file exists.
    """
    cassette = reader.read(path)
    _check_new(out)
    rows = list(_exchanges(cassette))
    whole = [Interaction(e.request, e.response) for r, e, told in rows if e.response is not None and told]
    if not whole:
        raise UsageError(f"{path} holds no HTTP response: it was imported, or recorded by a source without a wire")
    _write(out, vcr_file.text(whole, _about(cassette)))
    return len(whole), len(rows) - len(whole)


def export_har(path: Path, out: Path) -> int:
    """Write a HAR file with every exchange of a cassette, failed ones included. Returns how many.

    Raises:
        UsageError: the cassette holds no wire, or the file exists.
    """
    cassette = reader.read(path)
    _check_new(out)
    rows = [(r.seat, r.number, e) for r, e, _ in _exchanges(cassette)]
    if not rows:
        raise UsageError(f"{path} holds no HTTP exchange: it was imported, or recorded by a source without a wire")
    about = {"version": __version__, "started": str(cassette.header["created_at"]), "title": cassette.panel}
    _write(out, json.dumps(har.document(rows, about), ensure_ascii=False, indent=1) + "\n")
    return len(rows)


def _exchanges(cassette: Cassette) -> Iterator[tuple[RecordedRequest, WireExchange, bool]]:
    """Every exchange with its request, and whether its body is there."""
    for request in cassette.requests:
        for exchange, (_, packed) in zip(request.exchanges, request.exchange_records, strict=True):
            body = (packed["response"] or {}).get("body")
            yield request, exchange, not (isinstance(body, dict) and "withheld" in body)


def _about(cassette: Cassette) -> dict:
    asked, header = models(cassette), cassette.header
    named = {seat: list(getattr(asked, seat)) for seat in SEATS}
    seeds = {key: header["seeds"][key] for key in ("case", "trial")}
    version = header["settings"].get("version") if isinstance(header["settings"], dict) else None
    return {"panel": cassette.panel, "seeds": seeds, "models": named, "settings": version, "digest": cassette.digest}


def _check_new(out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} exists and is never overwritten: choose another name")


def _write(out: Path, text: str) -> None:
    try:
        atomic.write_bytes(out, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
