"""Made-up episodes for reports and viewer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from .script import TOOLS, Script


@pytest.fixture(scope="session")
def domains():
    """What the fleet says of the retail domain, in little."""
    return {"retail": SimpleNamespace(tools=list(TOOLS), write_tools=["cancel_pending_order"])}


@pytest.fixture
def script(tmp_path):
    """A function that begins an episode's script."""
    return lambda name="episode", **header: Script(tmp_path / f"{name}.cassette.jsonl", **header)


@pytest.fixture
def cancelled(script):
    """A complete episode: authenticated, confirmed, one order cancelled."""

    def make(name="cancelled", closing="Your order is cancelled.", **result):
        row = {"before": {"status": "pending", "items": [1]}, "after": {"status": "cancelled", "items": [1]}}
        played = (
            script(name)
            .customer("Please cancel my order #W1, a@example.com.")
            .learner(None, ("find_user_id_by_email", {"email": "a@example.com"}))
            .result("anna_1")
            .learner("Shall I cancel #W1?")
            .customer("Yes, please.")
            .learner(None, ("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}))
            .result('{"order_id": "#W1", "status": "cancelled", "price": 50.0}')
            .learner(closing)
            .customer("Thanks. ###STOP###")
            .judge('{"results": []}')
        )
        ending = {"db_changes": {"orders": {"#W1": row}}, "diagnostics": [{"name": "judge.all_true_default"}]}
        actions = [{"name": "cancel_pending_order", "arguments": {"order_id": "#W1", "reason": "no longer needed"}}]
        return played.end(**{**ending, "reference_actions": actions, **result})

    return make
