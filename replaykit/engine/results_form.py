"""What a native results file says beside its simulations, in tau2's own form: tasks, guidelines, kinds of tools."""

from __future__ import annotations

from typing import Any

from replaykit.engine import data
from replaykit.engine.tau2_engine import Tau2Engine


def task(engine: Tau2Engine, domain: str, scenario_id: str) -> dict:
    """The engine's task as tau2 writes it."""
    return engine.domain(domain).tasks[scenario_id].model_dump(mode="json")


def given_task(engine: Tau2Engine, domain: str, raw: dict) -> dict:
    """A task from a results file, read and written by the engine's tau2, so that two lines of tau2 compare.

    Raises:
        ValueError: it is no task.
    """
    return engine.domain(domain).native.tasks.Task.model_validate(raw).model_dump(mode="json")


def guidelines(engine: Tau2Engine) -> str:
    """The customer's guideline text."""
    return data.guidelines(engine.found)


def tool_kinds(engine: Tau2Engine, domain: str) -> dict[str, str]:
    """Tool name -> ``read``, ``write``, ``think`` or ``generic``."""
    toolkit: Any = engine.domain(domain).environment().tools
    return {name: toolkit.tool_type(name).value for name in toolkit.tools}
