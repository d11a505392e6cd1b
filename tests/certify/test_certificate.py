"""The certificate as a value: verdict rule, exact bytes, strict reading."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from replaykit import canonical, certificate
from replaykit.errors import EvidenceError

TODAY = "2026-12-01"


def full(predicate: dict) -> dict:
    """The predicate as if the clocks had been real."""
    predicate["profile"]["mode"] = "full"
    return predicate


def _fail_must(p: dict) -> None:
    p["checks"][0]["status"] = "FAIL"


def _fail_should(p: dict) -> None:
    next(r for r in p["checks"] if r["severity"] == "SHOULD")["status"] = "FAIL"


def _not_exercised(p: dict) -> None:
    p["checks"][3]["status"] = "NOT_EXERCISED"


def _drop_check(p: dict) -> None:
    del p["checks"][-1]


def _drop_panel(p: dict) -> None:
    del p["panels"]["rows"][0]


def _no_panels(p: dict) -> None:
    p["panels"] |= {"rows": [], "selected": [], "total": 0, "counts": {}}


def _panel_fails(p: dict) -> None:
    p["panels"]["rows"][0]["checks"]["C05"] = "FAIL"


def _survivor(p: dict) -> None:
    p["self_test"]["known_bad"][0]["killed"] = False


def _harness(p: dict) -> None:
    p["harness"][0]["status"] = "FAIL"


def _unused_waiver(p: dict) -> None:
    p["waivers"] = [{"used": 0, "expires": "2027-01-01"}]


def _expired_waiver(p: dict) -> None:
    p["waivers"] = [{"used": 1, "expires": "2026-01-01"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: None, ("QUALIFIED", "r1.passed")),
        (_fail_should, ("QUALIFIED", "r1.passed")),
        (_fail_must, ("NOT_QUALIFIED", "r1.failed")),
        (_panel_fails, ("NOT_QUALIFIED", "r1.failed")),
        (_unused_waiver, ("NOT_QUALIFIED", "r1.failed")),
        (_expired_waiver, ("NOT_QUALIFIED", "r1.failed")),
        (_not_exercised, ("INCOMPLETE", "r1.incomplete")),
        (_drop_check, ("INCOMPLETE", "r1.incomplete")),
        (_drop_panel, ("INCOMPLETE", "r1.incomplete")),
        (_no_panels, ("INCOMPLETE", "r1.incomplete")),
        (_survivor, ("VOID", "r1.void")),
        (_harness, ("VOID", "r1.void")),
    ],
)
def test_the_verdict_follows_from_the_rows(
    statement: dict, change: Callable[[dict], None], expected: tuple[str, str]
) -> None:
    predicate = full(statement["predicate"])
    change(predicate)
    assert certificate.verdict(predicate, TODAY) == expected


def test_a_fast_run_never_qualifies(statement: dict) -> None:
    assert certificate.verdict(statement["predicate"], TODAY) == ("NOT_QUALIFIED", "r1.fast")


def test_void_outranks_incomplete_and_incomplete_outranks_failed(statement: dict) -> None:
    predicate = full(statement["predicate"])
    _fail_must(predicate)
    _not_exercised(predicate)
    assert certificate.verdict(predicate, TODAY)[0] == "INCOMPLETE"
    _harness(predicate)
    assert certificate.verdict(predicate, TODAY)[0] == "VOID"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a float", b'{"a":1.5}'),
        ("a doubled member", b'{"a":1,"a":1}'),
        ("white space", b'{"a": 1}'),
        ("unsorted members", b'{"b":1,"a":1}'),
        ("a large integer", b'{"a":9007199254740992}'),
        ("half a surrogate pair", b'{"a":"\\ud800"}'),
        ("no object", b"[1]"),
        ("no JSON", b"hello"),
        ("deep nesting", b'{"a":' * 70 + b"1" + b"}" * 70),
    ],
)
def test_reading_refuses(name: str, data: bytes) -> None:
    with pytest.raises(EvidenceError):
        certificate.parse(data)


def test_writing_refuses_floats(statement: dict) -> None:
    statement["predicate"]["run"]["seconds"] = 1.5
    with pytest.raises(ValueError, match="floats"):
        certificate.to_bytes(statement)


def test_a_statement_survives_being_written_and_read(statement: dict) -> None:
    assert certificate.parse(certificate.to_bytes(statement)) == (statement, [])


def test_an_envelope_gives_the_same_statement(statement: dict) -> None:
    data = canonical.sorted_(certificate.envelope(certificate.to_bytes(statement), [{"keyid": "k", "sig": "c2ln"}]))
    assert certificate.parse(data) == (statement, [{"keyid": "k", "sig": "c2ln"}])


def test_the_id_changes_with_any_member(statement: dict) -> None:
    before = certificate.identity(statement)
    statement["predicate"]["assurance"] = "third_party"
    assert certificate.identity(statement) != before


def test_no_member_claims_a_reward_or_a_score(statement: dict) -> None:
    from replaykit.certify.family_h import claims_of_score

    assert claims_of_score(statement) is None
    assert "rewards, scores or pass rates" in statement["predicate"]["non_claims"]


def test_it_is_valid_in_toto(statement: dict) -> None:
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [len(s["digest"]["sha256"]) for s in statement["subject"]] == [64]
    assert json.loads(certificate.to_bytes(statement)) == statement
