"""What a score needs of a final policy state, short enough for a cassette's footer."""

from __future__ import annotations

from collections import Counter


def counts(state: dict) -> dict:
    """The counts of a final state.

    Args:
        state: `PolicyState.to_dict`.

    Returns:
        ``{"transferred": bool, "violations": {RULE: int}, "format_errors": {KIND: int}}``, without zeros.

    Raises:
        KeyError, TypeError: the data is not a policy state.
    """
    return {
        "transferred": state["transfer"]["attempted"],
        "violations": _counted([v["rule"] for v in state["violations"]]),
        "format_errors": _counted([e["kind"] for e in state["format_errors"]]),
    }


def _counted(names: list[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
