"""A certificate in forms that generic tooling reads: JUnit, in-toto test result, in-toto verification result."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any

from replaykit import canonical, certificate
from replaykit.reports.junit import clean

TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SVR = "https://in-toto.io/attestation/svr/v0.1"
FORMS = ("junit", "test-result", "svr")


def text(statement: Mapping[str, Any], form: str) -> str:
    """The certificate in one of `FORMS`, as a file's text."""
    if form == "junit":
        return junit(statement)
    return canonical.pretty(test_result(statement) if form == "test-result" else svr(statement))


def junit(statement: Mapping[str, Any]) -> str:
    """One test case for each check and for each panel and check.

    What was not exercised is a failure, what was waived is skipped with its message.
    """
    predicate = statement["predicate"]
    suite = ET.Element("testsuite", name=statement["subject"][0]["name"])
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(statement).items():
        ET.SubElement(properties, "property", name=name, value=value)
    cases = [*_check_cases(predicate), *_panel_cases(predicate)]
    for group, name, status, why in cases:
        _case(suite, group, name, status, why)
    failures = sum(status in ("FAIL", "NOT_EXERCISED", "ERROR") for _, _, status, _ in cases)
    skipped = sum(status in ("WAIVED", "NOT_APPLICABLE") for _, _, status, _ in cases)
    suite.attrib |= {"tests": str(len(cases)), "failures": str(failures), "skipped": str(skipped)}
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def test_result(statement: Mapping[str, Any]) -> dict:
    """The three lists of an in-toto test result; a waived row warns."""
    cases = [*_check_cases(statement["predicate"]), *_panel_cases(statement["predicate"])]
    lists: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    for group, name, status, _ in cases:
        if status != "NOT_APPLICABLE":
            place = {"PASS": "passedTests", "WAIVED": "warnedTests"}.get(status, "failedTests")
            lists[place].append(f"{group}/{name}")
    result = "FAILED" if lists["failedTests"] else "WARNED" if lists["warnedTests"] else "PASSED"
    return _statement(statement, TEST_RESULT, {"result": result, "configuration": [_descriptor(statement)], **lists})


def svr(statement: Mapping[str, Any]) -> dict:
    """The properties that held, and nothing else; none unless the verdict is QUALIFIED."""
    predicate = statement["predicate"]
    properties = list(predicate["claims"]) if predicate["verdict"] == "QUALIFIED" else []
    verifier = {"id": f"replaykit/{predicate['issuer']['version']}"}
    body = {"verifier": verifier, "timeCreated": predicate["certificate"]["issued_at"], "properties": properties}
    return _statement(statement, SVR, body)


def _statement(statement: Mapping[str, Any], kind: str, predicate: dict) -> dict:
    head = {"_type": certificate.STATEMENT_TYPE, "subject": statement["subject"]}
    return head | {"predicateType": kind, "predicate": predicate}


def _descriptor(statement: Mapping[str, Any]) -> dict:
    return {"name": "certificate", "digest": {"sha256": canonical.sha256(certificate.to_bytes(statement))}}


def _properties(statement: Mapping[str, Any]) -> dict[str, str]:
    predicate = statement["predicate"]
    return {
        "certificate": predicate["certificate"]["id"],
        "verdict": f"{predicate['verdict']} by {predicate['verdict_rule']}",
        "profile": predicate["profile"]["mode"],
        "not_claimed": "; ".join(predicate["non_claims"]),
    }


def _check_cases(predicate: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for row in predicate["checks"]:
        yield "checks", f"{row['id']} {row['title']}", row["status"], f"{row['code'] or ''} {row['where']}".strip()


def _panel_cases(predicate: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for row in predicate["panels"]["rows"]:
        for check, status in row["checks"].items():
            why = f"{row['codes'].get(check) or ''} {row['where'].get(check, '')}".strip()
            yield row["id"], check, status, why


def _case(suite: ET.Element, group: str, name: str, status: str, why: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=group, name=name)
    if status in ("WAIVED", "NOT_APPLICABLE"):
        ET.SubElement(case, "skipped", message=clean(f"{status}: {why}"))
    elif status != "PASS":
        ET.SubElement(case, "failure", type=status, message=clean(why or status))
