"""Schema versions of cassettes: one step from each version to the next, chained.

A step takes the records of version N, header first, and gives those of version N + 1. Sums and digests are checked on
the file's own bytes before any step runs. A file of each version stays in the tests for ever and is never edited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from replaykit.cassette import VERSION
from replaykit.errors import InternalError

Step = Callable[[list[dict]], list[dict]]
STEPS: Mapping[int, Step] = {}
_SCHEMA = re.compile(r"replaykit\.cassette/([1-9][0-9]{0,5})\Z")


def version_of(schema: Any) -> int | None:
    """The integer in a schema name, or None when it names no cassette schema."""
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    return int(match[1]) if match else None


def migrate(
    records: list[dict], version: int, steps: Mapping[int, Step] = STEPS, current: int = VERSION
) -> list[dict]:
    """Records of an older version in the current one.

    Raises:
        InternalError: a step is missing.
    """
    for number in range(version, current):
        if number not in steps:
            raise InternalError(f"no step leads from cassette schema {number} to {number + 1}")
        records = steps[number](records)
    return records
