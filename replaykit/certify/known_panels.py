"""Two panels without tau2, for the self-test: one with a judge and one without."""

from __future__ import annotations

from replaykit import canonical
from replaykit.certify.engine_less import ScriptEngine
from replaykit.certify.probe import tool
from replaykit.certify.subject import Subject
from replaykit.fleet import Fleet, parse

JUDGED = ("1",)
_BARE = {
    "name": "list_all",
    "description": "Lists everything.",
    "parameters": {"properties": {}, "title": "parameters", "type": "object"},
}
TOOLS = [
    *(tool(name) for name in ("get_user", "get_order", "cancel_order", "list_items", "send_note", "transfer")),
    {"type": "function", "function": _BARE},
]


def engine(subject: Subject) -> ScriptEngine:
    """The script, asking in the order that the subject's layer gives to tools."""
    return ScriptEngine(TOOLS, JUDGED, subject.layer.order)


def fleet() -> Fleet:
    """A fleet of the two panels."""
    identity = {"transport": "openai-chat", "model": "known-model-1", "arguments": {"temperature": 0.0}}
    zero = "0" * 64
    return parse(
        {
            "schema": "replaykit.fleet/1",
            "source": {
                "repository": "script",
                "revision": "script",
                "distribution": "script",
                "version": "1",
                "license": "MIT",
            },
            "settings": {},
            "budget": {},
            "domains": {
                "airline": {"database_hash": zero, "write_tools": [], "tools": [t["function"]["name"] for t in TOOLS]}
            },
            "rosters": {"upstream-default": {"customer": identity, "judge": identity}},
            "panels": [_panel(str(i), zero) for i in range(2)],
        }
    )


def _panel(scenario: str, zero: str) -> dict:
    judged = scenario in JUDGED
    return {
        "id": f"airline/{scenario}",
        "domain": "airline",
        "scenario": scenario,
        "population": {"scenarios": [scenario]},
        "metric": {"reward_basis": ["DB", "NL_ASSERTION"] if judged else ["DB"]},
        "judge": {"required": judged, "assertions": int(judged)},
        "component": "database:airline",
        "roster": "upstream-default",
        "seeds": {"case": 300, "trial": 626729},
        "reference_final_db_hash": zero,
        "digests": {"scenario": zero, "policy": zero, "database": zero, "tools": canonical.ordered_digest(TOOLS)},
    }
