"""Rewrite a cassette with one thing changed; the store's own journal signs it, so that it is a valid cassette."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

from replaykit.cassette import Cassette
from replaykit.scoring.tally import Tally
from replaykit.seats import SeatFailure, SeatReply, SeatRequest
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


def document(cassette: Cassette) -> dict:
    """A cassette as data that may be changed: header, turns of ``{"native", "outcome"}``, footer."""
    turns = [{"native": r.native.to_dict(), "outcome": r.outcome} for r in cassette.requests]
    turns = [{"native": copy.deepcopy(t["native"]), "outcome": _plain(t["outcome"])} for t in turns]
    return {"header": copy.deepcopy(cassette.header), "turns": turns, "footer": copy.deepcopy(cassette.footer)}


def rewritten(cassette: Cassette, path: Path, change: Callable[[dict], None], ends: bool = True) -> Cassette:
    """A valid cassette that differs by what ``change`` does to its document.

    Args:
        ends: Whether it gets a footer.
    """
    data = document(cassette)
    change(data)
    header = {key: value for key, value in data["header"].items() if key != "schema"}
    with Journal.create(path, header, Redactor()) as journal:
        for number, turn in enumerate(data["turns"], 1):
            journal.request(SeatRequest.from_dict(turn["native"], number))
            _outcome(journal, number, turn["outcome"])
        for turn, digest in cassette.states:
            journal.state(turn, digest)
        if ends:
            fields = {key: value for key, value in data["footer"].items() if key != "summary"}
            seats = [turn["native"]["seat"] for turn in data["turns"]]
            outcomes = [_whole(turn["outcome"]) for turn in data["turns"]]
            journal.close(fields | {"usage": Tally.of(zip(seats, outcomes, strict=True)).seats})
    return reader.read(path)


def _plain(outcome: object) -> dict | None:
    if isinstance(outcome, SeatReply):
        return {"reply": copy.deepcopy(outcome.to_dict())}
    if isinstance(outcome, SeatFailure):
        return {"failure": outcome.to_dict()}
    return None if outcome is None else {"end": copy.deepcopy(outcome)}


def _whole(outcome: dict | None) -> object:
    """The opposite of `_plain`."""
    if outcome is None or "end" in outcome:
        return outcome and outcome["end"]
    return SeatReply.from_dict(outcome["reply"]) if "reply" in outcome else SeatFailure.from_dict(outcome["failure"])


def _outcome(journal: Journal, number: int, outcome: dict | None) -> None:
    if outcome is None:
        return
    ((kind, value),) = outcome.items()
    if kind == "reply":
        journal.reply(number, SeatReply.from_dict(value))
    elif kind == "failure":
        journal.failure(number, SeatFailure.from_dict(value))
    else:
        journal.end(number, value)
