"""Rewrite a cassette after its differences were looked at: the recorded replies stay, what followed from them is new.

The new cassette is written beside the old one, replayed, and only then put in its place, in one step. It names the old
one's digest and the requests that changed; their wire exchanges belonged to other requests and are left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from replaykit import policy, policy_record, record, settings
from replaykit.budget import Ledger
from replaykit.cassette import DIGEST_LENGTH, Cassette
from replaykit.divergence import ReplayReport
from replaykit.engine.protocol import Engine
from replaykit.errors import Incomplete, PrefixDiverged
from replaykit.fleet import Fleet
from replaykit.gateway import Gateway
from replaykit.offline import offline
from replaykit.prompts import Prompts
from replaykit.recorded_terms import budget_of, limits, models
from replaykit.replay import CassetteSource, replay
from replaykit.request_digest import RequestDigests
from replaykit.seats import SEATS, SeatReply, SeatRequest, TransportRequest, WireExchange
from replaykit.store import reader
from replaykit.store.atomic import sync_folder
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


class _Source(CassetteSource):
    """Recorded replies, with the wire exchanges of requests that are asked as they were."""

    def __init__(self, cassette: Cassette, changed: list[int]) -> None:
        super().__init__(cassette.requests)
        self._cassette, self._changed = cassette, changed

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        if request.number not in self._changed and request.number <= len(self._cassette.requests):
            for exchange in self._cassette.requests[request.number - 1].exchanges:
                on_exchange(exchange)
        return super().ask(request, on_exchange)


class _Noting(record.Keeping):
    """Writes the requests as they are asked now, and notes which are not as recorded."""

    def __init__(self, journal: Journal, cassette: Cassette, changed: list[int]) -> None:
        super().__init__(journal)
        self._recorded, self._changed, self._digests = cassette.requests, changed, RequestDigests()

    def request(self, request: SeatRequest) -> None:
        known = self._recorded[request.number - 1].digest if request.number <= len(self._recorded) else ""
        if self._digests.of(request)[:DIGEST_LENGTH] != known[:DIGEST_LENGTH]:
            self._changed.append(request.number)
        super().request(request)


def rewrite(path: Path, engine: Engine, fleet: Fleet) -> ReplayReport:
    """Replay a cassette and put what came now in its place.

    Args:
        path: The cassette.

    Returns:
        The report of the old cassette: what was accepted. An equal one is left as it is.

    Raises:
        Incomplete: it is interrupted: there is nothing to compare with.
        PrefixDiverged: the episode goes where no reply was recorded; the file is untouched.
        EvidenceError: the file is damaged; it is untouched.
    """
    cassette = reader.read(path)
    if cassette.interrupted:
        raise Incomplete(f"{path} is interrupted: resume it before its result can be rewritten")
    report = replay(cassette, engine, fleet, str(path))
    if report.status == "equal":
        return report
    if len(report.checked) == 1 or any(d.kind in ("extra_request", "missing_request") for d in report.divergences):
        raise PrefixDiverged(f"{report.divergences[0].sentence}; no reply is recorded for that, so record {path} anew")
    new = path.with_name(f".new-{os.getpid()}-{path.name}")
    try:
        _write(cassette, new, engine, fleet, reader.is_compressed(path))
        again = replay(reader.read(new), engine, fleet, str(path))
        if again.status != "equal":
            raise PrefixDiverged(
                f"the rewritten {path} would not replay ({again.divergences[0].sentence}): it is left as it was"
            )
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        raise
    sync_folder(path.parent)
    return report


def _write(cassette: Cassette, new: Path, engine: Engine, fleet: Fleet, zstd: bool) -> None:
    panel = fleet.panel(cassette.panel)
    changed: list[int] = []
    header = {k: v for k, v in cassette.header.items() if k not in ("kind", "schema")}
    header |= {"engine": engine.identity.to_dict(), "fleet_digest": fleet.digest, "created_by": record.created_by()}
    header["rewritten"] = {"from": cassette.digest, "recorded_by": cassette.header["created_by"]}
    with Journal.create(new, header, Redactor(), zstd) as journal:
        for note in cassette.notes:
            journal.note(note)
        keeping = _Noting(journal, cassette, changed)
        rules, ledger = settings.of_header(cassette.header["settings"]), Ledger(budget_of(cassette), lambda: 0.0)
        gateway = Gateway(dict.fromkeys(SEATS, _Source(cassette, changed)), keeping, ledger, rules, lambda: 0.0)
        seed = cassette.header["seeds"]["trial"]
        with offline():
            ask = Prompts.of_header(cassette.header).asking(gateway.ask)
            result = engine.run(panel.domain, panel.scenario, seed, models(cassette), ask, limits(cassette))
        result = replace(result, diagnostics=[*result.diagnostics, *gateway.diagnostics])
        states = policy_record.final(engine, panel, result)
        for state in states["turns"][:-1]:
            journal.state(state["turn"], state["digest"])
        journal.note({"rewritten": {"changed_requests": changed, "wire_left_out": changed}})
        new = {
            "result": result.to_dict(),
            "policy_states": states,
            "policy_counts": policy.counts(states["final"]),
            "usage": keeping.tally.seats,
        }
        kept = {k: v for k, v in cassette.footer.items() if k not in (*new, "summary")}
        journal.close(new | kept)
