"""A quick look at cassettes: header and footer only, so that a folder of ten thousand lists in seconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from replaykit.cassette import SCHEMA, CassetteSummary
from replaykit.errors import EvidenceError, UsageError
from replaykit.store import container, lines, reader, remote

_LOOK = 16 * 1024


def scan(path: str | os.PathLike[str]) -> CassetteSummary:
    """What the header and the footer of a cassette say. The records between are not verified: see `reader.read`.

    Raises:
        UsageError: there is no such file, or it may not be read.
        EvidenceError: it is no cassette, or its header or footer was changed.
        SchemaTooNew: a newer replaykit wrote it.
    """
    target = remote.located(path)
    if isinstance(target, remote.RemotePath):
        with target.opened() as (file, size):
            return _scan(file, size, target)
    try:
        with open(target, "rb", buffering=0) as file:
            return _scan(file, os.fstat(file.fileno()).st_size, target)
    except OSError as error:
        raise UsageError(f"{target} cannot be read: {error.strerror}") from error


def _scan(file: BinaryIO, size: int, path: Any) -> CassetteSummary:
    head = file.read(_LOOK)
    if head[:4] == container.MAGIC:
        return _scan_compressed(head + file.read(lines.MAX_FILE), path)
    while b"\n" not in head and len(head) < min(size, lines.MAX_LINE):
        head += file.read(len(head)) or b"\n"
    header = _header(head[:head.find(b"\n") + 1], path)
    tail = head if size <= len(head) else _tail(file, size)
    return CassetteSummary(path, header, _footer(tail, size, path), size)


def _tail(file: BinaryIO, size: int) -> bytes:
    """The end of a file: its last line and enough of the one before to hold its sum."""
    length = _LOOK
    while True:
        file.seek(max(0, size - length))
        tail = file.read(length)
        if tail.rfind(b"\n", 0, len(tail) - 1) > 64 or length >= min(size, lines.MAX_LINE):
            return tail
        length *= 4


def _header(line: bytes, path: Path) -> dict:
    if not line:
        raise EvidenceError("no whole header: not a cassette, or cut within its first record", path, 0)
    record = _of_this_schema(line)
    if record is None:
        reader.check_schema(line, path)
        record = _read(line, SCHEMA, path, 0)
    reader.check_header(record, path)
    return {key: value for key, value in record.items() if key != "kind"}


def _of_this_schema(line: bytes) -> dict | None:
    """The header if all is well, parsed once; what is wrong is found out the long way."""
    try:
        record = lines.read(line, SCHEMA)[0]
    except ValueError:
        return None
    return record if record.get("schema") == SCHEMA else None


def _footer(tail: bytes, size: int, path: Path) -> dict | None:
    start = tail.rfind(b"\n", 0, len(tail) - 1) + 1
    if not tail.endswith(b"\n") or not tail.startswith(b'{"kind":"footer"', start):
        return None
    previous = lines.sum_of(tail[:start])
    if previous is None:
        raise EvidenceError("the record before the footer was changed", path, size - len(tail) + start - 1)
    return _without_kind(_read(tail[start:], previous, path, size - len(tail) + start))


def _scan_compressed(data: bytes, path: Path) -> CassetteSummary:
    try:
        frames, offset = container.split_index(data)
    except ValueError as error:
        raise EvidenceError(str(error), path, 0) from error
    header = _header(container.first_line(frames, path), path)
    if offset is None:
        records = reader.verify(reader.expand(data, path), path)
        footer = _without_kind(records.records[-1]) if records.complete else None
    else:
        line = container.decompress(frames[offset:], lines.MAX_LINE, path)
        footer = _without_kind(_read(line, None, path, offset))
    return CassetteSummary(path, header, footer, len(data))


def _read(line: bytes, previous: str | None, path: Path, offset: int) -> dict:
    try:
        return lines.read(line, previous)[0]
    except ValueError as error:
        raise EvidenceError(str(error), path, offset) from error


def _without_kind(record: dict) -> dict:
    return {key: value for key, value in record.items() if key != "kind"}
