"""From captures to the rows of a certificate. Pure: the run and the verification use the same functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replaykit import certificate
from replaykit.certify import catalogue, panels
from replaykit.certify.capture import schedule
from replaykit.certify.check import Check
from replaykit.certify.finding import Finding, combined
from replaykit.certify.probe import with_twins
from replaykit.certify.profile import Profile
from replaykit.controls.answering import nonce
from replaykit.controls.identities import one_exchange
from replaykit.seats import SEATS

_WORST = ("ERROR", "NOT_EXERCISED", "FAIL", "WAIVED", "PASS", "NOT_APPLICABLE")


@dataclass
class Tally:
    """What is counted over all captures.

    Attributes:
        planned, delivered: Faults by kind, as scheduled and as the control's journal has them.
        requests: Whole requests by seat.
        broken: Harness checks that a capture broke, with where.
    """

    planned: dict[str, int] = field(default_factory=dict)
    delivered: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SEATS, 0))
    broken: dict[str, str] = field(default_factory=dict)

    def plan(self, kind: str) -> None:
        """One more fault in a schedule."""
        self.planned[kind] = self.planned.get(kind, 0) + 1

    def exchanges(
        self, wire: Iterable[dict], entropy: bytes, faults: Mapping[tuple[str, int], dict] | None, where: str
    ) -> None:
        """Count exchanges and hold them against what was fixed before the run."""
        for exchange in wire:
            if exchange["seat"] in SEATS and exchange["request_complete"]:
                self.requests[exchange["seat"]] += 1
            kind = (exchange["fault"] or {}).get("kind")
            if kind:
                self.delivered[kind] = self.delivered.get(kind, 0) + 1
            self._one(exchange, entropy, faults, where)

    def _one(self, exchange: dict, entropy: bytes, faults: Mapping[tuple[str, int], dict] | None, where: str) -> None:
        case, seat, ordinal = exchange["case"], exchange["seat"], exchange["ordinal"]
        if case is not None and exchange["nonce"] != nonce(entropy, case, seat, ordinal):
            self.broken.setdefault("H01", f"{where}: a nonce that is not the run's")
        if case is not None and faults is not None and exchange["fault"] != faults.get((seat, ordinal)):
            self.broken.setdefault("H01", f"{where}: request {ordinal} of the {seat} met another fault than planned")
        times = [
            exchange["times_us"][k]
            for k in ("first_byte", "request", "response_first", "response_last", "end")
            if k in exchange["times_us"]
        ]
        if times != sorted(times):
            self.broken.setdefault("H02", f"{where}: times that run backwards")
        healthy = exchange["fault"] is None and exchange["status"] == 200
        if healthy and exchange["fully_written"] and "200 OK" not in str(exchange["response"])[:16]:
            self.broken.setdefault("H00", f"{where}: an answer that is none")


@dataclass(frozen=True)
class Read:
    """Where captures come from: the run's memory or the evidence folder."""

    check: Callable[[str], Mapping[str, dict]]
    panel: Callable[[str], dict]


def check_row(check: Check, captures: Mapping[str, dict], profile: Profile, entropy: bytes, tally: Tally) -> dict:
    """The row of a check over its own probes; panels are added by `with_panels`."""
    if check.id in profile.not_applicable:
        return _row(check, Finding("NOT_APPLICABLE", None, profile.not_applicable[check.id]))
    probes = check.probes(profile)
    for probe in probes:
        faults = _faults(probe, captures.get(probe.name, {}), tally)
        capture = captures.get(probe.name) or {}
        tally.exchanges(capture.get("wire") or (), entropy, faults, f"{check.id}/{probe.name}")
    row = _row(check, combined(check.evaluate(captures, profile)) if probes else Finding("PASS"))
    if row["status"] == "PASS" and profile.sees_wire:
        for probe in probes:
            _count_log(captures[probe.name], tally, f"{check.id}/{probe.name}")
    return row


def panel_row(capture: dict, profile: Profile, entropy: bytes, tally: Tally, facts: Mapping[str, Any] | None) -> dict:
    """The row of a panel.

    Args:
        facts: ``judged`` and ``tools`` of the panel from the fleet; None: the fleet is not at hand.
    """
    findings, model, served = _panel_findings(capture, profile, facts or {})
    for part in (capture.get("episode") or (), (capture.get("settings") or {}).get("wire") or ()):
        tally.exchanges(part, entropy, None, capture["panel"])
    return {
        "id": capture["panel"],
        "model_requested": model,
        "model_served": served,
        "status": _worst([f.status for f in findings.values()]),
        "checks": {id_: f.status for id_, f in findings.items()},
        "codes": {id_: f.code for id_, f in findings.items() if f.status != "PASS"},
        "where": {id_: f.where for id_, f in findings.items() if f.status != "PASS"},
        "exercised": {id_: f.exercised for id_, f in findings.items()},
        "dropped_settings": list(capture.get("dropped_settings") or ()),
        "diagnostics": _diagnostics(capture),
        "waivers": [],
    }


def with_panels(rows: list[dict], panel_rows: list[dict]) -> list[dict]:
    """The check rows with what the panels say of each; a panel check without panels is not exercised."""
    scoped = {c.id for c in catalogue.checks() if c.judge_panel is not None}
    return [_joined(row, panel_rows) if row["id"] in scoped else row for row in rows]


def waived(rows: list[dict], panel_rows: list[dict], waivers: list[dict], today: str) -> list[dict]:
    """Excuse what live waivers excuse, in place; the waivers with how often each was used."""
    used = [w | {"used": 0} for w in waivers]
    for waiver in used:
        if waiver["expires"] < today:
            continue
        for row in panel_rows:
            if waiver["panel"] in ("*", row["id"]) and row["checks"].get(waiver["check"]) == "FAIL":
                row["checks"][waiver["check"]] = "WAIVED"
                row["waivers"] = [*row["waivers"], waiver["id"]]
                row["status"] = _worst(row["checks"].values())
                waiver["used"] += 1
        for row in rows:
            if row["id"] == waiver["check"] and row["status"] == "FAIL" and waiver["panel"] == "*":
                row["status"] = "WAIVED"
                waiver["used"] += 1
            elif row["id"] == waiver["check"] and row["status"] == "FAIL" and not _still_fails(row, panel_rows):
                row["status"] = "WAIVED"
    return used


def counts(panel_rows: list[dict]) -> dict[str, int]:
    """How many panels have each status."""
    return {s: sum(row["status"] == s for row in panel_rows) for s in certificate.STATUSES}


def harness(tally: Tally, self_test: Mapping[str, Any]) -> list[dict]:
    """The rows of the harness checks."""
    test = {
        "H03": not self_test["survivors"] and not any(self_test["universal"].values()),
        "H04": not self_test["idle_checks"],
        "H05": self_test["known_good"] == "PASS",
    }
    broken = {**tally.broken, **{id_: "the self-test" for id_, held in test.items() if not held}}
    return [
        {"id": id_, "title": title, "status": "FAIL" if id_ in broken else "PASS", "where": broken.get(id_, "")}
        for id_, title in catalogue.HARNESS.items()
    ]


def _still_fails(row: dict, panel_rows: list[dict]) -> bool:
    return row.get("own_status") == "FAIL" or any(p["checks"].get(row["id"]) == "FAIL" for p in panel_rows)


def _row(check: Check, finding: Finding) -> dict:
    return {
        "id": check.id,
        "title": check.title,
        "severity": check.severity,
        "scope": check.scope,
        "status": finding.status,
        "own_status": finding.status,
        "code": finding.code,
        "where": finding.where,
        "exercised": finding.exercised,
        "timing_ms": dict(finding.timing_ms),
    }


def _joined(row: dict, panel_rows: list[dict]) -> dict:
    statuses = [p["checks"].get(row["id"], "NOT_EXERCISED") for p in panel_rows]
    first = next((p for p in panel_rows if p["checks"].get(row["id"]) not in ("PASS", None)), None)
    status = _worst([row["status"], *statuses]) if statuses else "NOT_EXERCISED"
    said = (
        {"code": first["codes"].get(row["id"]), "where": f"{first['id']}: {first['where'].get(row['id'], '')}"}
        if first and row["status"] == "PASS"
        else {}
    )
    exercised = row["exercised"] + sum(p["exercised"].get(row["id"], 0) for p in panel_rows)
    return row | said | {"status": status, "exercised": exercised}


def _worst(statuses: Iterable[str]) -> str:
    return min(statuses, key=_WORST.index, default="NOT_EXERCISED")


def _faults(probe: Any, capture: dict, tally: Tally) -> dict[tuple[str, int], dict]:
    """The faults planned for a probe by seat and ordinal. Two probes put an address into theirs when they run."""
    planned = schedule(with_twins(probe), probe.options.get("again", 0))
    found = {}
    for seat, by_ordinal in planned.faults.items():
        for ordinal, fault in by_ordinal.items():
            tally.plan(fault.kind)
            found[seat, ordinal] = fault.to_dict()
    place = capture.get("other_origin")
    for key, fault in found.items():
        if fault["kind"] == "redirect" and place and key[1] in capture["other_ordinals"]:
            found[key] = {"kind": "redirect", "options": fault["options"] | {"target": place}}
    return found


def _count_log(capture: dict, tally: Tally, where: str) -> None:
    """H06: a check that passed saw as many requests at the control as the caller logged."""
    records = [r for r in capture["steps"] if not r.get("skipped")]
    logged = [e for r in records for e in r["exchanges"]]
    elsewhere = sum("elsewhere" in r for r in records)
    seen = sum(e["request_complete"] for e in capture["wire"])
    answered = sum(e["status"] is not None for e in logged)
    if not answered <= seen <= len(logged) + elsewhere:
        tally.broken.setdefault("H06", f"{where}: {len(logged)} requests logged, {seen} seen")


def _panel_findings(
    capture: dict, profile: Profile, facts: Mapping[str, Any]
) -> tuple[dict[str, Finding], str, list[str]]:
    scoped = [c for c in catalogue.checks() if c.judge_panel is not None and c.id not in profile.not_applicable]
    if "error" in capture:
        return {c.id: Finding("ERROR", "machinery", str(capture["error"])) for c in scoped}, "", []
    read: list[panels.PanelViews] = []

    def views() -> panels.PanelViews:
        if not read:
            read.append(panels.PanelViews(capture, profile, facts.get("judged"), facts.get("tools")))
        return read[0]

    findings = {c.id: c.evaluate_panel(views) for c in scoped}
    if not read:
        return findings, "", []
    replies = [r.outcome.model for r in read[0].cassette.requests if getattr(r.outcome, "model", None)]
    return findings, read[0].cassette.requests[0].native.model, sorted(set(replies))


def _diagnostics(capture: dict) -> list[str]:
    """Names of the episode's diagnostics worth a place in a row."""
    text = str(capture.get("cassette", ""))
    return ["judge.all_true_default"] if '"judge.all_true_default"' in text else []


def seat_labels() -> list[dict]:
    """The controls of the panels' episodes."""
    hosts = one_exchange(panels.NONCE_MEMBER)
    return [{"seat": s, "label": h.label, "sha256": h.digest, "control": True} for s, h in hosts.items()]
