"""The reference solution's end, played once a process instead of once an evaluation.

tau2's evaluator makes two environments: the first replays the episode, the second plays the reference actions only
to be hashed. That second end is the same for every episode of a scenario, so here the second environment knows its
hash and counts the actions it is given. Where that order could not hold, the count does not either, and the
evaluation fails loudly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from replaykit.errors import InternalError


def environments(
    environment_class: type, new_environment: Callable[..., Any], gold_hash: str, action_count: int
) -> Callable[..., Any]:
    """What tau2's environment evaluator makes its environments with, for one evaluation.

    Args:
        environment_class: tau2's own.
        new_environment: Makes a fresh environment.
        gold_hash: Database hash after the scenario's reference actions.
        action_count: How many those are.
    """
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(_known(environment_class)(gold_hash, action_count) if made else new_environment(**options))
        return made[-1]

    return make


@cache
def _known(environment_class: type) -> type:
    class KnownEnvironment(environment_class):  # type: ignore[misc, valid-type]
        """An environment without tools whose end is known."""

        def __init__(self, gold_hash: str, action_count: int) -> None:
            super().__init__("", "")
            self._hash, self._left = gold_hash, action_count

        def make_tool_call(self, *args: Any, **arguments: Any) -> None:
            self._left -= 1

        def get_db_hash(self) -> str:
            if self._left:
                raise InternalError(
                    "tau2's evaluator did not play exactly the reference actions in its second environment"
                )
            return self._hash

    return KnownEnvironment
