"""The self-test: every known-good passes everything, every known-bad is caught by its check, for its reason.

Work is split into jobs that name things only, so that several processes can share it.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.certify import capture, catalogue, known_panels, panels, profile, replaying
from replaykit.certify import subject as subjects
from replaykit.certify.check import Check
from replaykit.certify.finding import Finding, combined
from replaykit.certify.known_bad import BY_ID, KNOWN_BADS, UNIVERSAL
from replaykit.certify.subject import WIRES, Subject

GOOD = tuple(f"good {wire}" for wire in WIRES)
_THREADS = 4
_CHUNK = 8
_ALONE = ("C02",)


@dataclass(frozen=True, slots=True)
class Job:
    """One check of one subject: ``good WIRE`` or the id of a known-bad."""

    subject: str
    check: str


def jobs() -> list[Job]:
    """The whole matrix; what takes long comes first."""
    ids = [c.id for c in catalogue.checks()]
    found = [Job(bad.id, bad.targets) for bad in KNOWN_BADS]
    found += [Job(name, id_) for name in (*GOOD, *(bad.id for bad in UNIVERSAL)) for id_ in ids]
    slow = ("C45", "C46", "C42", "C40", "C41", "C44", "C39", "C38")
    return sorted(found, key=lambda job: slow.index(job.check) if job.check in slow else len(slow))


def subject_of(name: str) -> Subject:
    """The subject of a job."""
    return subjects.load(name.removeprefix("good "), {}) if name.startswith("good ") else BY_ID[name].subject()


def finding(job: Job) -> Finding:
    """Perform and judge one job."""
    subject, check = subject_of(job.subject), catalogue.check(job.check)
    terms = profile.of_subject(subject.identity(), "fast")
    context = capture.Context(secrets.token_bytes(16), terms)
    captures = {probe.name: capture.perform(check.id, probe, subject, context) for probe in check.probes(terms)}
    found = check.evaluate(captures, terms)
    if check.judge_panel is not None and all(f.status == "PASS" for f in found):
        found += _panel_findings(check, subject, context)
    return combined(found)


def _panel_findings(check: Check, subject: Subject, context: capture.Context) -> list[Finding]:
    fleet, engine = known_panels.fleet(), known_panels.engine(subject)
    with panels.temporary() as name:
        folder = Path(name)
        captures = [panels.capture(p, subject, context, engine, fleet, folder) for p in fleet.panels]
        if check.id == "C46":
            replays = replaying.elsewhere(folder, subject, fleet.to_dict(), "script")
            for panel, one in zip(fleet.panels, captures, strict=True):
                one["replays"] = [said.get(panels.file_name(panel.id)) for said in replays]
    return [panel_finding(check, c, context.profile, p.judge.required, p.digests.tools) for p, c in zip(fleet.panels, captures, strict=True)]


def panel_finding(check: Check, data: dict, terms: profile.Profile, judged: bool | None, tools: str | None) -> Finding:
    """One panel check on one panel's capture."""
    if "error" in data:
        return Finding("ERROR", "machinery", data["error"])
    return check.evaluate_panel(lambda: panels.PanelViews(data, terms, judged, tools))


def run(step: Callable[[], None] = lambda: None, processes: int | None = None, wanted: Iterable[Job] | None = None) -> dict:
    """Run the matrix.

    Args:
        step: Told after every few jobs, for a progress display.
        processes: How many; None: one a core.
        wanted: Some jobs only, for tests; a part is never a whole self-test.

    Returns:
        The report: see `report`.
    """
    todo = list(jobs() if wanted is None else wanted)
    alone = [job for job in todo if job.check in _ALONE]
    found = {job: finding(job) for job in alone}
    shared = [job for job in todo if job.check not in _ALONE]
    chunks = [shared[i::max(1, len(shared) // _CHUNK)] for i in range(max(1, len(shared) // _CHUNK))]
    count = processes or os.cpu_count() or 1
    if count == 1 or "pytest" in sys.modules:
        for chunk in chunks:
            found |= dict(_chunk(chunk))
            step()
        return report(found)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_chunk, chunk) for chunk in chunks]):
            found |= dict(future.result())
            step()
    return report(found)


def _chunk(some: Sequence[Job]) -> list[tuple[Job, Finding]]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(zip(some, pool.map(finding, some), strict=True))


def report(found: dict[Job, Finding]) -> dict:
    """What the matrix says, as plain data.

    Returns:
        ``known_good`` (PASS or FAIL), ``alarms`` (known-good that failed), ``known_bad`` rows, ``universal`` passes
        by id, ``survivors``, ``idle_checks`` (that caught nothing), ``source_sha256`` and ``matrix_sha256``.
    """
    alarms = [f"{j.subject.removeprefix('good ')}/{j.check}: {f.status} {f.code} {f.where}".rstrip() for j, f in sorted_jobs(found) if j.subject in GOOD and f.status != "PASS"]
    rows = []
    for bad in KNOWN_BADS:
        outcome = found.get(Job(bad.id, bad.targets))
        if outcome is not None:
            observed = outcome.code or outcome.status
            rows.append({"id": bad.id, "targets": bad.targets, "expected": bad.expected, "observed": observed, "killed": outcome.status == "FAIL" and observed == bad.expected})
    universal = {bad.id: sum(f.status == "PASS" for j, f in found.items() if j.subject == bad.id) for bad in UNIVERSAL}
    killed = {row["targets"] for row in rows if row["killed"]}
    body: dict[str, Any] = {
        "known_good": "FAIL" if alarms else "PASS",
        "known_good_wires": list(WIRES),
        "alarms": alarms,
        "universal": universal,
        "universal_passes": [f"{j.subject}/{j.check}" for j, f in sorted_jobs(found) if j.subject in universal and f.status == "PASS"],
        "known_bad": rows,
        "survivors": [f"{r['id']} ({r['targets']}: expected {r['expected']}, observed {r['observed']})" for r in rows if not r["killed"]],
        "idle_checks": [c.id for c in catalogue.checks() if c.id not in killed],
        "jobs": len(found),
        "planned_jobs": len(jobs()),
        "catalogue_sha256": catalogue.digest(),
        "source_sha256": source_digest(),
    }
    return body | {"matrix_sha256": canonical.digest({k: v for k, v in body.items() if k != "alarms"})}


def sorted_jobs(found: dict[Job, Finding]) -> list[tuple[Job, Finding]]:
    """The findings in a fixed order."""
    return sorted(found.items(), key=lambda item: (item[0].subject, item[0].check))


def holds(result: dict) -> bool:
    """Whether a report is that of a whole self-test which went well."""
    clean = not result["alarms"] and not result["survivors"] and not result["idle_checks"] and not any(result["universal"].values())
    return clean and result["jobs"] == result["planned_jobs"]


def summary(result: dict) -> str:
    """One line for a person."""
    killed, total = sum(r["killed"] for r in result["known_bad"]), len(result["known_bad"])
    checks = len(catalogue.checks())
    parts = [
        f"{killed} of {total} known-bads caught by their check for their reason",
        f"{checks - len(result['idle_checks'])} of {checks} checks caught one",
        f"{len(result['alarms'])} false alarms on {len(WIRES)} known-good wires",
        f"{sum(result['universal'].values())} passes of {len(result['universal'])} universal known-bads",
    ]
    return ("self-test holds: " if holds(result) else "self-test FAILED: ") + ", ".join(parts)


def source_digest() -> str:
    """SHA-256 over the package's own sources, names included."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(p for p in root.rglob("*.py"))
    return canonical.digest([[str(p.relative_to(root)), canonical.sha256(p.read_bytes())] for p in files])
