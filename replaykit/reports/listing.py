"""Cassettes at a glance, from their headers and footers: one entry a file, what cannot be read among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from replaykit.errors import ReplaykitError
from replaykit.reports.untrusted import one_line
from replaykit.store import scan

SCHEMA = "replaykit.listing/1"
_MOST = 1e9
_NUMBER = (int, float, type(None))
_WORD = (str, type(None))
_KINDS = {
    "panel": str,
    "arm": str,
    "controls": _WORD,
    "case_seed": int,
    "created_at": str,
    "requests": (int, type(None)),
    "termination": _WORD,
    "reward": _NUMBER,
    "final_db_hash": _WORD,
    "lost_turn": _WORD,
    "diagnostics": list,
    "digest": _WORD,
}


def entries(files: Iterable[Any]) -> Iterator[dict]:
    """An entry for each file: ``cassette`` (path or URL), ``state``, and what header and footer say.

    ``state`` is ``complete``, ``interrupted`` or ``error``; an error has ``error`` (the sentence) and ``exit_code``.
    """
    for file in files:
        try:
            yield _entry(str(file), scan.scan(file))
        except ReplaykitError as error:
            yield {"cassette": str(file), "state": "error", "error": str(error), "exit_code": error.exit_code}
        except (KeyError, TypeError, AttributeError) as error:  # sums are no signatures: anybody can forge a header
            sentence = f"{file}: its header or footer is not well formed: {error}"
            yield {"cassette": str(file), "state": "error", "error": sentence, "exit_code": 5}


def _entry(name: str, found: Any) -> dict:
    header, summary = found.header, found.summary
    entry = {
        "cassette": name,
        "state": "interrupted" if found.interrupted else "complete",
        "panel": found.panel,
        "arm": header["arm"]["name"],
        "controls": header["controls"],
        "case_seed": header["seeds"]["case"],
        "created_at": header["created_at"],
        "bytes": found.size_bytes,
        "requests": found.footer["counts"].get("request", 0) if found.footer else None,
        "termination": summary.get("termination"),
        "reward": summary.get("reward"),
        "final_db_hash": summary.get("final_db_hash"),
        "lost_turn": summary.get("lost_turn"),
        "diagnostics": summary.get("diagnostics", []),
        "digest": found.footer["digest"] if found.footer else None,
    }
    for member, kind in _KINDS.items():
        if not isinstance(entry[member], kind) or isinstance(entry[member], bool):
            raise TypeError(f"its {member} is a {type(entry[member]).__name__}")
    if entry["reward"] is not None and not abs(entry["reward"]) < _MOST:
        raise TypeError("its reward is out of range")
    return entry


def line(entry: dict) -> str:
    """An entry for a person."""
    if entry["state"] == "error":
        return one_line(f"ERROR        {entry['error']}")
    if entry["state"] == "interrupted":
        end = f"{'interrupted':<24} {'':<28}"
    else:
        reward = "unknown" if entry["reward"] is None else f"{entry['reward']:g}"
        end = f"{entry['termination'] or '-':<24} reward {reward:<8} {entry['requests']:>3} requests"
    return one_line(f"{entry['panel']:<12} {entry['arm']:<16} s{entry['case_seed']:<6} {end}  {entry['cassette']}")


def tally(counts: dict[str, int]) -> str:
    """How many there are, by state."""
    total = sum(counts.values())
    words = (("interrupted", "interrupted"), ("error", "unreadable"))
    others = "".join(f", {counts[state]} {word}" for state, word in words if counts.get(state))
    return f"{total} cassette{'' if total == 1 else 's'}{others}"
