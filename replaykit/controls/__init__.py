"""Labelled offline controls and the loopback provider that lets them speak over real wires."""

from replaykit.controls.faults import Fault, Schedule
from replaykit.controls.identities import Action, Identity, Scenario, one_exchange, reference, scripted
from replaykit.controls.journal import Connection, Exchange
from replaykit.controls.replies import Call, Reply
from replaykit.controls.server import ControlProvider

__all__ = [
    "Action",
    "Call",
    "Connection",
    "ControlProvider",
    "Exchange",
    "Fault",
    "Identity",
    "Reply",
    "Scenario",
    "Schedule",
    "one_exchange",
    "reference",
    "scripted",
]
