"""Figures of evaluation, panel by panel: there is no figure across panels."""

from replaykit.scoring.arms import compare_arms
from replaykit.scoring.interval import component_interval
from replaykit.scoring.panels import across_panels, confusion_of_panels, reliability, score_panels
from replaykit.scoring.trial import SeatUse, Trial, seat_use

__all__ = [
    "SeatUse",
    "Trial",
    "across_panels",
    "compare_arms",
    "component_interval",
    "confusion_of_panels",
    "reliability",
    "score_panels",
    "seat_use",
]
