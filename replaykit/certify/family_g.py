"""G: from a recording to its replay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from replaykit.certify import known_panels
from replaykit.certify.capture import Bench, Context
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.panels import CHANGES, Episode, PanelViews, shared_provider
from replaykit.certify.probe import Probe, Step, hello, says, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.replaying import ENVIRONMENTS
from replaykit.certify.subject import Subject
from replaykit.certify.views import Views
from replaykit.controls.faults import Fault
from replaykit.controls.replies import Reply
from replaykit.errors import EvidenceError
from replaykit.seats import SeatFailure
from replaykit.store import reader

TAMPERS = ("flipped", "removed", "reordered", "foreign")


def _failing(profile: Profile) -> list[Probe]:
    failed = Step(
        "failed", "learner", hello("learner", "A fault."), fault=Fault("status", {"status": 500}), healthy=False
    )
    after = Step("after", "learner", hello("learner", "After it."), fault=says(Reply("After the fault.")))
    return [Probe("attempts", (failed, after), perform=_recorded)]


def _recorded(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """The steps with a cassette beside, which must hold every attempt in its order."""
    with Bench(f"{check}-{probe.name}", with_twins(probe), {"record": True}, subject, context) as bench:
        bench.ask_all()
        body = bench.capture()
        return body | {"cassette_text": bench.cassette_text()}


def _judge_recorded(views: Views) -> None:
    cassette = reader.parse(views.capture["cassette_text"].encode("utf-8", "surrogatepass"))
    wanted = [s for s in views.all if not s.data.get("skipped")]
    if len(cassette.requests) != len(wanted):
        raise Failed("attempts_missing", f"{len(cassette.requests)} of {len(wanted)} requests are in the cassette")
    for seen, recorded in zip(wanted, cassette.requests, strict=True):
        if seen.failure is not None and not isinstance(recorded.outcome, SeatFailure):
            raise Failed("attempts_missing", f"the failure of {seen.step.name} is not in the cassette")
        if views.profile.sees_wire and len(recorded.exchange_records) != len(
            [e for e in seen.wire if e.request_complete]
        ):
            raise Failed("attempts_missing", f"the exchanges of {seen.step.name}")
    if not any(s.failure for s in views.steps):
        raise Unseen("no fault was met")


def _panel_replays(views: PanelViews) -> None:
    replays = views.capture.get("replays") or []
    if len(replays) != len(ENVIRONMENTS):
        why = views.capture.get("replay_trouble") or "no reason given"
        raise Unseen(f"the cassette was not replayed in every environment ({why})")
    count, result = len(views.cassette.requests), views.cassette.result
    for said in replays:
        if said["status"] != "equal":
            raise Failed("replay_differs", f"{said['status']}: {said.get('first') or said.get('why')}")
        if said["requests"] != count or result is None or said["termination"] != result.termination:
            raise Failed("replay_differs", f"{said['requests']} requests, {said['termination']}")
        if said["final_db_hash"] != result.final_db_hash:
            raise Failed("replay_differs", "another final database")


def _panel_misses(views: PanelViews) -> None:
    if views.capture["fell_through"]:
        raise Failed("fell_through", f"{views.capture['fell_through']} requests reached the control during a replay")
    said = views.capture["misses"]
    for name, (_, _, pointer) in CHANGES.items():
        answer = said[name]
        if answer["status"] == "opened_socket":
            raise Failed("fell_through", name)
        if name == "left-over":
            if "missing_request" not in (answer.get("kinds") or ()):
                raise Failed("left_over_unreported", str(answer))
        elif answer["status"] == "equal" or not str(answer["first"]).startswith(pointer):
            raise Failed("miss_unreported", f"{name}: {answer}")


def _tampered(profile: Profile) -> list[Probe]:
    return [
        Probe("tampers", (Step("alive", "learner", hello("learner", "Before the tampering.")),), perform=_tampering)
    ]


def _tampering(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    with (
        shared_provider(context) as context,
        Bench(f"{check}-{probe.name}", with_twins(probe), {}, subject, context) as bench,
        tempfile.TemporaryDirectory() as name,
    ):
        bench.ask_all()
        folder, fleet = Path(name), known_panels.fleet()
        for panel, file in zip(fleet.panels, ("a", "b"), strict=True):
            path = folder / f"{file}.cassette.jsonl"
            Episode(panel, subject, context, known_panels.engine(subject), fleet, path, f"{check}-{file}").record()
        return bench.capture() | {"read": read_tampered(folder, subject)}


def read_tampered(folder: Path, subject: Subject) -> dict[str, Any]:
    """What reading says of the recording as it is, and of each tampered copy."""
    good, other = ((folder / f"{n}.cassette.jsonl").read_bytes().splitlines(keepends=True) for n in ("a", "b"))
    copies = {"good": good} | tampered(good, other)
    return {name: _read(folder / f"{name}.cassette.jsonl", b"".join(lines), subject) for name, lines in copies.items()}


def tampered(lines: list[bytes], other: list[bytes]) -> dict[str, list[bytes]]:
    """One flipped byte, one record removed, two records swapped, one record of another run."""
    at = len(lines) // 2
    flipped = bytearray(lines[at])
    flipped[len(flipped) // 2] ^= 1
    return {
        "flipped": [*lines[:at], bytes(flipped), *lines[at + 1 :]],
        "removed": [*lines[:at], *lines[at + 1 :]],
        "reordered": [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]],
        "foreign": [*lines[:at], other[min(at, len(other) - 2)], *lines[at + 1 :]],
    }


def _read(path: Path, data: bytes, subject: Subject) -> dict:
    path.write_bytes(data)
    try:
        cassette = subject.layer.read(path)
    except EvidenceError as error:
        return {"refused": True, "offset": error.offset, "why": error.reason}
    except (ValueError, KeyError, TypeError) as error:
        return {"refused": True, "offset": None, "why": f"{type(error).__name__}: {error}"}
    return {"refused": False, "requests": len(cassette.requests)}


def _judge_tampered(views: Views) -> None:
    read = views.capture["read"]
    if read["good"]["refused"]:
        raise Failed("good_refused", read["good"]["why"])
    for name in TAMPERS:
        if not read[name]["refused"]:
            others = [n for n in TAMPERS if read[n]["refused"]]
            raise Failed("splice_accepted" if name == "foreign" and others else "tamper_accepted", name)
        if read[name]["offset"] is None:
            raise Failed("tamper_unplaced", f"{name}: {read[name]['why']}")


def checks() -> list[Check]:
    """C46 to C48."""
    return [
        Check(
            "C46",
            "a recording replays to the same end anywhere, without a socket",
            "MUST",
            "panel",
            ("replay_differs", "attempts_missing"),
            _failing,
            _judge_recorded,
            _panel_replays,
        ),
        Check(
            "C47",
            "a replay names the first thing that differs, and never asks anybody",
            "MUST",
            "panel",
            ("fell_through", "miss_unreported", "left_over_unreported"),
            judge_panel=_panel_misses,
        ),
        Check(
            "C48",
            "a changed recording is refused before its first use",
            "MUST",
            "transport",
            ("tamper_accepted", "splice_accepted", "good_refused", "tamper_unplaced"),
            _tampered,
            _judge_tampered,
        ),
    ]
