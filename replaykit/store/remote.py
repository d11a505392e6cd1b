"""Cassettes behind a URL (``s3://``, ``gs://``, ``memory://`` and the like), read through fsspec.

Nothing is copied whole before it is asked for: a quick look at a cassette fetches its ends only. Which schemes work,
and with which credentials, is fsspec's and the user's affair; credentials inside a URL never appear in a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from replaykit.cassette import SUFFIXES
from replaykit.errors import EvidenceError, UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z0-9+.:/-]*)?://")
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A place behind a URL, named as a path is: its text leaves credentials out."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return _CREDENTIALS.sub("", self.url)

    @property
    def name(self) -> str:
        """The last part."""
        return str(self).rstrip("/").rpartition("/")[2]

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        with self._translated():
            system, path = _system(self.url)
            return bool(system.isdir(path))

    def exists(self) -> bool:
        """Whether there is anything."""
        with self._translated():
            system, path = _system(self.url)
            return bool(system.exists(path))

    def read(self, limit: int) -> bytes:
        """The whole content.

        Raises:
            UsageError: it cannot be read.
            EvidenceError: it is larger than the limit in bytes.
        """
        with self.opened() as (file, size):
            if size > limit:
                raise EvidenceError(f"larger than a cassette may be ({limit} bytes)", self, limit)
            return file.read(limit + 1)

    @contextmanager
    def opened(self) -> Iterator[tuple[BinaryIO, int]]:
        """The content as a file that fetches what is read and nothing ahead, and its size in bytes.

        Raises:
            UsageError: it cannot be read.
        """
        with self._translated():
            system, path = _system(self.url)
            size = system.size(path)
            file = system.open(path, "rb", cache_type="none")
        with file:
            yield file, size

    def cassettes(self) -> list[RemotePath]:
        """The cassettes at or below it, sorted.

        Raises:
            UsageError: there is nothing.
        """
        with self._translated():
            system, path = _system(self.url)
            found = [path] if system.isfile(path) else [p for p in system.find(path) if p.endswith(SUFFIXES)]
            if not found and not system.exists(path):
                raise UsageError(f"{self} does not exist: give a cassette or a folder of cassettes")
            return [self if p == path else RemotePath(system.unstrip_protocol(p)) for p in sorted(found)]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Foreign errors as one sentence; what a file system raises is its own choice."""
        try:
            yield
        except (UsageError, EvidenceError):
            raise
        except FileNotFoundError as error:
            raise UsageError(f"{self} does not exist: give a cassette or a folder of cassettes") from error
        except ImportError as error:
            raise UsageError(f"{self} needs a package that is not installed: {_said(error)}") from error
        except Exception as error:
            raise UsageError(f"{self} cannot be read: {type(error).__name__}: {_said(error)}") from error


def url_of(path: Path | RemotePath) -> str:
    """A path as another machine can be told it: its URL, or where it is on a file system that both share."""
    return path.url if isinstance(path, RemotePath) else str(Path(path).absolute())


def located(path: str | os.PathLike[str] | RemotePath) -> Path | RemotePath:
    """The place that a user's path names: behind a URL, or on this disk."""
    if isinstance(path, RemotePath):
        return path
    return RemotePath(path) if isinstance(path, str) and _SCHEME.match(path) else Path(path)


def _system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError("a URL needs the package fsspec: pip install 'replaykit[cluster]'") from error
    return url_to_fs(url)


def _said(error: Exception) -> str:
    return _CREDENTIALS.sub("", str(error))[:300]
