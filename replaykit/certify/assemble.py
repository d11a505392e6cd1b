"""From evidence to a statement. What verification recomputes is made here by the same function, `measured`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from replaykit import canonical, certificate
from replaykit._version import __version__
from replaykit.budget import Budget
from replaykit.certify import catalogue, profile, rows, self_test
from replaykit.certify.replaying import ENVIRONMENTS
from replaykit.errors import EvidenceError
from replaykit.fleet import Fleet
from replaykit.store.certificate_file import Evidence

if TYPE_CHECKING:
    from replaykit.certify.run import Order

_FAMILY_CLAIMS = dict(zip("ABCDEFGH", certificate.CLAIMS, strict=True))
_FAMILIES = (
    ("A", 1, 4),
    ("B", 5, 11),
    ("C", 12, 18),
    ("D", 19, 27),
    ("E", 28, 37),
    ("F", 38, 45),
    ("G", 46, 48),
    ("H", 49, 50),
)
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "PYTHONHASHSEED", "TZ", "LC_ALL")
LIMITS = (
    "a transport that behaves well on loopback only cannot be caught here",
    "loopback has no TLS",
    "the wall limit of a queue is scaled in every mode",
    "streams are not read: the control provider offers none",
)


def terms(order: Order) -> dict:
    """What is fixed before the run; its digest is the arming digest."""
    return {
        "subject": {
            "name": order.subject.name,
            "sha256": order.subject.digest,
            "identity": order.subject.identity(),
            "options": dict(order.subject.options),
        },
        "gateway": order.subject.base_url is not None,
        "profile": order.profile.to_dict(),
        "catalogue_sha256": catalogue.digest(),
        "fleet_sha256": order.fleet.digest,
        "panels": [p.id for p in order.panels],
        "engine": order.engine.identity.to_dict(),
        "waivers": order.waivers,
        "source_sha256": self_test.source_digest(),
    }


def facts_of(fleet: Fleet | None) -> dict[str, dict]:
    """What the fleet says of each panel that the captures can be held against."""
    return {p.id: {"judged": p.judge.required, "tools": p.digests.tools} for p in fleet.panels} if fleet else {}


def measured(
    plan: Mapping[str, Any], evidence: Evidence, test: Mapping[str, Any], facts: Mapping[str, dict], today: str
) -> dict:
    """Everything of a predicate that follows from the evidence.

    Raises:
        EvidenceError: a part is missing or damaged, or the plan is no plan.
    """
    try:
        terms_, entropy = plan["terms"], bytes.fromhex(plan["entropy"])
        sheet = profile.Profile.from_dict(terms_["profile"])
        selected, waivers = list(terms_["panels"]), list(terms_["waivers"])
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceError(f"the plan is no plan: {error}", evidence.folder) from error
    tally = rows.Tally()
    check_rows = []
    for check in catalogue.checks():
        captures = {} if check.id in sheet.not_applicable else evidence.read(f"checks/{check.id}")
        check_rows.append(rows.check_row(check, captures, sheet, entropy, tally))
    panel_rows = [
        rows.panel_row(evidence.read(part_name(id_)), sheet, entropy, tally, facts.get(id_)) for id_ in selected
    ]
    check_rows = rows.with_panels(check_rows, panel_rows)
    used = rows.waived(check_rows, panel_rows, waivers, today)
    return {
        "harness": rows.harness(tally, test),
        "panels": {
            "fleet_sha256": terms_["fleet_sha256"],
            "selected": selected,
            "total": len(selected),
            "counts": rows.counts(panel_rows),
            "rows": panel_rows,
        },
        "checks": check_rows,
        "faults": {k: {"planned": n, "delivered": tally.delivered.get(k, 0)} for k, n in sorted(tally.planned.items())},
        "wire_requests": tally.requests,
        "waivers": used,
        "claims": claims(check_rows),
        "budgets": _budgets(check_rows, sheet),
        "replay": _replay(panel_rows),
    }


def claims(check_rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The properties whose checks all passed or do not apply."""
    status = {row["id"]: row["status"] for row in check_rows}
    held = []
    for family, first, last in _FAMILIES:
        if all(status.get(f"C{n:02d}") in ("PASS", "NOT_APPLICABLE") for n in range(first, last + 1)):
            held.append(_FAMILY_CLAIMS[family])
    return held


def statement(order: Order, plan: dict, evidence: Evidence, ran: tuple[datetime, datetime]) -> dict:
    """The whole statement, unsealed."""
    began, ended = ran
    today = stamp(ended)[:10]
    found = measured(plan, evidence, order.self_test, facts_of(order.fleet), today)
    manifest, files, size = evidence.write_manifest()
    version, previous = _succession(order.previous)
    entropy = bytes.fromhex(plan["entropy"])
    predicate = {
        "certificate": {
            "schema": certificate.SCHEMA,
            "id": "",
            "version": version,
            "supersedes": previous,
            "issued_at": stamp(ended),
            "not_before": stamp(ended),
            "expires_at": stamp(expires(ended, order.days, order.waivers)),
            "expiry_rule": f"after {order.days} days or with a waiver; void when subject, profile or fleet change",
        },
        "assurance": "self_attested",
        "signed": "a signature, if any, is in the envelope around this statement; it says who spoke, not that it is so",
        "issuer": {
            "tool": "replaykit",
            "version": __version__,
            "source_sha256": plan["terms"]["source_sha256"],
            "signer": None,
        },
        "claims": found["claims"],
        "non_claims": list(certificate.NON_CLAIMS),
        "profile": plan["terms"]["profile"] | {"sha256": canonical.digest(plan["terms"]["profile"])},
        "requirements": {
            "set": catalogue.ID,
            "catalogue_sha256": catalogue.digest(),
            "checks": [c.id for c in catalogue.checks()],
            "not_scored": [],
        },
        "control": {
            "provider": {"version": __version__},
            "identities": rows.seat_labels(),
            "entropy_commitment": "sha256:" + canonical.sha256(entropy),
        },
        "engine": plan["terms"]["engine"],
        "environment": _environment(),
        "run": {
            "id": plan["run_id"],
            "start": stamp(began),
            "end": stamp(ended),
            "arming_sha256": canonical.digest(plan["terms"]),
            "seal_sha256": manifest,
        },
        "wire_requests": found["wire_requests"],
        "self_test": {k: order.self_test[k] for k in _SELF_TEST},
        "harness": found["harness"],
        "panels": found["panels"],
        "checks": found["checks"],
        "faults": found["faults"],
        "budgets": found["budgets"],
        "replay": found["replay"],
        "waivers": found["waivers"],
        "evidence": {
            "manifest_sha256": manifest,
            "files": files,
            "bytes": size,
            "redaction": "every spelling of the run's key is replaced by a mark",
        },
        "comparison": comparison(order.previous, found),
        "limits": list(LIMITS)
        + (["a gateway stands between transport and control provider"] if order.subject.base_url else []),
        "verdict": "",
        "verdict_rule": "",
    }
    predicate["verdict"], predicate["verdict_rule"] = certificate.verdict(predicate, today)
    return {
        "_type": certificate.STATEMENT_TYPE,
        "subject": [{"name": f"transport:{order.subject.name}", "digest": {"sha256": order.subject.digest}}],
        "predicateType": certificate.PREDICATE_TYPE,
        "predicate": predicate | {"subject_identity": order.subject.identity()},
    }


_SELF_TEST = (
    "known_good",
    "known_good_wires",
    "alarms",
    "universal",
    "universal_passes",
    "known_bad",
    "survivors",
    "idle_checks",
    "jobs",
    "planned_jobs",
    "catalogue_sha256",
    "source_sha256",
    "matrix_sha256",
)


def comparison(previous: Mapping[str, Any] | None, found: Mapping[str, Any]) -> dict:
    """Which rows differ from the certificate before, and what cannot be compared."""
    if previous is None:
        return {"previous_sha256": None, "changed": [], "not_comparable": []}
    old = previous["predicate"]
    before = {row["id"]: row["status"] for row in (*old["checks"], *old["panels"]["rows"])}
    now = {row["id"]: row["status"] for row in (*found["checks"], *found["panels"]["rows"])}
    changed = [f"{id_}: {before[id_]} -> {now[id_]}" for id_ in now if id_ in before and before[id_] != now[id_]]
    same = old["requirements"]["catalogue_sha256"] == catalogue.digest()
    apart = sorted(set(before) ^ set(now)) + ([] if same else ["the catalogue of checks changed"])
    return {
        "previous_sha256": canonical.sha256(certificate.to_bytes(previous)),
        "changed": changed,
        "not_comparable": apart,
    }


def _succession(previous: Mapping[str, Any] | None) -> tuple[int, str | None]:
    if previous is None:
        return 1, None
    return previous["predicate"]["certificate"]["version"] + 1, "sha256:" + canonical.sha256(
        certificate.to_bytes(previous)
    )


def _budgets(check_rows: list[dict], sheet: profile.Profile) -> dict:
    by_id = {row["id"]: row for row in check_rows}
    limits, scales = Budget(), profile.SCALES[sheet.mode]

    def row(limit_ms: float, check: str, scale: str) -> dict:
        timing = by_id[check]["timing_ms"]
        return {
            "limit_ms": round(limit_ms * 1000),
            "check": check,
            "status": by_id[check]["status"],
            "scale": scale,
            "max_seen_ms": max(timing.values(), default=0),
        }

    return {
        "requests": {"limit": limits.requests, "check": "C38", "status": by_id["C38"]["status"], "scale": "1"},
        "request": row(limits.request_s, "C39", scales["request"]),
        "connection": row(limits.connection_s, "C41", scales["connection"]),
        "simulation": row(limits.simulation_s, "C42", scales["simulation"]),
        "wall": row(limits.wall_s, "C44", scales["wall"]),
    }


def _replay(panel_rows: list[dict]) -> dict:
    count = len(panel_rows)
    passed = sum(row["checks"].get("C46") == "PASS" for row in panel_rows)
    caught = sum(row["checks"].get("C47") == "PASS" for row in panel_rows)
    return {
        "panels": count,
        "environments": [dict(e) for e in ENVIRONMENTS],
        "panels_equal": passed,
        "panels_with_every_miss_caught": caught,
    }


def _environment() -> dict:
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "os": platform.system(),
        "machine": platform.machine(),
        "clock": "monotonic",
        "network": "loopback only",
        "variables": {name: name in os.environ for name in _VARIABLES},
    }


def part_name(panel_id: str) -> str:
    """The evidence part of a panel."""
    return f"panels/{panel_id.replace('/', '-')}"


def stamp(moment: datetime) -> str:
    """A moment as the certificate writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def expires(moment: datetime, days: int, waivers: Iterable[dict]) -> datetime:
    """When a certificate made at a moment ends: with its first waiver, at the latest after the days."""
    ends = [datetime.fromisoformat(w["expires"]).replace(tzinfo=UTC) for w in waivers]
    return min([moment + timedelta(days=days), *ends])
