"""The certificate's page, its other forms, and the coverage of a fleet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replaykit import coverage
from replaykit.certify import known_panels, subject
from replaykit.reports import certificate_html

from .conftest import Certified

SOON = "2026-12-01T00:00:00Z"


def test_the_page_is_self_contained_and_has_no_script(certified: Certified) -> None:
    page = certificate_html.page(certified.statement, certified.evidence)
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert not re.search(r"<script|https?://(?!in-toto)[a-z]|src=|@import|url\(", page)


def test_the_page_shows_verdict_rule_and_what_is_not_claimed(certified: Certified) -> None:
    page = certificate_html.page(certified.statement)
    assert "NOT_QUALIFIED" in page and "r1.fast" in page and "rewards, scores or pass rates" in page


def test_the_page_draws_a_timeline_for_faults(certified: Certified) -> None:
    page = certificate_html.page(certified.statement, certified.evidence)
    assert all(f"<td>{kind}</td>" in page for kind in ("reset_mid_body", "dribble", "redirect", "status"))


def test_what_others_wrote_is_escaped(statement: dict) -> None:
    statement["predicate"]["panels"]["rows"][0]["model_served"] = ["<script>alert(1)</script>"]
    statement["predicate"]["checks"][0]["where"] = '"><img src=x>'
    page = certificate_html.page(statement)
    assert "<script>" not in page and "<img" not in page


def test_a_badge_names_its_date_and_says_when_it_has_passed(statement: dict) -> None:
    predicate = statement["predicate"]
    assert "until" in certificate_html.badge(predicate, "2026-01-01")
    assert "expired" in certificate_html.badge(predicate, "2099-01-01")


def table(certified: Certified, **more: object) -> coverage.Coverage:
    """Coverage of the scripted fleet by one certificate."""
    digest = more.get("digest", subject.load("openai-chat", {}).digest)
    one = coverage.Certified("one", more.get("statement", certified.statement), digest)
    return coverage.coverage(known_panels.fleet(), [one], more.get("cassettes", ()), more.get("now", SOON))


def test_coverage_tells_a_fast_pass_from_a_qualification(certified: Certified, statement: dict) -> None:
    assert table(certified).counts("openai-chat") == {"passed": 2}
    statement["predicate"]["verdict"] = "QUALIFIED"
    assert table(certified, statement=statement).counts("openai-chat") == {"qualified": 2}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"digest": "0" * 64}, "changed"),
        ({"digest": None}, "not installed"),
        ({"now": "2099-01-01T00:00:00Z"}, "expired"),
    ],
)
def test_coverage_calls_a_certificate_stale_and_says_why(certified: Certified, more: dict, why: str) -> None:
    found = table(certified, **more)
    assert found.counts("openai-chat") == {"stale": 2}
    assert why in found.why["openai-chat"]


def test_coverage_names_what_is_missing(certified: Certified, statement: dict) -> None:
    statement["predicate"]["panels"]["rows"].pop()
    assert table(certified, statement=statement).counts("openai-chat") == {"passed": 1, "missing": 1}


def test_coverage_counts_cassettes_of_another_fleet_apart(certified: Certified) -> None:
    digest = known_panels.fleet().digest
    cassettes = [
        coverage.Recorded("a", "airline/0", "openai-chat", digest),
        coverage.Recorded("b", "airline/0", "openai-chat", "other"),
    ]
    assert table(certified, cassettes=cassettes).recorded == {"airline/0": {"openai-chat": 1, "stale": 1}}


def test_coverage_from_files_finds_certificates_by_name(certified: Certified, tmp_path: Path) -> None:
    from replaykit import coverage_files

    (tmp_path / "a-certificate.json").write_bytes(certified.path.read_bytes())
    found = coverage_files.table(known_panels.fleet(), [tmp_path], SOON)
    assert found.transports == ("openai-chat",)


def test_junit_has_a_case_for_each_check_and_each_panel_and_check(certified: Certified, statement: dict) -> None:
    import xml.etree.ElementTree as ET

    from replaykit.reports import certificate_projections

    row = statement["predicate"]["panels"]["rows"][0]
    row["checks"] |= {"C05": "NOT_EXERCISED", "C06": "WAIVED"}
    suite = ET.fromstring(certificate_projections.junit(statement))
    assert int(suite.get("tests")) == 50 + 2 * len(row["checks"]) == len(suite.findall("testcase"))
    assert [f.get("type") for f in suite.iter("failure")] == ["NOT_EXERCISED"]
    assert [s.get("message").split(":")[0] for s in suite.iter("skipped")] == ["WAIVED"]


def test_a_verification_result_lists_no_property_unless_qualified(statement: dict) -> None:
    from replaykit.reports import certificate_projections

    assert certificate_projections.svr(statement)["predicate"]["properties"] == []
    statement["predicate"]["verdict"] = "QUALIFIED"
    assert certificate_projections.svr(statement)["predicate"]["properties"] == statement["predicate"]["claims"]


def test_a_test_result_sorts_rows_into_three_lists(statement: dict) -> None:
    from replaykit.reports import certificate_projections

    statement["predicate"]["checks"][0]["status"] = "FAIL"
    found = certificate_projections.test_result(statement)["predicate"]
    assert found["result"] == "FAILED" and len(found["failedTests"]) == 1 and len(found["passedTests"]) > 50
