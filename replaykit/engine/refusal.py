"""While an episode runs, a model call from anywhere but the three seats is refused, and remembered.

tau2 has one door to its model library: ``completion`` in its ``llm_utils``. The seats do not use it. tau2 swallows
exceptions in places (its repetition checker does), so a refused call is kept and raised again when the episode ends.
Other users of tau2 in the process, in other threads or between episodes, are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from types import ModuleType
from typing import Any

from replaykit.errors import ModelCallRefused

_calls: ContextVar[list[ModelCallRefused] | None] = ContextVar("replaykit_refused_calls", default=None)
_lock = Lock()
_episodes = 0


@contextmanager
def refused(model_calls: ModuleType) -> Iterator[None]:
    """Refuse model calls of this context while the block runs.

    Args:
        model_calls: tau2's ``utils.llm_utils``.

    Raises:
        ModelCallRefused: at the call, and at the end of the block if it was swallowed.
    """
    calls: list[ModelCallRefused] = []
    token = _calls.set(calls)
    _enter(model_calls)
    try:
        yield
    finally:
        _leave(model_calls)
        _calls.reset(token)
    if calls:
        raise calls[0]


def _enter(model_calls: ModuleType) -> None:
    global _episodes
    with _lock:
        if not _episodes:
            model_calls.completion = _door(model_calls.completion)
        _episodes += 1


def _leave(model_calls: ModuleType) -> None:
    global _episodes
    with _lock:
        _episodes -= 1
        if not _episodes:
            model_calls.completion = model_calls.completion.original


def _door(original: Any) -> Any:
    def completion(*arguments: Any, **options: Any) -> Any:
        calls = _calls.get()
        if calls is None:
            return original(*arguments, **options)
        model = options.get("model") or (arguments[0] if arguments else "unknown")
        calls.append(
            ModelCallRefused(f"tau2 asked the model {model!r} from outside the three seats, so the call was refused")
        )
        raise calls[-1]

    completion.original = original
    return completion
