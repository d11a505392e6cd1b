"""A check: what it is called, what it asks, and the pure function that judges what was captured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replaykit.certify.finding import Failed, Finding, Unseen
from replaykit.certify.probe import Probe
from replaykit.certify.profile import Profile
from replaykit.certify.views import Views, common
from replaykit.errors import EvidenceError

_UNREADABLE = (EvidenceError, KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration)


@dataclass(frozen=True)
class Check:
    """One check of the catalogue.

    Attributes:
        id: ``C01`` to ``C50``.
        severity: ``MUST`` or ``SHOULD``.
        scope: ``transport``, ``seat`` or ``panel``.
        codes: The codes it may give beside those of the common rules.
        probes: What it asks, by profile; empty for panel checks.
        judge: Views of one probe to durations worth keeping, or `Failed`. It runs before the common rules.
        judge_panel: The same for the capture of one panel.
    """

    id: str
    title: str
    severity: str
    scope: str
    codes: tuple[str, ...]
    probes: Callable[[Profile], list[Probe]] = lambda profile: []
    judge: Callable[[Views], Mapping[str, int] | None] = lambda views: None
    judge_panel: Callable[[Any], Mapping[str, int] | None] | None = None

    def evaluate(self, captures: Mapping[str, dict], profile: Profile) -> list[Finding]:
        """The findings of its probes; the same function judges at the run and at the verification.

        Args:
            captures: Capture by probe name.
        """
        return [judged(self, probe, captures.get(probe.name), profile) for probe in self.probes(profile)]

    def evaluate_panel(self, views: Callable[[], Any]) -> Finding:
        """The finding for one panel.

        Args:
            views: Reads the panel's capture.
        """

        def look() -> tuple[Mapping[str, int] | None, int]:
            seen = views()
            return self.judge_panel(seen), seen.common()  # type: ignore[misc]

        return _guarded(look)


def judged(check: Check, probe: Probe, capture: dict | None, profile: Profile) -> Finding:
    """The finding for one probe."""
    if capture is None:
        return Finding("NOT_EXERCISED", "not_captured", probe.name)
    if "error" in capture:
        return Finding("ERROR", "machinery", f"{probe.name}: {capture['error']}")

    def look() -> tuple[Mapping[str, int] | None, int]:
        views = Views(probe, capture, profile)
        return check.judge(views), common(views)

    return _guarded(look)


def _guarded(look: Callable[[], tuple[Mapping[str, int] | None, int]]) -> Finding:
    try:
        timing, exercised = look()
    except Failed as failed:
        return Finding("FAIL", failed.code, failed.where)
    except Unseen as unseen:
        return Finding("NOT_EXERCISED", "not_seen", str(unseen))
    except _UNREADABLE as error:
        return Finding("ERROR", "unreadable", f"{type(error).__name__}: {error}")
    if not exercised:
        return Finding("NOT_EXERCISED", "nothing_exchanged")
    return Finding("PASS", exercised=exercised, timing_ms=dict(timing or {}))
