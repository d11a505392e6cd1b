"""A gateway between the transport and the control provider: what it alters is seen, what it passes on passes."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from replaykit.certify import capture, catalogue, known_panels, panels, profile, subject
from replaykit.certify.control import RoutedProvider
from replaykit.certify.finding import Finding, combined
from replaykit.certify.self_test import panel_finding

from .gateway import gateway

CHECKS = (
    "C01",
    "C04",
    "C09",
    "C12",
    "C13",
    "C17",
    "C20",
    "C22",
    "C24",
    "C25",
    "C28",
    "C30",
    "C32",
    "C34",
    "C35",
    "C48",
    "C49",
)
PANEL_CHECKS = ("C05", "C06", "C08", "C11", "C19", "C47", "C49", "C50")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certified(folder: Path, change: Callable[[dict], dict] | None) -> dict[str, Finding]:
    """Findings through a gateway: probes, and the first panel."""
    port = free_port()
    with gateway(port, change) as url:
        one = subject.load("openai-chat", {}, url)
        terms = profile.of_subject(one.identity(), "fast", gateway=True)
        with RoutedProvider(entropy=(entropy := secrets.token_bytes(16)), port=port) as provider:
            context = capture.Context(entropy, terms, provider)
            checks = [catalogue.check(id_) for id_ in CHECKS]
            found = {
                c.id: combined(
                    c.evaluate({p.name: capture.perform(c.id, p, one, context) for p in c.probes(terms)}, terms)
                )
                for c in checks
            }
            fleet = known_panels.fleet()
            panel = fleet.panels[1]
            data = panels.capture(panel, one, context, known_panels.engine(one), fleet, folder)
    facts = (panel.judge.required, panel.digests.tools)
    return found | {f"panel/{id_}": panel_finding(catalogue.check(id_), data, terms, *facts) for id_ in PANEL_CHECKS}


def failures(found: dict[str, Finding]) -> dict[str, tuple]:
    """What did not pass."""
    return {id_: (f.status, f.code, f.where) for id_, f in found.items() if f.status != "PASS"}


def test_a_transparent_gateway_passes(tmp_path: Path) -> None:
    assert failures(certified(tmp_path, None)) == {}


@pytest.mark.parametrize(
    ("change", "check", "code"),
    [
        (lambda body: {k: v for k, v in body.items() if k != "seed"}, "panel/C05", "setting_missing"),
        (lambda body: body | {"user": "gateway"}, "panel/C08", "undeclared_key"),
        (
            lambda body: body | {"messages": [m | {"content": (m["content"] or "").strip()} for m in body["messages"]]},
            "C12",
            "history_changed",
        ),
        (lambda body: body | ({"tools": body["tools"][::-1]} if "tools" in body else {}), "panel/C19", "tool_order"),
    ],
    ids=["drops the seed", "adds a user", "strips texts", "turns the tools around"],
)
def test_what_a_gateway_alters_is_named(tmp_path: Path, change: Callable[[dict], dict], check: str, code: str) -> None:
    assert certified(tmp_path, change)[check].code == code


def test_calls_at_the_same_time_do_not_apply_behind_a_gateway() -> None:
    terms = profile.of_subject(subject.load("openai-chat", {}).identity(), "fast", gateway=True)
    assert list(terms.not_applicable) == ["C37"]
