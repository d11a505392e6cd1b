"""Certificates and their evidence on disk: atomic writes, bounded reads, a manifest with digests, signatures."""

from __future__ import annotations

import base64
import json
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replaykit import canonical, certificate
from replaykit.errors import EvidenceError, UsageError
from replaykit.store import atomic

MANIFEST = "manifest.json"
MANIFEST_SCHEMA = "replaykit.evidence/1"
PLAN = "plan.json"
MAX_EVIDENCE = 256 * 1024 * 1024
_SUFFIX = ".json.xz"


class Evidence:
    """The folder of one certification's evidence.

    Args:
        folder: Made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, value: Any) -> None:
        """Write one part, compressed, as a whole; ``name`` is a path without suffix."""
        data = canonical.ordered(value)
        atomic.write_bytes(self.folder / (name + _SUFFIX), lzma.compress(data, preset=1))

    def has(self, name: str) -> bool:
        """Whether a part is there."""
        return (self.folder / (name + _SUFFIX)).is_file()

    def read(self, name: str) -> Any:
        """One part.

        Raises:
            EvidenceError: it is missing, damaged or too large.
        """
        path = self.folder / (name + _SUFFIX)
        try:
            unpacked = lzma.LZMADecompressor().decompress(path.read_bytes(), MAX_EVIDENCE)
            return json.loads(unpacked.decode("utf-8", "surrogatepass"))
        except (OSError, ValueError, lzma.LZMAError, EOFError, RecursionError) as error:
            raise EvidenceError(f"the evidence cannot be read: {error}", path) from error

    def write_plan(self, plan: dict) -> None:
        """Write the plan, before anything is asked."""
        atomic.write_text(self.folder / PLAN, canonical.pretty(plan))

    def read_plan(self) -> dict | None:
        """The plan, or None when there is none.

        Raises:
            EvidenceError: it cannot be read.
        """
        path = self.folder / PLAN
        if not path.exists():
            return None
        try:
            plan = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise EvidenceError(f"the plan cannot be read: {error}", path) from error
        if not isinstance(plan, dict):
            raise EvidenceError("the plan is no object", path)
        return plan

    def write_manifest(self) -> tuple[str, int, int]:
        """Write the manifest over all files.

        Returns:
            Its digest, the number of files, the sum of their bytes.
        """
        files = [self._entry(path) for path in self._files()]
        text = canonical.pretty({"schema": MANIFEST_SCHEMA, "files": files})
        atomic.write_text(self.folder / MANIFEST, text)
        return canonical.sha256(text.encode("utf-8")), len(files), sum(f["bytes"] for f in files)

    def check_manifest(self, digest: str) -> int:
        """Check the manifest's digest, and every file against it; no file may be missing or added.

        Returns:
            The number of files.

        Raises:
            EvidenceError: the first thing that is wrong.
        """
        files = self.manifest(digest)
        for entry in files:
            path = self.folder / entry["path"]
            if not path.is_file():
                raise EvidenceError("named in the manifest, and missing", path)
            if self._entry(path) != entry:
                raise EvidenceError("changed since the manifest was written", path)
        added = {str(p.relative_to(self.folder)) for p in self._files()} - {f["path"] for f in files}
        if added:
            raise EvidenceError("not named in the manifest", self.folder / min(added))
        return len(files)

    def manifest(self, digest: str) -> list[dict]:
        """The entries of the manifest.

        Raises:
            EvidenceError: it is missing, has another digest, or is no manifest.
        """
        path = self.folder / MANIFEST
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EvidenceError(f"the manifest cannot be read: {error.strerror}", path) from error
        if canonical.sha256(data) != digest:
            raise EvidenceError("the manifest has another digest than the certificate says", path)
        try:
            files = json.loads(data)["files"]
            if not all(
                set(f) == {"path", "bytes", "sha256"}
                and not Path(f["path"]).is_absolute()
                and ".." not in Path(f["path"]).parts
                for f in files
            ):
                raise ValueError("an entry is none")
        except (ValueError, KeyError, TypeError) as error:
            raise EvidenceError(f"not a manifest: {error}", path) from error
        return files

    def _entry(self, path: Path) -> dict:
        data = path.read_bytes()
        return {"path": str(path.relative_to(self.folder)), "bytes": len(data), "sha256": canonical.sha256(data)}

    def _files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.name != MANIFEST and not path.name.startswith("."):
                yield path


def write(path: Path, statement: dict, key_path: Path | None = None) -> None:
    """Write a certificate; signed when a key is given.

    Raises:
        UsageError: the key cannot be used.
    """
    data = certificate.to_bytes(statement)
    if key_path is not None:
        data = canonical.sorted_(certificate.envelope(data, [sign(key_path, data)]))
    atomic.write_bytes(path, data)


def read(path: Path) -> tuple[dict, list[dict], bytes]:
    """A certificate: statement, signatures, and the file's bytes.

    Raises:
        UsageError: there is no such file.
        EvidenceError: it is no certificate.
    """
    try:
        with path.open("rb") as file:
            data = file.read(certificate.MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return *certificate.parse(data), data
    except EvidenceError as error:
        raise EvidenceError(error.reason, path) from error


def sign(key_path: Path, payload: bytes) -> dict[str, str]:
    """An ed25519 signature over the payload, as DSSE has it.

    Raises:
        UsageError: the key is missing, of another kind, or the library is not installed.
    """
    serialization, ed25519 = _cryptography()
    try:
        key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{key_path} cannot be used as a private key: {error}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError(f"{key_path} is no ed25519 key; make one with 'openssl genpkey -algorithm ed25519'")
    signature = key.sign(certificate.pre_authentication(payload))
    return {"keyid": _key_id(key.public_key(), serialization), "sig": base64.b64encode(signature).decode()}


def check_signature(public_path: Path, payload: bytes, signatures: list[dict]) -> str:
    """Check that one of the signatures is this key's and valid.

    Returns:
        The id of the key.

    Raises:
        UsageError: the key cannot be used.
        EvidenceError: no signature of this key, or one that does not fit.
    """
    serialization, ed25519 = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        key = serialization.load_pem_public_key(public_path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{public_path} cannot be used as a public key: {error}") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError(f"{public_path} is no ed25519 key")
    key_id = _key_id(key, serialization)
    for signature in signatures:
        if signature["keyid"] == key_id:
            try:
                key.verify(base64.b64decode(signature["sig"], validate=True), certificate.pre_authentication(payload))
            except (InvalidSignature, ValueError) as error:
                raise EvidenceError("the signature does not fit the certificate") from error
            return key_id
    raise EvidenceError("the certificate carries no signature of this key")


def find(paths: list[Path]) -> list[Path]:
    """Certificates below the paths, by name: ``*certificate*.json``."""
    found: set[Path] = set()
    for path in paths:
        found |= {path} if path.is_file() else {p for p in path.rglob("*certificate*.json") if p.is_file()}
    return sorted(found)


def _key_id(public: Any, serialization: Any) -> str:
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return "sha256:" + canonical.sha256(raw)


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("signatures need the cryptography library: install replaykit[sign]") from error
    return serialization, ed25519


def own_folder(path: Path) -> Path:
    """Where a certificate's evidence is unless somebody says otherwise."""
    return path.parent / (
        path.stem.replace("certificate", "evidence")
        if "certificate" in path.stem
        else os.fspath(path.stem) + "-evidence"
    )
