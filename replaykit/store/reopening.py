"""Reopening an interrupted cassette behind its last whole record. What is torn is moved aside, never dropped."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from replaykit.errors import UsageError
from replaykit.store import atomic, container, lines, reader


def open_interrupted(path: Path) -> tuple[int, bytes]:
    """Open and claim an interrupted cassette; gives its file and its decompressed bytes.

    Raises:
        UsageError: it cannot be opened, or another process writes it.
        EvidenceError: its container is damaged.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"{path} cannot be opened for writing: {error.strerror}") from error
    lines.claim(file, path)
    try:
        return file, reader.load(path)
    except BaseException:
        os.close(file)
        raise


def cut(file: int, path: Path, data: bytes, whole_bytes: int) -> int:
    """Move the torn tail of a plain file aside and cut the file behind its last whole record; gives its size."""
    if len(data) > whole_bytes:
        atomic.write_bytes(_aside(path), data[whole_bytes:])
        os.ftruncate(file, whole_bytes)
    return whole_bytes


def rewrite(file: int, path: Path, whole: bytes, compression: container.Compression) -> tuple[int, bytes]:
    """Write the whole records of a compressed file anew, since a cut frame cannot be continued.

    The old file stays beside the new one under the name of a torn tail. Gives the new file, claimed and open at its
    end, and the bytes in it.
    """
    first = whole.find(b"\n") + 1
    stored = compression.block(whole[:first]) + compression.end()
    if len(whole) > first:
        stored += compression.block(whole[first:])
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.write(handle, stored)
    os.fsync(handle)
    os.fchmod(handle, os.fstat(file).st_mode & 0o7777)
    lines.claim(handle, path)
    _keep(path, _aside(path))
    os.replace(name, path)
    os.close(file)
    return handle, stored


def tighten(path: Path) -> None:
    """Compress a finished cassette again in one go, which is a third smaller than flushed records are.

    Nothing is lost when this cannot be done: the file as it was recorded stays.
    """
    data = reader.load(path)
    first, last = data.find(b"\n") + 1, data.rfind(b"\n", 0, len(data) - 1) + 1
    compression = container.Compression(container.FINAL_LEVEL)
    frames = compression.frame(data[:first]) + compression.frame(data[first:last])
    offset = len(frames)
    frames += compression.frame(data[last:])
    with contextlib.suppress(OSError):
        atomic.write_bytes(path, frames + container.index(offset, hashlib.sha256(frames)))


def _keep(path: Path, aside: Path) -> None:
    try:
        os.link(path, aside)
    except OSError:  # a file system without hard links
        shutil.copy2(path, aside)


def _aside(path: Path) -> Path:
    candidates = (path.with_name(f"{path.name}.torn{suffix}") for suffix in ("", *(f".{n}" for n in range(2, 10_000))))
    return next(candidate for candidate in candidates if not candidate.exists())
