"""All checks, in the order of the catalogue."""

from __future__ import annotations

from functools import cache

from replaykit import canonical
from replaykit.certify import family_a, family_b, family_c, family_d, family_e, family_f, family_g, family_h
from replaykit.certify.check import Check

ID = "replaykit-checks-1"
HARNESS = {
    "H00": "the control's answers are whole and well-formed where no fault was scheduled",
    "H01": "faults and nonces are those fixed before the run",
    "H02": "clocks are monotonic",
    "H03": "no known-bad passed the check that targets it",
    "H04": "every check caught at least one known-bad",
    "H05": "the known-good transports passed everything",
    "H06": "journal and caller's log agree in count",
}


@cache
def checks() -> tuple[Check, ...]:
    """C01 to C50."""
    families = (family_a, family_b, family_c, family_d, family_e, family_f, family_g, family_h)
    return tuple(check for family in families for check in family.checks())


def check(id_: str) -> Check:
    """One check.

    Raises:
        KeyError: there is no such check.
    """
    return {c.id: c for c in checks()}[id_]


def digest() -> str:
    """SHA-256 over what every check is called, how severe it is and which codes it gives."""
    return canonical.digest([[c.id, c.title, c.severity, c.scope, list(c.codes)] for c in checks()])
