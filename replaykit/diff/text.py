"""Where two texts differ, shown within the line, in time that does not grow out of hand with their length."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from typing import Any

from replaykit.diff.leaves import Walk
from replaykit.difference import Difference

Segments = list[tuple[str, str]]
"""``("=", text)`` on both sides, ``("-", text)`` on the left only, ``("+", text)`` on the right only."""
CONTEXT = 40
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 600


def segments(left: str, right: str) -> Segments:
    """The two texts as one line of kept, removed and added parts; long kept parts are cut to their ends."""
    ours, theirs = _WORDS.findall(left), _WORDS.findall(right)
    head = _common(ours, theirs)
    tail = _common(ours[head:][::-1], theirs[head:][::-1])
    middle = _parts(ours[head : len(ours) - tail], theirs[head : len(theirs) - tail])
    whole = [("=", "".join(ours[:head])), *middle, ("=", "".join(ours[len(ours) - tail :]) if tail else "")]
    return _cut([part for part in whole if part[1]])


def in_json(left: Any, right: Any) -> list[Difference] | None:
    """Differences inside two JSON texts (tool arguments), or None when one of them is none.

    An empty list: the same value in another spelling.
    """
    try:
        values = [json.loads(text) for text in (left, right)]
    except (TypeError, ValueError, RecursionError):
        return None
    if not all(isinstance(v, (dict, list)) for v in values):
        return None
    walk = Walk(10_000)
    found = walk.compare(*values)
    return None if walk.unfinished else found


def _common(left: list, right: list) -> int:
    count = min(len(left), len(right))
    return next((i for i in range(count) if left[i] != right[i]), count)


def _parts(left: list[str], right: list[str]) -> Segments:
    if max(len(left), len(right)) > _MOST_WORDS:
        return [("-", "".join(left)), ("+", "".join(right))]
    parts: Segments = []
    for word, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if word == "equal":
            parts.append(("=", "".join(left[i1:i2])))
        else:
            parts += [("-", "".join(left[i1:i2])), ("+", "".join(right[j1:j2]))]
    return parts


def _cut(parts: Segments) -> Segments:
    last = len(parts) - 1
    return [(word, _shorter(text, i > 0, i < last) if word == "=" else text) for i, (word, text) in enumerate(parts)]


def _shorter(text: str, has_before: bool, has_after: bool) -> str:
    """A kept part without what is far from the changes beside it."""
    head = text[:CONTEXT] if has_before else ""
    tail = text[-CONTEXT:] if has_after else ""
    return text if len(text) <= len(head) + len(tail) + 1 else f"{head}…{tail}"
