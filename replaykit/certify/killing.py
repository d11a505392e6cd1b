"""C45: an episode in a process of its own is killed between debit and answer, then resumed.

Run as a module it is that process: it asks the steps of the probe, one after another, into a cassette.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from replaykit.budget import Budget
from replaykit.certify.capture import Bench, Context
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.probe import Probe, Step, hello, twins, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.certify.views import Views
from replaykit.controls.faults import Fault
from replaykit.episode import TurnLost
from replaykit.errors import EvidenceError
from replaykit.gateway import Gateway
from replaykit.seats import SEATS
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

TORN = b'{"kind":"reply","n":3,"re'
_MORE = 2
_PATIENCE_S = 20.0


def probes(profile: Profile) -> list[Probe]:
    """Two answered requests, one that is never answered; after the resume two more are allowed and a third is not."""
    answered = [Step(f"before-{i}", "learner", hello("learner", f"Before {i}.")) for i in (1, 2)]
    killed = Step("killed", "learner", hello("learner", "Killed here."), fault=Fault("silence"), healthy=False)
    after = [Step(f"after-{i}", "learner", hello("learner", f"After {i}.")) for i in range(_MORE)]
    beyond = Step("beyond", "learner", hello("learner", "Beyond."), healthy=False, expect="refused")
    return [Probe("kill", (*answered, killed, *after, beyond), {}, perform=_perform)]


def _perform(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    steps = with_twins(probe)
    count = len(twins())
    with (
        Bench(f"{check}-{probe.name}", steps, probe.options, subject, context) as bench,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = Path(folder) / "killed.cassette.jsonl"
        for index in range(count):
            bench.ask(index)
        _kill(bench, subject, path, count)
        seen = bench.provider.request_count(bench.case, "learner") - 2
        with path.open("ab") as file:
            file.write(TORN)
        first = path.read_bytes()
        spent = _resume(bench, subject, path, count, seen)
        torn = sorted(p.read_bytes().decode("utf-8", "replace") for p in path.parent.iterdir() if ".torn" in p.name)
        texts = {"killed": first.decode(), "resumed": path.read_bytes().decode()}
        return bench.capture() | {
            "asked_before_kill": seen,
            "spent": spent,
            "torn": torn,
            "cassettes": bench.canary.value(texts),
        }


def _kill(bench: Bench, subject: Subject, path: Path, first: int) -> None:
    job = {
        "reference": subject.reference,
        "options": dict(subject.options),
        "path": str(path),
        "key": bench.canary.key,
        "urls": {s: bench.provider.base_url(bench.case, s, bench.context.profile.wire) for s in SEATS}
        if not subject.base_url
        else dict.fromkeys(SEATS, subject.base_url),
    }
    bench.provider.route = (bench.case, "learner")
    for i in (first, first + 1, first + 2):
        bench.note(i)
    command = [sys.executable, "-m", "replaykit.certify.killing"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child.stdin.write(json.dumps(job).encode())  # type: ignore[union-attr]
        child.stdin.close()  # type: ignore[union-attr]
        deadline = time.monotonic() + _PATIENCE_S
        while (
            bench.provider.request_count(bench.case, "learner") < 2 + 3
            and time.monotonic() < deadline
            and child.poll() is None
        ):
            time.sleep(0.01)
        time.sleep(0.05)
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        child.wait(5)


def _resume(bench: Bench, subject: Subject, path: Path, first: int, seen: int) -> int:
    """Go on behind the last whole record with a budget that leaves two requests over those that were sent."""
    spent = subject.layer.spent(subject.layer.read(path))
    bench.ledger.requests, bench.ledger.budget = spent, Budget(requests=seen + _MORE)
    with Journal.resume(path, Redactor((bench.canary.key,))) as journal:
        journal.note({"seam": "resume"})
        bench.journal(journal)
        bench.offset = -first
        for index in range(first + 3, len(bench.steps)):
            bench.ask(index)
        bench.journal(None)
    return spent


def judge(views: Views) -> None:
    """Judge the capture of a kill; both cassettes are read again.

    Raises:
        Failed, Unseen: see the codes of C45.
    """
    capture = views.capture
    if capture["asked_before_kill"] < 3:
        raise Unseen("the process was not killed while a request was under way")
    try:
        killed, resumed = (reader.parse(capture["cassettes"][k].encode()) for k in ("killed", "resumed"))
    except EvidenceError as error:
        raise Failed("chain_broken", str(error)) from error
    if len(killed.requests) < capture["asked_before_kill"]:
        raise Failed("debit_lost", f"{len(killed.requests)} of {capture['asked_before_kill']} requests are on record")
    if killed.requests[-1].outcome is not None or not killed.interrupted:
        raise Failed("chain_broken", "the interrupted request has an outcome")
    if capture["spent"] != len(killed.requests) or views.step("beyond").wire:
        raise Failed("budget_reset", f"{capture['spent']} requests counted as spent")
    if not any(TORN.decode() in text for text in capture["torn"]):
        raise Failed("torn_lost", "the torn tail is gone")
    if len(resumed.requests) < len(killed.requests) + _MORE:
        raise Failed("chain_broken", f"{len(resumed.requests)} requests after the resume")


def _main() -> None:
    from replaykit.certify import references

    job: dict[str, Any] = json.load(sys.stdin)
    subject = references.subject(job["reference"], job["options"])
    probe = probes(Profile("fast", "openai-chat"))[0]
    header = dict.fromkeys(("panel", "fleet_digest", "created_at", "controls"), "probe")
    header |= {k: {} for k in ("engine", "settings", "budget", "arm", "roster", "transports", "seeds", "created_by")}
    with (
        subject.layer.sender() as sender,
        subject.layer.journal(Path(job["path"]), header, Redactor((job["key"],))) as journal,
    ):
        sources = {s: subject.source(job["urls"][s], job["key"], sender) for s in SEATS}
        gateway: Gateway = subject.layer.gateway(sources, journal, subject.layer.ledger(Budget(), time.monotonic))
        for offset, step in enumerate(probe.steps[:3]):
            try:
                gateway.ask(step.request(offset + 1))
            except TurnLost:
                return


if __name__ == "__main__":
    _main()
