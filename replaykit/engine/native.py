"""tau2's modules as one namespace, and the two things every engine builds from them: environments and episodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from replaykit.engine import slim
from replaykit.engine.locate import Found

_MODULES = {
    "messages": "tau2.data_model.message",
    "tasks": "tau2.data_model.tasks",
    "environment": "tau2.environment.environment",
    "toolkit": "tau2.environment.toolkit",
    "orchestrator": "tau2.orchestrator.orchestrator",
    "agent": "tau2.agent.llm_agent",
    "user": "tau2.user.user_simulator",
    "env_evaluator": "tau2.evaluator.evaluator_env",
    "action_evaluator": "tau2.evaluator.evaluator_action",
    "communicate_evaluator": "tau2.evaluator.evaluator_communicate",
    "judge_evaluator": "tau2.evaluator.evaluator_nl_assertions",
    "model_calls": "tau2.utils.llm_utils",
    "airline_tools": "tau2.domains.airline.tools",
    "airline_data": "tau2.domains.airline.data_model",
    "retail_tools": "tau2.domains.retail.tools",
    "retail_data": "tau2.domains.retail.data_model",
}


@dataclass(frozen=True, slots=True)
class Native:
    """tau2's modules by the short names of `_MODULES`.

    Attributes:
        sources: The source file of every tau2 module that was imported, by the module's name.
    """

    modules: dict[str, ModuleType]
    sources: dict[str, str]

    def __getattr__(self, name: str) -> ModuleType:
        try:
            return self.modules[name]
        except KeyError:
            raise AttributeError(name) from None


def load(found: Found) -> Native:
    """Import what an episode needs of tau2, and nothing heavy (see `slim`)."""
    bare = (("tau2", str(found.package_path)),) if found.kind == "pinned" else ()
    with _on_path(found.import_path):
        modules = slim.import_modules(tuple(_MODULES.values()), bare)
    sources = {name: file for name, module in modules.items() if (file := getattr(module, "__file__", None))}
    return Native({short: modules[name] for short, name in _MODULES.items()}, sources)


@contextmanager
def _on_path(folder: Path | None) -> Iterator[None]:
    """Look into a folder first while modules are imported."""
    added = [] if folder is None or str(folder) in sys.path else [str(folder)]
    sys.path[:0] = added
    try:
        yield
    finally:
        for path in added:
            sys.path.remove(path)


def tool_class(native: Native, domain: str) -> Any:
    """The domain's toolkit class."""
    return native.airline_tools.AirlineTools if domain == "airline" else native.retail_tools.RetailTools


def database_class(native: Native, domain: str) -> Any:
    """The domain's database class."""
    return native.airline_data.FlightDB if domain == "airline" else native.retail_data.RetailDB


def tool_modules(native: Native, domain: str) -> tuple[ModuleType, ...]:
    """Every module whose code works on a domain's database."""
    tools, rows = (
        (native.airline_tools, native.airline_data)
        if domain == "airline"
        else (native.retail_tools, native.retail_data)
    )
    return tools, rows, native.toolkit, native.environment
