"""Verify a certificate offline, trusting no verdict that it carries. One line a step; nothing here imports tau2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit import canonical, certificate
from replaykit.certify import assemble, catalogue, known_bad, profile, self_test
from replaykit.certify import subject as subjects
from replaykit.errors import EvidenceError, ReplaykitError
from replaykit.fleet import Fleet
from replaykit.store import certificate_file
from replaykit.store.certificate_file import Evidence

OK, SKIPPED, WRONG = "ok", "skipped", "WRONG"


@dataclass(frozen=True, slots=True)
class Line:
    """What one step found: ``ok``, ``skipped`` with a reason, or ``WRONG``."""

    step: str
    found: str
    said: str = ""

    def text(self) -> str:
        """One line for a person."""
        return f"{self.found:<8} {self.step}" + (f": {self.said}" if self.said else "")


@dataclass(frozen=True)
class Request:
    """What to verify, and against what.

    Attributes:
        evidence: The evidence folder; None: the one beside the certificate, if it is there.
        now: ``YYYY-MM-DDTHH:MM:SSZ``.
        last_version: The highest version seen before of this subject's certificates.
        expected: Digests by name (``profile``, ``catalogue``) that the user pins.
    """

    path: Path
    now: str
    evidence: Path | None = None
    fleet: Fleet | None = None
    key: Path | None = None
    last_version: int = 0
    expected: tuple[tuple[str, str], ...] = ()


def steps(request: Request) -> Iterator[Line]:
    """Every step in order. A certificate that cannot be parsed ends after the first."""
    try:
        statement, signatures, data = certificate_file.read(request.path)
    except EvidenceError as error:
        yield Line("parse", WRONG, error.reason)
        return
    yield Line("parse", OK, f"{len(data)} bytes of canonical JSON")
    predicate = statement["predicate"]
    folder = request.evidence or certificate_file.own_folder(request.path)
    evidence = Evidence(folder) if (folder / certificate_file.MANIFEST).is_file() else None
    whole = evidence is not None and (folder / certificate_file.PLAN).is_file()
    for step, look in (
        ("schema", lambda: _schema(predicate)),
        ("identity", lambda: _identity(statement)),
        ("signature", lambda: _signature(statement, signatures, request.key)),
        ("validity", lambda: _validity(predicate, request.now)),
        ("version", lambda: _version(predicate, request.last_version)),
        ("subject", lambda: _subject(statement)),
        ("profile", lambda: _profile(predicate, dict(request.expected))),
        ("catalogue", lambda: _catalogue(predicate, dict(request.expected))),
        ("fleet", lambda: _fleet(predicate, request.fleet)),
        ("evidence manifest", lambda: _manifest(predicate, evidence, whole)),
        (
            "captures, nonces and logs; every row recomputed",
            lambda: _rows(statement, evidence if whole else None, request),
        ),
        ("self-test matrix", lambda: _matrix(predicate)),
        ("waivers", lambda: _waivers(predicate, request.now)),
        ("no score", lambda: _no_score(predicate)),
        ("verdict", lambda: _verdict(predicate)),
    ):
        yield _line(step, look)


def holds(lines: list[Line]) -> bool:
    """Whether nothing was wrong and something was looked at."""
    return bool(lines) and all(line.found != WRONG for line in lines)


class _Skip(Exception):
    """A step that cannot be made, and why."""


def _line(step: str, look: Callable[[], str]) -> Line:
    try:
        return Line(step, OK, look())
    except _Skip as skip:
        return Line(step, SKIPPED, str(skip))
    except EvidenceError as error:
        return Line(step, WRONG, str(error))
    except ReplaykitError as error:
        raise error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return Line(step, WRONG, f"the certificate lacks what this step reads ({type(error).__name__}: {error})")


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise EvidenceError(sentence)


def _schema(predicate: dict) -> str:
    schema = predicate["certificate"]["schema"]
    _require(schema == certificate.SCHEMA, f"the schema is {schema!r}, this replaykit reads {certificate.SCHEMA}")
    return schema


def _identity(statement: dict) -> str:
    stated = statement["predicate"]["certificate"]["id"]
    _require(stated == certificate.identity(statement), "the id is not that of the content: something was changed")
    return stated[:19] + "…"


def _signature(statement: dict, signatures: list[dict], key: Path | None) -> str:
    if not signatures:
        _require(key is None, "a key was given, but the certificate is unsigned")
        return "absent: unsigned, self-attested"
    if key is None:
        raise _Skip(f"signed by {signatures[0]['keyid'][:23]}…, which no --key was given to check")
    return f"valid, by {certificate_file.check_signature(key, certificate.to_bytes(statement), signatures)[:23]}…"


def _validity(predicate: dict, now: str) -> str:
    stated = predicate["certificate"]
    _require(stated["not_before"] <= now, f"not valid before {stated['not_before']}")
    _require(now < stated["expires_at"], f"expired at {stated['expires_at']}")
    return f"until {stated['expires_at']}"


def _version(predicate: dict, last: int) -> str:
    version = predicate["certificate"]["version"]
    _require(version >= max(last, 1), f"version {version} is older than {last}, which was seen before")
    return str(version)


def _subject(statement: dict) -> str:
    """The digest of the transport as it is here; another build is told apart, not condemned."""
    stated = statement["subject"]
    _require(isinstance(stated, list) and len(stated) == 1, "there is not exactly one subject")
    name = stated[0]["name"].removeprefix("transport:")
    try:
        here = subjects.load(name, {})
    except ReplaykitError as error:
        raise _Skip(f"{name} is not installed here") from error
    if here.digest != stated[0]["digest"]["sha256"]:
        raise _Skip(
            f"{name} has other code or options here than what was certified, so the certificate says nothing about it"
        )
    return f"{name} as it is installed here"


def _profile(predicate: dict, expected: dict[str, str]) -> str:
    stated = dict(predicate["profile"])
    digest = stated.pop("sha256")
    sheet = profile.Profile.from_dict(stated)
    _require(canonical.digest(stated) == digest, "the profile has another digest")
    _require(
        sheet.to_dict() == stated, "the profile names other limits or clocks than this replaykit's profile of that mode"
    )
    _require(expected.get("profile", digest) == digest, "not the profile that was expected")
    return f"{stated['id']} {stated['version']}, {stated['mode']}"


def _catalogue(predicate: dict, expected: dict[str, str]) -> str:
    stated = predicate["requirements"]["catalogue_sha256"]
    _require(stated == catalogue.digest(), "made with another catalogue of checks")
    _require(
        predicate["requirements"]["checks"] == [c.id for c in catalogue.checks()], "the certificate plans other checks"
    )
    _require(expected.get("catalogue", stated) == stated, "not the catalogue that was expected")
    return f"{len(catalogue.checks())} checks"


def _fleet(predicate: dict, fleet: Fleet | None) -> str:
    stated = predicate["panels"]
    if fleet is None:
        raise _Skip("no --fleet was given")
    _require(stated["fleet_sha256"] == fleet.digest, "made for another fleet")
    known = {p.id for p in fleet.panels}
    _require(all(id_ in known for id_ in stated["selected"]), "a panel that the fleet does not know")
    judged = {p.id for p in fleet.panels if p.judge.required}
    named = {row["id"] for row in stated["rows"] if "judge.all_true_default" in row["diagnostics"]}
    unjudged = {row["id"] for row in stated["rows"] if row["checks"].get("C49") in ("ERROR", "NOT_EXERCISED", "FAIL")}
    _require(
        named - judged == set() and judged & set(stated["selected"]) - named <= unjudged,
        "judge.all_true_default on other panels than those with a judge",
    )
    return f"{len(stated['selected'])} of {len(fleet.panels)} panels, {len(named)} with a judge"


def _manifest(predicate: dict, evidence: Evidence | None, whole: bool) -> str:
    if evidence is None:
        raise _Skip("the evidence is not here; rows cannot be recomputed")
    stated = predicate["evidence"]["manifest_sha256"]
    if not whole:
        files = evidence.manifest(stated)
        _require(len(files) == predicate["evidence"]["files"], "another number of files than the certificate says")
        return f"digest right, {len(files)} files named; the files themselves are not here"
    return f"{evidence.check_manifest(stated)} files"


def _rows(statement: dict, evidence: Evidence | None, request: Request) -> str:
    if evidence is None:
        raise _Skip("the captures are not here: make them again with 'replaykit certify', or give them with --evidence")
    predicate, plan = statement["predicate"], evidence.read_plan()
    _require(plan is not None, "there is no plan in the evidence")
    _require(
        canonical.digest(plan["terms"]) == predicate["run"]["arming_sha256"],
        "the plan is not the one the run was armed with",
    )
    commitment = "sha256:" + canonical.sha256(bytes.fromhex(plan["entropy"]))
    _require(commitment == predicate["control"]["entropy_commitment"], "the nonces' key is not the one committed to")
    _same_terms(plan["terms"], statement)
    today = predicate["certificate"]["issued_at"][:10]
    found = assemble.measured(plan, evidence, predicate["self_test"], assemble.facts_of(request.fleet), today)
    for name, value in found.items():
        if not canonical.same(_sorted(predicate[name]), _sorted(value)):
            raise EvidenceError(
                f"the certificate's {name} are not what the evidence gives{_where(predicate[name], value)}"
            )
    return f"{len(found['checks'])} checks and {len(found['panels']['rows'])} panels recomputed"


def _same_terms(terms: dict, statement: dict) -> None:
    predicate = statement["predicate"]
    stated = dict(predicate["profile"])
    stated.pop("sha256")
    _require(terms["profile"] == stated, "the plan has another profile")
    _require(terms["subject"]["sha256"] == statement["subject"][0]["digest"]["sha256"], "the plan has another subject")
    _require(terms["subject"]["identity"] == predicate["subject_identity"], "the plan has another subject's identity")
    _require(terms["engine"] == predicate["engine"], "the plan has another engine")
    _require(
        terms["catalogue_sha256"] == predicate["requirements"]["catalogue_sha256"], "the plan has another catalogue"
    )


def _sorted(value: Any) -> Any:
    return canonical.sorted_text(value)


def _where(stated: Any, found: Any) -> str:
    from replaykit import difference

    first = difference.first(stated, found)
    return f", first at {first.pointer}" if first and first.pointer else ""


def _matrix(predicate: dict) -> str:
    test = predicate["self_test"]
    known = {bad.id: (bad.targets, bad.expected) for bad in known_bad.KNOWN_BADS}
    stated = {row["id"]: (row["targets"], row["expected"]) for row in test["known_bad"]}
    _require(stated == known, "the self-test lists other known-bads than this replaykit has")
    _require(
        all(row["killed"] and row["observed"] == row["expected"] for row in test["known_bad"]), "a known-bad survived"
    )
    _require(
        {row["targets"] for row in test["known_bad"]} == {c.id for c in catalogue.checks()}, "a check caught nothing"
    )
    _require(
        set(test["universal"]) == {bad.id for bad in known_bad.UNIVERSAL} and not any(test["universal"].values()),
        "a universal known-bad passed a check",
    )
    _require(
        test["known_good"] == "PASS" and not test["survivors"] and not test["idle_checks"], "the self-test did not hold"
    )
    body = {k: v for k, v in test.items() if k not in ("matrix_sha256", "alarms")}
    _require(canonical.digest(body) == test["matrix_sha256"], "the matrix has another digest")
    _require(test["jobs"] == test["planned_jobs"] == len(self_test.jobs()), "the self-test was not run as a whole")
    return f"{len(known)} known-bads, each caught by its check for its reason"


def _waivers(predicate: dict, now: str) -> str:
    for waiver in predicate["waivers"]:
        _require(waiver["expires"] >= now[:10], f"the waiver {waiver['id']} expired on {waiver['expires']}")
        _require(waiver["used"] >= 1, f"the waiver {waiver['id']} excuses nothing")
        _require(waiver["reason"].strip(), f"the waiver {waiver['id']} gives no reason")
    return f"{len(predicate['waivers'])} live" if predicate["waivers"] else "none"


def _no_score(predicate: dict) -> str:
    from replaykit.certify.family_h import claims_of_score

    place = claims_of_score({k: v for k, v in predicate.items() if k != "non_claims"})
    _require(place is None, f"the certificate claims a score at {place}")
    _require(predicate["non_claims"] == list(certificate.NON_CLAIMS), "the non-claims are not those of this schema")
    _require(predicate["claims"] == assemble.claims(predicate["checks"]), "the claims are not those of the rows")
    return "no reward, no score, non-claims printed"


def _verdict(predicate: dict) -> str:
    found, rule = certificate.verdict(predicate, predicate["certificate"]["issued_at"][:10])
    _require(
        (found, rule) == (predicate["verdict"], predicate["verdict_rule"]),
        f"rule {rule} gives {found}, the certificate says {predicate['verdict']}",
    )
    return f"{found} by {rule}"
