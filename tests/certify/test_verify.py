"""Verification: every step, every forgery, every byte."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from replaykit import certificate
from replaykit.certify import known_panels, verify
from replaykit.errors import UsageError
from replaykit.store import certificate_file

from .conftest import Certified

SOON = "2026-12-01T00:00:00Z"


def copied(certified: Certified, folder: Path) -> Certified:
    """The certificate and its evidence in another folder."""
    shutil.copytree(certified.path.parent, folder, dirs_exist_ok=True)
    return Certified(folder / certified.path.name, certified.statement)


def lines(path: Path, **more: object) -> dict[str, verify.Line]:
    """The steps by name."""
    request = verify.Request(path, more.pop("now", issued(path)), fleet=known_panels.fleet(), **more)
    return {line.step: line for line in verify.steps(request)}


def issued(path: Path) -> str:
    """A moment at which the certificate is valid, or any when it cannot be read."""
    try:
        return certificate_file.read(path)[0]["predicate"]["certificate"]["issued_at"]
    except Exception:  # a damaged certificate: the parse step will say so
        return SOON


def wrong(path: Path, **more: object) -> list[str]:
    """Names of the steps that found something wrong."""
    return [step for step, line in lines(path, **more).items() if line.found == verify.WRONG]


def rewritten(certified: Certified, folder: Path, change: Callable[[dict], None]) -> Path:
    """A forger's certificate: changed, sealed anew, beside the true evidence."""
    forged = copied(certified, folder)
    statement = copy.deepcopy(certified.statement)
    change(statement)
    certificate_file.write(forged.path, certificate.seal(statement))
    return forged.path


def test_a_certificate_verifies_with_its_evidence(certified: Certified) -> None:
    found = lines(certified.path)
    assert [s for s, line in found.items() if line.found != verify.OK] == []
    assert "50 checks and 2 panels recomputed" in found["captures, nonces and logs; every row recomputed"].said


def test_it_verifies_from_the_manifest_alone_and_says_what_was_skipped(certified: Certified, tmp_path: Path) -> None:
    bare = copied(certified, tmp_path)
    for path in bare.evidence.folder.rglob("*"):
        if path.is_file() and path.name != certificate_file.MANIFEST:
            path.unlink()
    found = lines(bare.path)
    assert verify.holds(list(found.values()))
    assert "the files themselves are not here" in found["evidence manifest"].said
    assert found["captures, nonces and logs; every row recomputed"].found == verify.SKIPPED


def _flip_row(s: dict) -> None:
    row = s["predicate"]["panels"]["rows"][0]
    row["checks"]["C05"] = "FAIL"


def _qualify(s: dict) -> None:
    s["predicate"] |= {"verdict": "QUALIFIED", "verdict_rule": "r1.passed"}


def _full(s: dict) -> None:
    s["predicate"]["profile"]["mode"] = "full"


def _longer_deadline(s: dict) -> None:
    s["predicate"]["profile"]["budgets"]["request_ms"] = 60_000


def _more_exchanges(s: dict) -> None:
    s["predicate"]["checks"][0]["exercised"] += 1


def _survivor(s: dict) -> None:
    s["predicate"]["self_test"]["known_bad"].pop()


def _score(s: dict) -> None:
    s["predicate"]["run"]["score"] = 1


def _claims(s: dict) -> None:
    s["predicate"]["claims"].append("MODEL_IS_GOOD")


def _other_manifest(s: dict) -> None:
    s["predicate"]["evidence"]["manifest_sha256"] = "0" * 64


def _other_subject(s: dict) -> None:
    s["subject"][0]["digest"]["sha256"] = "0" * 64


def _more_panels(s: dict) -> None:
    s["predicate"]["panels"]["rows"].append(dict(s["predicate"]["panels"]["rows"][0], id="airline/9"))


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (_flip_row, "captures, nonces and logs; every row recomputed"),
        (_more_exchanges, "captures, nonces and logs; every row recomputed"),
        (_other_subject, "captures, nonces and logs; every row recomputed"),
        (_more_panels, "captures, nonces and logs; every row recomputed"),
        (_qualify, "verdict"),
        (_full, "profile"),
        (_longer_deadline, "profile"),
        (_survivor, "self-test matrix"),
        (_score, "no score"),
        (_claims, "no score"),
        (_other_manifest, "evidence manifest"),
    ],
)
def test_a_forged_certificate_is_refused_even_when_sealed_anew(
    certified: Certified, tmp_path: Path, change: Callable[[dict], None], step: str
) -> None:
    assert step in wrong(rewritten(certified, tmp_path, change))


def test_two_hundred_single_byte_changes_are_all_refused(certified: Certified, tmp_path: Path) -> None:
    random_ = random.Random(300)
    copy_ = copied(certified, tmp_path)
    files = [copy_.path, *sorted(p for p in copy_.evidence.folder.rglob("*") if p.is_file())]
    for number in range(200):
        path = copy_.path if number % 2 else random_.choice(files)
        original = path.read_bytes()
        at = random_.randrange(len(original))
        path.write_bytes(original[:at] + bytes([original[at] ^ (1 << random_.randrange(8))]) + original[at + 1 :])
        steps = verify.steps(verify.Request(copy_.path, soon_after(certified), fleet=known_panels.fleet()))
        assert any(line.found == verify.WRONG for line in steps), f"change {number} of {path.name} at {at}"
        path.write_bytes(original)


def soon_after(certified: Certified) -> str:
    """A moment at which the certificate is valid."""
    return certified.statement["predicate"]["certificate"]["issued_at"]


def test_a_file_added_to_the_evidence_is_refused(certified: Certified, tmp_path: Path) -> None:
    forged = copied(certified, tmp_path)
    (forged.evidence.folder / "extra.txt").write_text("more")
    assert "evidence manifest" in wrong(forged.path)


def test_an_expired_certificate_is_refused(certified: Certified) -> None:
    assert wrong(certified.path, now="2099-01-01T00:00:00Z") == ["validity"]


def test_a_certificate_from_the_future_is_refused(certified: Certified) -> None:
    assert wrong(certified.path, now="2020-01-01T00:00:00Z") == ["validity"]


def test_an_older_version_than_seen_is_refused(certified: Certified) -> None:
    assert wrong(certified.path, last_version=2) == ["version"]


def test_pinned_digests_are_held(certified: Certified) -> None:
    assert wrong(certified.path, expected=(("catalogue", "0" * 64), ("profile", "0" * 64))) == ["profile", "catalogue"]


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A private key, its public key, and somebody else's."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    paths = []
    for name in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        for suffix, data in (("key", private), ("pub", public)):
            path = tmp_path / f"{name}.{suffix}"
            path.write_bytes(data)
            paths.append(path)
    return paths[0], paths[1], paths[3]


def test_a_signature_is_checked_with_its_key(
    certified: Certified, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    signed = copied(certified, tmp_path / "signed")
    certificate_file.write(signed.path, certified.statement, keys[0])
    found = lines(signed.path, key=keys[1])
    assert verify.holds(list(found.values())) and found["signature"].said.startswith("valid")
    assert wrong(signed.path, key=keys[2]) == ["signature"]


def test_a_key_demands_a_signature(certified: Certified, keys: tuple[Path, Path, Path]) -> None:
    assert wrong(certified.path, key=keys[1]) == ["signature"]


def test_an_unsigned_certificate_says_so(certified: Certified) -> None:
    assert "unsigned" in lines(certified.path)["signature"].said


def test_a_missing_certificate_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        list(verify.steps(verify.Request(tmp_path / "none.json", SOON)))


def test_verification_imports_no_tau2(certified: Certified) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from replaykit.certify import verify\n"
        f"list(verify.steps(verify.Request(Path({str(certified.path)!r}), '2026-12-01T00:00:00Z')))\n"
        "assert not any(m == 'tau2' or m.startswith('tau2.') for m in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
