"""Untrusted data of a hoped-for shape: what has another shape counts as nothing."""

from __future__ import annotations

import json
from typing import Any


def as_json(value: Any) -> str:
    """Plain data on one line."""
    return json.dumps(value, ensure_ascii=False)


def members(value: Any) -> dict:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str | None:
    """A value as text; None stays None."""
    return None if value is None else str(value)


def rows(value: Any) -> list[dict]:
    """The objects of a list; nothing when it is none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
