"""Pointers that a comparison leaves out, with ``*`` for any one step, and what each of them took out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replaykit.errors import UsageError

IGNORED = {"$ignored": True}
"""Stands for a list item that was left out, so that the others keep their places."""


class Ignored:
    """The pointers of one comparison.

    Args:
        pointers: JSON pointers from the top of an episode's document; what is below a pointer is left out with it.

    Raises:
        UsageError: a pointer does not begin with a slash.
    """

    def __init__(self, pointers: Iterable[str] = ()) -> None:
        self.counts = dict.fromkeys(pointers, 0)
        for pointer in self.counts:
            if not pointer.startswith("/"):
                raise UsageError(
                    f"--ignore {pointer!r} is no JSON pointer: write it like /requests/*/messages/*/content"
                )
        self._patterns = [(pointer, _steps(pointer)) for pointer in self.counts]

    def without(self, value: Any, *path: object) -> Any:
        """The value at a place of the document without what is ignored; unchanged parts are shared."""
        here = tuple(map(str, path))
        patterns = [(p, steps) for p, steps in self._patterns if _overlaps(steps, here)]
        if not patterns:
            return value
        return self._pruned(value, [(pointer, steps[len(here) :]) for pointer, steps in patterns])

    def touches(self, *path: object) -> bool:
        """Whether anything at or below a place may be ignored."""
        here = tuple(map(str, path))
        return any(_overlaps(steps, here) for _, steps in self._patterns)

    def covers(self, *path: object) -> bool:
        """Whether a whole place is ignored; counts it."""
        here = tuple(map(str, path))
        pointer = next((p for p, steps in self._patterns if len(steps) <= len(here) and _overlaps(steps, here)), None)
        if pointer is not None:
            self.counts[pointer] += 1
        return pointer is not None

    def _pruned(self, value: Any, patterns: list[tuple[str, tuple[str, ...]]]) -> Any:
        if isinstance(value, dict):
            kept = {key: self._member(part, str(key), patterns) for key, part in value.items()}
            return {key: part for key, part in kept.items() if part is not IGNORED}
        if isinstance(value, list):
            return [self._member(part, str(i), patterns) for i, part in enumerate(value)]
        return value

    def _member(self, part: Any, key: str, patterns: list[tuple[str, tuple[str, ...]]]) -> Any:
        below = [(pointer, steps[1:]) for pointer, steps in patterns if steps and steps[0] in ("*", key)]
        whole = next((pointer for pointer, steps in below if not steps), None)
        if whole is not None:
            self.counts[whole] += 1
            return IGNORED
        return self._pruned(part, below) if below else part


def _overlaps(steps: tuple[str, ...], here: tuple[str, ...]) -> bool:
    return all(a in ("*", b) for a, b in zip(steps, here, strict=False))


def _steps(pointer: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
