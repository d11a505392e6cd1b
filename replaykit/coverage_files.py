"""Coverage from files: reads certificates and cassette headers, and writes the table as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from replaykit.coverage import Certified, Coverage, Recorded, coverage
from replaykit.errors import EvidenceError, ReplaykitError, UsageError
from replaykit.fleet import Fleet
from replaykit.store import certificate_file, reader, scan

_DEFAULTS = (Path("certification"), Path("cassettes"))


def table(fleet: Fleet, paths: Sequence[Path], now: str | None) -> Coverage:
    """The coverage of a fleet by what lies below some paths.

    Raises:
        UsageError: a named path does not exist.
        EvidenceError: a certificate or a cassette is damaged.
    """
    places = list(paths) or [p for p in _DEFAULTS if p.exists()]
    missing = [p for p in places if not p.exists()]
    if missing:
        raise UsageError(f"there is no {missing[0]}: name folders with certificates and cassettes")
    moment = now or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return coverage(fleet, _certified(places), _recorded(places), moment)


def lines(found: Coverage, by_panel: bool) -> Iterator[str]:
    """The table for a person."""
    for name in found.transports:
        counts = ", ".join(f"{n} {state}" for state, n in found.counts(name).items())
        yield f"{name:<22} {counts}" + (f"  ({found.why[name]})" if name in found.why else "")
    if not found.transports:
        yield "no certificate was found"
    recorded = sum(n for row in found.recorded.values() for n in row.values())
    yield f"{'recorded':<22} {recorded} cassettes on {len(found.recorded)} of {len(found.cells)} panels"
    if by_panel:
        for id_, row in found.cells.items():
            certified = "  ".join(f"{t}: {state}" for t, state in row.items())
            held = ", ".join(f"{t}: {n}" for t, n in found.recorded.get(id_, {}).items()) or "none"
            yield f"{id_:<12} {certified}  recorded {held}"


def _certified(places: Sequence[Path]) -> Iterator[Certified]:
    from replaykit.certify import subject

    for path in certificate_file.find(list(places)):
        statement, _, _ = certificate_file.read(path)
        try:
            digest = subject.load(statement["subject"][0]["name"].removeprefix("transport:"), {}).digest
        except (ReplaykitError, KeyError, IndexError, TypeError):
            digest = None
        yield Certified(str(path), statement, digest)


def _recorded(places: Sequence[Path]) -> Iterator[Recorded]:
    for path in reader.find([p for p in places if p.is_dir() or "cassette" in p.name]):
        try:
            header = scan.scan(path).header
            transport = (header["transports"].get("learner") or {}).get("transport", "unknown")
            yield Recorded(str(path), header["panel"], str(transport), header["fleet_digest"])
        except (KeyError, AttributeError, TypeError) as error:
            raise EvidenceError(f"the header lacks what the coverage reads ({error})", path) from error
