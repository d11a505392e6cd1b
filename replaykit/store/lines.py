"""Lines of a cassette: records to bytes and back, each chained to the one before by its ``sum``."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.errors import InternalError, UsageError

MAX_FILE = 256 * 1024 * 1024
MAX_LINE = 64 * 1024 * 1024
MAX_DEPTH = 100
MAX_RECORDS = 100_000
_SUM_LENGTH = 16
_TAIL = re.compile(rb',"sum":"([0-9a-f]{16})"\}\n\Z')
_TAIL_LENGTH = len(b',"sum":""}\n') + _SUM_LENGTH
_START = b'{"kind":"'
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))
_SCAN = json.JSONDecoder().scan_once
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def link(previous: str, body: bytes) -> str:
    """The sum of a line: 16 hex digits over the previous sum and the line without its sum member."""
    return hashlib.sha256(previous.encode("ascii") + body).hexdigest()[:_SUM_LENGTH]


def write(record: dict, previous: str) -> tuple[bytes, str]:
    """A record's line, newline included, and its sum.

    Raises:
        InternalError: the record holds a value that has no JSON form.
    """
    try:
        body = _body(record)
    except (TypeError, RecursionError) as error:
        raise InternalError(f"a {record.get('kind')} record holds a value that has no JSON form: {error}") from error
    total = link(previous, body)
    return b'%s,"sum":"%s"}\n' % (body[:-1], total.encode("ascii")), total


def _body(record: dict) -> bytes:
    try:
        return canonical.line(record)
    except ValueError:  # a NaN or an infinity, which JSON does not have
        return canonical.line(canonical.encode({**record, "floats": True}))


def read(line: bytes, previous: str | None) -> tuple[dict, str]:
    """A record from its line, newline included, and its sum. Without a previous sum the line's own is not checked.

    Raises:
        ValueError: the line is not a whole, unchanged record that follows the previous one; says what is wrong.
    """
    tail = _TAIL.search(line, max(0, len(line) - _TAIL_LENGTH))
    if tail is None:
        raise ValueError("not a record of a cassette")
    body, total = line[:tail.start()] + b"}", tail[1].decode("ascii")
    if previous is not None and link(previous, body) != total:
        raise ValueError("the record was changed, or is not the one that followed here")
    record = parse(body)
    if record.pop("floats", False):
        record = canonical.decode(record)
    return record, total


def parse(body: bytes) -> dict:
    """One JSON object, strictly: no member twice, no NaN, bounded depth, UTF-8.

    Raises:
        ValueError: says what is wrong.
    """
    try:
        if deeper_than(body, MAX_DEPTH):
            raise RecursionError
        record = _loaded(body)
    except UnicodeDecodeError as error:
        raise ValueError("the record is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError("the record is not JSON") from error
    except RecursionError as error:
        raise ValueError(f"the record is nested deeper than {MAX_DEPTH}") from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise ValueError("the record has no kind")
    return record


def sum_of(line: bytes) -> str | None:
    """The sum that a whole line ends with, unchecked; None when it has none."""
    tail = _TAIL.search(line, max(0, len(line) - _TAIL_LENGTH))
    return tail[1].decode("ascii") if tail else None


def may_be_torn(rest: bytes) -> bool:
    """Whether bytes without a newline can be the beginning of a record: a kill cuts, it does not change."""
    begins = rest.startswith(_START) or _START.startswith(rest)
    return begins and not re.search(rb',"sum":"[0-9a-f]{16}"\}.', rest[-_TAIL_LENGTH - 1:], re.DOTALL)


def claim(file: int, path: Path) -> int:
    """Claim an open file for writing until it is closed; closes it when that fails.

    Raises:
        UsageError: another process writes it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise UsageError(f"{path} is being written by another process: wait for it to end") from error
    except OSError:  # a file system without locks, as some network ones are: go on without
        pass
    return file


def _loaded(body: bytes) -> Any:
    """The value in strict JSON. What is written again as it stands names no member twice and holds no NaN."""
    text = body.decode("utf-8")
    try:
        value, end = _SCAN(text, 0)  # without the wrappers of json.loads, which take longer than a short record
        if end == len(text) and canonical.line(value) == body:
            return value
    except (StopIteration, ValueError):
        pass
    return json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant)


def _members(pairs: list[tuple[str, Any]]) -> dict:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("the record names a member twice")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"the record holds {name}, which is not JSON")


def deeper_than(body: bytes, limit: int) -> bool:
    """Whether JSON is nested deeper than a limit."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(plain.split(b'"')[::2]).translate(_ONE_KIND, _OTHERS)
    for _ in range(limit):  # each round takes away the innermost level
        outer = brackets.replace(b"[]", b"")
        if len(outer) == len(brackets):
            break
        brackets = outer
    return b"[]" in brackets or brackets.count(b"[") > limit
