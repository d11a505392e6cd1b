"""Transports by name: built in, registered by another package, or ``module:attribute``. Importing this loads none.

A factory takes the keywords ``base_url, model, key, sender, headers, body_fields, dialect`` and
returns a `ReplySource`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from replaykit.errors import UsageError

ENTRY_POINT_GROUP = "replaykit.transports"
BUILT_IN = {
    "openai-chat": "replaykit.transports.openai_chat:OpenAIChat",
    "openai-responses": "replaykit.transports.openai_responses:OpenAIResponses",
    "anthropic-messages": "replaykit.transports.anthropic_messages:AnthropicMessages",
    "gemini-generate": "replaykit.transports.gemini_generate:GeminiGenerate",
    "litellm": "replaykit.transports.litellm:LiteLLM",
    "scripted": "replaykit.transports.scripted:Scripted",
}


def names() -> dict[str, str]:
    """All names that `load` knows, each with where it comes from: ``module:attribute``."""
    return {name: place for name, (place, *_) in sorted(_registered().items())} | BUILT_IN


def load(name: str) -> Callable[..., Any]:
    """The factory of a transport; only its own module is imported.

    Args:
        name: Of a built-in or registered transport, or ``module:attribute``.

    Raises:
        UsageError: no such transport, two packages register the name, or it cannot be imported.
    """
    place = name if ":" in name else BUILT_IN.get(name) or _registered_place(name)
    module, _, attribute = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"the transport {name} cannot be loaded from {place}: {error}") from error
    if not callable(found):
        raise UsageError(f"the transport {name} at {place} is no factory, since it cannot be called")
    return found


def _registered_place(name: str) -> str:
    places = sorted(set(_registered().get(name, ())))
    if len(places) > 1:
        raise UsageError(f"the transport {name} is registered twice ({', '.join(places)}); name it as module:attribute")
    if not places:
        raise UsageError(
            f"there is no transport {name!r}; choose from {', '.join(names())}, or name it as module:attribute"
        )
    return places[0]


def _registered() -> dict[str, list[str]]:
    from importlib.metadata import entry_points

    places: dict[str, list[str]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        places.setdefault(entry.name, []).append(f"{entry.module}:{entry.attr}")
    return places
