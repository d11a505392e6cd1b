"""What a certificate is: statuses, verdict rule, exact bytes, what differs from run to run. No IO, no clock.

A certificate is an in-toto statement in canonical JSON (sorted keys, no floats, integers below 2^53), so every change of
a byte is either a change of meaning or no canonical form any more.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from replaykit import canonical
from replaykit.errors import EvidenceError

SCHEMA = "replaykit.certificate/1"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://replaykit.example/transport-conformance/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATUSES = ("PASS", "FAIL", "ERROR", "NOT_EXERCISED", "NOT_APPLICABLE", "WAIVED")
VERDICTS = ("QUALIFIED", "NOT_QUALIFIED", "INCOMPLETE", "VOID")
EXIT_CODES = {"QUALIFIED": 0, "NOT_QUALIFIED": 1, "INCOMPLETE": 3, "VOID": 6}
ASSURANCES = ("self_attested", "reproduced", "third_party")
MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1

CLAIMS = (
    "TRANSPORT_IDENTITY_HELD",
    "TRANSPORT_SETTINGS_EXACT",
    "TRANSPORT_HISTORIES_EXACT",
    "TRANSPORT_TOOLS_EXACT",
    "TRANSPORT_FAULTS_CLASSIFIED",
    "TRANSPORT_BUDGETS_BOUNDED",
    "REPLAY_DETERMINISTIC",
    "COVERAGE_COUNTED",
)
NON_CLAIMS = (
    "quality of any model",
    "rewards, scores or pass rates",
    "correctness of any judgement",
    "identity of a provider",
    "behaviour under production load",
    "behaviour off loopback, TLS included",
)
# What two runs of the same transport may differ in, as JSON pointers; * stands for any one member.
RUN_SPECIFIC = (
    "/predicate/certificate/id",
    "/predicate/certificate/issued_at",
    "/predicate/certificate/not_before",
    "/predicate/certificate/expires_at",
    "/predicate/run",
    "/predicate/control/entropy_commitment",
    "/predicate/control/entropy",
    "/predicate/evidence/manifest_sha256",
    "/predicate/evidence/bytes",
    "/predicate/checks/*/timing_ms",
    "/predicate/checks/*/evidence",
    "/predicate/panels/rows/*/evidence",
    "/predicate/budgets/*/max_seen_ms",
    "/predicate/replay/record_sha256",
    "/predicate/environment",
)


def verdict(predicate: Mapping[str, Any], today: str) -> tuple[str, str]:
    """The verdict and the clause of rule r1 that gives it.

    Args:
        predicate: A certificate's predicate.
        today: ``YYYY-MM-DD``, against which waivers are held.
    """
    for clause, found, wording in (
        ("r1.void", "VOID", _void(predicate)),
        ("r1.incomplete", "INCOMPLETE", _incomplete(predicate)),
        ("r1.failed", "NOT_QUALIFIED", _failed(predicate, today)),
        ("r1.fast", "NOT_QUALIFIED", predicate["profile"]["mode"] != "full"),
    ):
        if wording:
            return found, clause
    return "QUALIFIED", "r1.passed"


def _void(predicate: Mapping[str, Any]) -> bool:
    test = predicate["self_test"]
    harness = any(row["status"] != "PASS" for row in predicate["harness"])
    unclean = any(not row["killed"] for row in test["known_bad"]) or any(test["universal"].values())
    return harness or unclean or test["known_good"] != "PASS"


def _incomplete(predicate: Mapping[str, Any]) -> bool:
    panels, planned = predicate["panels"], predicate["requirements"]["checks"]
    rows = predicate["checks"]
    if [row["id"] for row in rows] != planned or any(row["status"] in ("ERROR", "NOT_EXERCISED") for row in rows):
        return True
    ids = [row["id"] for row in panels["rows"]]
    if (
        ids != panels["selected"]
        or not ids
        or len(ids) != panels["total"]
        or sum(panels["counts"].values()) != len(ids)
    ):
        return True
    return any(
        s in ("ERROR", "NOT_EXERCISED") for row in panels["rows"] for s in (row["status"], *row["checks"].values())
    )


def _failed(predicate: Mapping[str, Any], today: str) -> bool:
    waivers = predicate["waivers"]
    if any(w["used"] < 1 or w["expires"] < today for w in waivers):
        return True
    musts = [row for row in predicate["checks"] if row["severity"] == "MUST"]
    must_ids = {row["id"] for row in musts}
    in_panels = any(
        s == "FAIL" for row in predicate["panels"]["rows"] for c, s in row["checks"].items() if c in must_ids
    )
    return in_panels or any(row["status"] == "FAIL" for row in musts)


def seal(statement: Mapping[str, Any]) -> dict:
    """The statement with the id that its content gives it."""
    sealed = copy.deepcopy(dict(statement))
    sealed["predicate"]["certificate"]["id"] = identity(sealed)
    return sealed


def identity(statement: Mapping[str, Any]) -> str:
    """``rk-`` and the digest of everything but the id itself."""
    bare = copy.deepcopy(dict(statement))
    bare["predicate"]["certificate"]["id"] = ""
    return "rk-" + canonical.digest(bare)


def to_bytes(statement: Mapping[str, Any]) -> bytes:
    """The canonical bytes of a statement.

    Raises:
        ValueError: it holds a float, an integer beyond 2^53 or half a surrogate pair.
    """
    _check_values(statement, 0)
    return canonical.sorted_(statement)


def parse(data: bytes) -> tuple[dict, list[dict]]:
    """A statement and its signatures, strictly.

    Args:
        data: A bare statement, or a DSSE envelope around one.

    Raises:
        EvidenceError: anything that is not exactly the canonical form of a certificate.
    """
    value = _strict(data)
    if not isinstance(value, dict):
        raise EvidenceError("not a certificate: no JSON object")
    if "payload" not in value:
        return _statement(value), []
    payload = _payload(value)
    return _statement(_strict(payload)), _signatures(value)


def pre_authentication(payload: bytes) -> bytes:
    """The bytes that a DSSE signature is made over."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope(payload: bytes, signatures: Sequence[Mapping[str, str]]) -> dict:
    """A DSSE envelope as plain data."""
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [dict(s) for s in signatures],
    }


def without_run_specifics(statement: Mapping[str, Any]) -> dict:
    """A copy without what may differ from run to run (`RUN_SPECIFIC`)."""
    bare = copy.deepcopy(dict(statement))
    for pointer in RUN_SPECIFIC:
        _drop(bare, pointer.split("/")[1:])
    return bare


def check_shape(statement: Mapping[str, Any]) -> None:
    """Check that a statement has the members that verification reads.

    Raises:
        EvidenceError: naming the first member that is missing or of another type.
    """
    for pointer, kind in _SHAPE:
        value: Any = statement
        for part in pointer.split("/")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            raise EvidenceError(f"the certificate's {pointer} is missing or no {kind.__name__}")


_SHAPE = tuple(
    (f"/predicate/{name}", kind)
    for name, kind in {
        "certificate": dict,
        "certificate/schema": str,
        "certificate/id": str,
        "certificate/version": int,
        "certificate/issued_at": str,
        "certificate/not_before": str,
        "certificate/expires_at": str,
        "issuer": dict,
        "claims": list,
        "non_claims": list,
        "assurance": str,
        "profile": dict,
        "profile/mode": str,
        "requirements": dict,
        "requirements/checks": list,
        "control": dict,
        "environment": dict,
        "run": dict,
        "self_test": dict,
        "self_test/known_bad": list,
        "self_test/universal": dict,
        "harness": list,
        "panels": dict,
        "panels/rows": list,
        "panels/counts": dict,
        "panels/selected": list,
        "checks": list,
        "faults": dict,
        "budgets": dict,
        "replay": dict,
        "waivers": list,
        "evidence": dict,
        "limits": list,
        "verdict": str,
        "verdict_rule": str,
    }.items()
)


def _statement(value: Any) -> dict:
    if not isinstance(value, dict) or value.get("_type") != STATEMENT_TYPE:
        raise EvidenceError("not a certificate: no in-toto statement")
    if value.get("predicateType") != PREDICATE_TYPE:
        raise EvidenceError("not a certificate of this kind: another predicate type")
    check_shape(value)
    return value


def _payload(value: dict) -> bytes:
    if value.get("payloadType") != PAYLOAD_TYPE or set(value) != {"payload", "payloadType", "signatures"}:
        raise EvidenceError("not a DSSE envelope around a statement")
    try:
        return base64.b64decode(value["payload"], validate=True)
    except (TypeError, ValueError) as error:
        raise EvidenceError("the envelope's payload is not base64") from error


def _signatures(value: dict) -> list[dict]:
    found = value["signatures"]
    right = isinstance(found, list) and found and all(isinstance(s, dict) and set(s) == {"keyid", "sig"} for s in found)
    if not right or not all(isinstance(s["sig"], str) and isinstance(s["keyid"], str) for s in found):
        raise EvidenceError("the envelope's signatures are not signatures")
    return found


def _strict(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise EvidenceError(f"larger than a certificate may be ({MAX_BYTES} bytes)")
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_members, parse_float=_no_float, parse_constant=_no_float
        )
        _check_values(value, 0)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"not a certificate: {error}") from error
    if canonical.sorted_(value) != data:
        raise EvidenceError("the certificate is not in canonical form: a byte was changed, or another tool wrote it")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member comes twice")
    return members


def _no_float(text: str) -> Any:
    raise ValueError(f"the number {text} is not an integer")


def _check_values(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        for key, part in value.items():
            _check_values(key, depth)
            _check_values(part, depth + 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _check_values(part, depth + 1)
    elif isinstance(value, float):
        raise ValueError("a certificate holds no floats")
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("an integer beyond 2^53")
    elif isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("half a surrogate pair")


def _drop(value: Any, parts: list[str]) -> None:
    head, rest = parts[0], parts[1:]
    places = (range(len(value)) if isinstance(value, list) else list(value)) if head == "*" else [head]
    for place in places:
        if isinstance(value, dict) and place not in value:
            continue
        if rest:
            _drop(value[place], rest)
        elif isinstance(value, dict):
            del value[place]
