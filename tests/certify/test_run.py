"""A run as a whole: repeatable, resumable, honest about what it did not do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from replaykit import certificate, difference
from replaykit.certify import known_panels, run, verify
from replaykit.certify.known_bad import BY_ID
from replaykit.certify.subject import Layer, Subject
from replaykit.errors import UsageError
from replaykit.store import certificate_file
from replaykit.transports.openai_chat import OpenAIChat

from .conftest import Certified, certify, order

WORKER = Path(__file__).with_name("killed_run.py")


def rows(statement: dict) -> dict[str, tuple]:
    """Status and code by check."""
    return {r["id"]: (r["status"], r["code"]) for r in statement["predicate"]["checks"]}


def test_the_built_in_transport_passes_every_check(certified: Certified) -> None:
    assert {id_: found for id_, found in rows(certified.statement).items() if found[0] != "PASS"} == {}
    assert certified.statement["predicate"]["panels"]["counts"]["PASS"] == 2


def test_exactly_the_judged_panels_name_the_all_true_default(certified: Certified) -> None:
    named = {r["id"]: r["diagnostics"] for r in certified.statement["predicate"]["panels"]["rows"]}
    judged = {p.id: ["judge.all_true_default"] if p.judge.required else [] for p in known_panels.fleet().panels}
    assert named == judged


def test_two_runs_differ_only_in_what_is_listed(certified: Certified, tmp_path: Path) -> None:
    again = certify(tmp_path)
    bare = [certificate.without_run_specifics(c.statement) for c in (certified, again)]
    assert difference.first(*bare) is None


def test_no_evidence_holds_a_key(certified: Certified) -> None:
    from replaykit.certify.capture import Context
    from replaykit.certify.masking import Canary

    plan = certified.evidence.read_plan()
    context = Context(bytes.fromhex(plan["entropy"]), None)
    found = {}
    for check in certified.statement["predicate"]["checks"]:
        for name, part in certified.evidence.read(f"checks/{check['id']}").items():
            spellings = Canary(context.key(part["case"])).found(str(part).encode())
            found |= {f"{check['id']}/{name}": spellings} if spellings else {}
    assert found == {}


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, str(WORKER), str(tmp_path)], stderr=subprocess.DEVNULL)
    parts = tmp_path / "evidence" / "checks"
    deadline = time.monotonic() + 60
    while len(list(parts.glob("C*.xz"))) < 9 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    before = {p.name: p.stat().st_mtime_ns for p in parts.glob("C*.xz")}
    assert before and not (tmp_path / "certificate.json").exists()
    done = certify(tmp_path)
    assert {name: (parts / name).stat().st_mtime_ns for name in before} == before
    request = verify.Request(
        done.path, done.statement["predicate"]["certificate"]["issued_at"], fleet=known_panels.fleet()
    )
    assert verify.holds(list(verify.steps(request)))


def test_evidence_of_another_run_is_not_gone_on_with(certified: Certified, tmp_path: Path) -> None:
    evidence = certificate_file.Evidence(tmp_path)
    evidence.write_plan(certified.evidence.read_plan())
    with pytest.raises(UsageError, match="another certification"):
        run.run(replace(order(), mode="full"), evidence, run.Watch())


@pytest.mark.slow
def test_a_transport_that_drops_the_seed_fails_that_check_on_every_panel(tmp_path: Path) -> None:
    done = certify(tmp_path, order(BY_ID["kb_drop_seed"].subject()))
    predicate = done.statement["predicate"]
    assert rows(done.statement)["C05"] == ("FAIL", "setting_missing")
    assert {r["checks"]["C05"] for r in predicate["panels"]["rows"]} == {"FAIL"}
    assert (predicate["verdict"], predicate["verdict_rule"]) == ("NOT_QUALIFIED", "r1.failed")


WAIVER = {
    "id": "w-1",
    "check": "C05",
    "panel": "*",
    "reason": "the provider refuses seeds",
    "owner": "me",
    "link": "-",
    "granted": "2026-01-01",
}


@pytest.mark.slow
@pytest.mark.parametrize(("expires", "status"), [("2099-01-01", "WAIVED"), ("2026-01-02", "FAIL")])
def test_a_waiver_excuses_while_it_lives(tmp_path: Path, expires: str, status: str) -> None:
    done = certify(tmp_path, order(BY_ID["kb_drop_seed"].subject(), waivers=[WAIVER | {"expires": expires}]))
    assert {r["checks"]["C05"] for r in done.statement["predicate"]["panels"]["rows"]} == {status}


def test_an_unreachable_provider_leaves_nothing_passed(tmp_path: Path) -> None:
    class Nowhere(OpenAIChat):
        def url(self, request):
            return "http://127.0.0.1:9/v1/chat/completions"

    subject = Subject("nowhere", Nowhere, "transport openai-chat", layer=Layer())
    found = rows(certify(tmp_path, order(subject)).statement)
    assert {status for status, _ in found.values()} & {"PASS"} == set()
