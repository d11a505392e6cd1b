"""The engine of this interpreter, its databases, and small ones on which tau2's own functions are quick."""

from __future__ import annotations

import pytest

from replaykit.engine import load, slim
from replaykit.engine.databases import Databases

from . import sequences
from .pairs import Pair


@pytest.fixture(scope="module")
def tau2():
    """The engine, with its log lines left out."""
    engine = load()
    with slim.quiet():
        yield engine


@pytest.fixture(scope="module", params=["airline", "retail"])
def domain(request):
    return request.param


@pytest.fixture(scope="module", params=["shared", "guarded"])
def small(request, tau2, domain):
    """A small database, with shared and with guarded iteration."""
    full = tau2.domain(domain).databases
    return Databases(full._class, sequences.small(full._text, domain), request.param == "shared")


@pytest.fixture(scope="module")
def full(tau2, domain):
    return tau2.domain(domain).databases


@pytest.fixture
def pair(tau2, domain, small):
    return Pair(tau2, domain, small)
