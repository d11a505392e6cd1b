"""Conversation histories that grow at their end, without doing again what was done for their beginning.

tau2 hands over, and flips for the customer, the whole history at every turn; its messages never change once they
are in it. Doing only what is new keeps an episode's time linear in its length. A history that does not begin with
what was seen before is simply done from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import is_
from types import SimpleNamespace
from typing import Any

from pydantic import PrivateAttr


class Growing:
    """Results for the items of a growing list.

    Args:
        convert: Makes the results of a list of items, one for each.
    """

    def __init__(self, convert: Callable[[list], list]) -> None:
        self._convert = convert
        self._items: list = []
        self._results: list = []

    def __call__(self, items: list) -> list:
        """One result for each item; the very same result objects for items seen before."""
        known = len(self._items)
        if known > len(items) or not all(map(is_, self._items, items)):
            known = 0
        results = self._results[:known] + self._convert(items[known:])
        self._items, self._results = list(items), results
        return list(results)


@cache
def flipping_once(state_class: type) -> type:
    """tau2's customer state that flips every message once, by tau2's own function."""
    flip = state_class.flip_roles

    class UserState(state_class):  # type: ignore[misc, valid-type]
        _flipped: Growing = PrivateAttr(
            default_factory=lambda: Growing(lambda messages: flip(SimpleNamespace(messages=messages)))
        )

        def flip_roles(self) -> list[Any]:
            return self._flipped(self.messages)

    return UserState
