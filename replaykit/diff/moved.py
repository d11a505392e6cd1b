"""Which members of a list were both moved and changed: deepdiff pairs them by how near they are.

Only what alignment left over on both sides is given to it, in small numbers, and only the pairing is taken from it:
what differs inside a pair is said by `leaves`, which tells types apart and knows no silent limit.
"""

from __future__ import annotations

from typing import Any

from replaykit import canonical

MOST = 16  # leftovers a side: the pairing is quadratic in them, and each step is slow

LARGEST = 64 * 1024  # bytes of all leftovers


def pairs(left: list[Any], right: list[Any]) -> list[tuple[int, int]]:
    """Positions of members that are the same one, changed; in order of the left list."""
    if not 0 < len(left) <= MOST or not 0 < len(right) <= MOST or not all(isinstance(v, dict) for v in (*left, *right)):
        return []
    if len(canonical.ordered([left, right])) > LARGEST:
        return []
    from deepdiff import DeepDiff  # takes a quarter of a second to import

    tree = DeepDiff(
        left, right, view="tree", ignore_order=True, report_repetition=True, cutoff_intersection_for_pairs=1
    )
    found: dict[int, int] = {}
    for levels in tree.values():
        for level in levels if not isinstance(levels, dict) else ():
            ours, theirs = level.path(output_format="list"), level.path(output_format="list", use_t2=True)
            if len(ours) > 1 and len(theirs) > 1:  # a place inside a member that is on both sides
                found.setdefault(ours[0], theirs[0])
    used: set[int] = set()
    return [(i, j) for i, j in sorted(found.items()) if not (j in used or used.add(j))]
