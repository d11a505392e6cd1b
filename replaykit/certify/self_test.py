"""The self-test: every known-good passes everything, every known-bad is caught by its check, for its reason.

Work is split into jobs that name things only, so that several processes can share it.
"""

from __future__ import annotations

import contextlib
import json
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
from replaykit.store import atomic

GOOD = tuple(f"good {wire}" for wire in WIRES)
_THREADS = 4
_CHUNK = 8
_ALONE = ("C02",)
_SHIPPED = "self_test.json"
_FOLDERS = ("certify", "controls", "transports")
_MODULES = ("budget", "certificate", "gateway", "seats", "turn_rules")


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


def findings(some: Sequence[Job]) -> list[tuple[Job, Finding]]:
    """Perform and judge jobs of one subject; they share what is captured of its panels.

    Panels come only where the check's own probes passed: a universal known-bad fails before.
    """
    subject = subject_of(some[0].subject)
    terms = profile.of_subject(subject.identity(), "fast")
    context = capture.Context(secrets.token_bytes(16), terms)
    shared: list[dict] = []
    return [(job, _finding(catalogue.check(job.check), subject, context, shared)) for job in some]


def _finding(check: Check, subject: Subject, context: capture.Context, shared: list[dict]) -> Finding:
    captures = {
        probe.name: capture.perform(check.id, probe, subject, context) for probe in check.probes(context.profile)
    }
    found = check.evaluate(captures, context.profile)
    if check.judge_panel is not None and all(f.status == "PASS" for f in found):
        if not shared or (check.id == "C46" and "replays" not in shared[0]):
            shared[:] = _panel_captures(subject, context, replayed=check.id == "C46")
        panels_ = known_panels.fleet().panels
        found += [
            panel_finding(check, c, context.profile, p.judge.required, p.digests.tools)
            for p, c in zip(panels_, shared, strict=True)
        ]
    return combined(found)


def _panel_captures(subject: Subject, context: capture.Context, replayed: bool) -> list[dict]:
    fleet, engine = known_panels.fleet(), known_panels.engine(subject)
    with panels.temporary() as name:
        folder = Path(name)
        captures = [panels.capture(p, subject, context, engine, fleet, folder) for p in fleet.panels]
        if replayed and all("error" not in c for c in captures):
            replays = replaying.elsewhere(folder, subject, fleet.to_dict(), "script")
            for panel, one in zip(fleet.panels, captures, strict=True):
                one["replays"] = [said.get(panels.file_name(panel.id)) for said in replays]
    return captures


def panel_finding(check: Check, data: dict, terms: profile.Profile, judged: bool | None, tools: str | None) -> Finding:
    """One panel check on one panel's capture."""
    if "error" in data:
        return Finding("ERROR", "machinery", data["error"])
    return check.evaluate_panel(lambda: panels.PanelViews(data, terms, judged, tools))


def run(
    step: Callable[[], None] = lambda: None, processes: int | None = None, wanted: Iterable[Job] | None = None
) -> dict:
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
    found = dict(pair for job in alone for pair in findings([job]))
    bundles = _bundles(job for job in todo if job.check not in _ALONE)
    count = max(1, len(bundles) // _CHUNK)
    chunks = [bundles[i::count] for i in range(count)]
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


def _bundles(todo: Iterable[Job]) -> list[list[Job]]:
    """Jobs that share what they capture in one bundle, every other job in its own; what takes long comes first."""
    panel_checks = {c.id for c in catalogue.checks() if c.judge_panel is not None}
    bundles: dict[Any, list[Job]] = {}
    for job in todo:
        bundles.setdefault(job.subject if job.check in panel_checks else job, []).append(job)
    return list(bundles.values())


def _chunk(bundles: Sequence[Sequence[Job]]) -> list[tuple[Job, Finding]]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return [pair for pairs in pool.map(findings, bundles) for pair in pairs]


def report(found: dict[Job, Finding]) -> dict:
    """What the matrix says, as plain data.

    Returns:
        ``known_good`` (PASS or FAIL), ``alarms`` (known-good that failed), ``known_bad`` rows, ``universal`` passes
        by id, ``survivors``, ``idle_checks`` (that caught nothing), ``source_sha256`` and ``matrix_sha256``.
    """
    alarms = [
        f"{j.subject.removeprefix('good ')}/{j.check}: {f.status} {f.code} {f.where}".rstrip()
        for j, f in sorted_jobs(found)
        if j.subject in GOOD and f.status != "PASS"
    ]
    rows = []
    for bad in KNOWN_BADS:
        outcome = found.get(Job(bad.id, bad.targets))
        if outcome is not None:
            observed = outcome.code or outcome.status
            rows.append(
                {
                    "id": bad.id,
                    "targets": bad.targets,
                    "expected": bad.expected,
                    "observed": observed,
                    "killed": outcome.status == "FAIL" and observed == bad.expected,
                }
            )
    universal = {bad.id: sum(f.status == "PASS" for j, f in found.items() if j.subject == bad.id) for bad in UNIVERSAL}
    killed = {row["targets"] for row in rows if row["killed"]}
    body: dict[str, Any] = {
        "known_good": "FAIL" if alarms else "PASS",
        "known_good_wires": list(WIRES),
        "alarms": alarms,
        "universal": universal,
        "universal_passes": [
            f"{j.subject}/{j.check}" for j, f in sorted_jobs(found) if j.subject in universal and f.status == "PASS"
        ],
        "known_bad": rows,
        "survivors": [
            f"{r['id']} ({r['targets']}: expected {r['expected']}, observed {r['observed']})"
            for r in rows
            if not r["killed"]
        ],
        "idle_checks": [c.id for c in catalogue.checks() if c.id not in killed],
        "jobs": len(found),
        "planned_jobs": len(jobs()),
        "catalogue_sha256": catalogue.digest(),
        "source_sha256": source_digest(),
    }
    return body | {"matrix_sha256": canonical.digest({k: v for k, v in body.items() if k != "alarms"})}


def chunk_count() -> int:
    """How often a whole run tells of its progress."""
    return max(1, len(_bundles(job for job in jobs() if job.check not in _ALONE)) // _CHUNK)


def to_text(result: dict) -> str:
    """A report as a file's text."""
    return canonical.pretty(result)


def known(path: Path | None = None) -> dict | None:
    """A report made by exactly these sources, if it holds: from a file, the package, or the user's cache."""
    for place in [path] if path else (Path(__file__).with_name(_SHIPPED), _cache()):
        try:
            result = json.loads(place.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(result, dict) and result.get("source_sha256") == source_digest() and holds(result):
            return result
    return None


def keep(result: dict, path: Path | None = None) -> None:
    """Keep a report for later runs; where it cannot be kept, the next run tests again."""
    with contextlib.suppress(OSError):
        atomic.write_text(path or _cache(), to_text(result))


def _cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "replaykit" / f"self-test-{source_digest()[:24]}.json"


def sorted_jobs(found: dict[Job, Finding]) -> list[tuple[Job, Finding]]:
    """The findings in a fixed order."""
    return sorted(found.items(), key=lambda item: (item[0].subject, item[0].check))


def holds(result: dict) -> bool:
    """Whether a report is that of a whole self-test which went well."""
    clean = (
        not result["alarms"]
        and not result["survivors"]
        and not result["idle_checks"]
        and not any(result["universal"].values())
    )
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
    """SHA-256 over the sources that a certification runs on, names included."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(
        [*(p for d in _FOLDERS for p in (root / d).rglob("*.py")), *(root / f"{name}.py" for name in _MODULES)]
    )
    return canonical.digest([[str(p.relative_to(root)), canonical.sha256(p.read_bytes())] for p in files])
