"""Writing whole files so that a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

_MODE = 0o666


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file by new content: a temporary file beside it, synced, then renamed over it.

    A file that exists keeps its permission bits, a new one gets the usual ones. Parent folders are made. What is no
    ordinary file (a terminal, a pipe, ``/dev/null``) is written into, not replaced.

    Raises:
        OSError: it could not be written; the old file is untouched.
    """
    if _is_stream(path):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _mode(target))
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`write_bytes` for UTF-8 text; half a surrogate pair (a file name that is no text) is written as its code."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_stream(path: str | os.PathLike[str]) -> bool:
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _mode(target: Path) -> int:
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        return _MODE & ~_umask()


def _umask() -> int:
    # Reading the mask by setting it would race with other threads, so ask the system where it tells.
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))
    except (OSError, StopIteration, ValueError):
        return 0o022
