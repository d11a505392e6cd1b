"""One certification for all tests of a session: two scripted panels, no tau2, fast clocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from replaykit import certificate
from replaykit.certify import known_panels, run, self_test, subject
from replaykit.certify.finding import Finding
from replaykit.certify.known_bad import BY_ID
from replaykit.store import certificate_file
from replaykit.store.certificate_file import Evidence


@dataclass(frozen=True)
class Certified:
    """A certificate on disk with its evidence."""

    path: Path
    statement: dict

    @property
    def evidence(self) -> Evidence:
        """Its evidence."""
        return Evidence(certificate_file.own_folder(self.path))


def ideal_report() -> dict:
    """The report of a self-test in which everything went as it should; test data, made of no run."""
    return self_test.report({job: _ideal(job) for job in self_test.jobs()})


def _ideal(job: self_test.Job) -> Finding:
    if job.subject in self_test.GOOD:
        return Finding("PASS", exercised=1)
    expected = BY_ID[job.subject].expected
    return Finding("FAIL", "not_on_wire" if expected == "*" else expected)


def order(named: subject.Subject | None = None, **more: object) -> run.Order:
    """A fast certification of the two scripted panels."""
    one = named or subject.load("openai-chat", {})
    fleet = known_panels.fleet()
    return run.Order(
        one, fleet, list(fleet.panels), "fast", known_panels.engine(one), ideal_report(), script=True, **more
    )


def certify(folder: Path, what: run.Order | None = None) -> Certified:
    """Certify into a folder."""
    path = folder / "certificate.json"
    statement = run.run(what or order(), Evidence(certificate_file.own_folder(path)), run.Watch())
    certificate_file.write(path, statement)
    return Certified(path, statement)


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    """The certificate of the built-in chat transport."""
    return certify(tmp_path_factory.mktemp("certified"))


@pytest.fixture
def statement(certified: Certified) -> dict:
    """A copy of its statement to change."""
    return certificate.parse(certified.path.read_bytes())[0]
