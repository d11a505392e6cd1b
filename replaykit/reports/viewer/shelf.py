"""The cassettes a viewer shows, read when they are looked at."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replaykit.errors import ReplaykitError, UsageError
from replaykit.reports.progress import Progress
from replaykit.reports.transcript import transcript
from replaykit.reports.viewer import page
from replaykit.reports.viewer.episodes import Collection
from replaykit.store import reader


class Shelf:
    """Cassettes by path, and the page that shows them. The page is made again only when a file changed.

    Args:
        paths: Cassettes and folders of them.
        domains: Facts by domain, as in the fleet.
    """

    def __init__(self, paths: Sequence[Path], domains: Mapping[str, Any]) -> None:
        self._paths, self._domains = paths, domains
        self._lock = threading.Lock()
        self._seen: list | None = None
        self._html = ""
        self.count = 0
        self.unreadable: list[tuple[str, str]] = []

    def html(self) -> str:
        """The page.

        Raises:
            UsageError: a path does not exist, or there is no cassette.
        """
        with self._lock:
            files = reader.find(self._paths)
            if not files:
                below = ", ".join(map(str, self._paths))
                raise UsageError(f"there is no cassette below {below}: record one with 'replaykit record'")
            seen = [_fingerprint(path) for path in files]
            if seen != self._seen:
                self._html, self._seen = self._made(files), seen
            return self._html

    def _made(self, files: Sequence[Path]) -> str:
        collection = Collection()
        with Progress("cassettes", len(files)) as progress:
            for path in files:
                self._take(path, collection)
                progress.step()
        self.count, self.unreadable = len(collection.episodes), collection.unreadable
        return page.html(collection.to_dict())

    def _take(self, path: Path, collection: Collection) -> None:
        try:
            collection.add(transcript(reader.read(path), self._domains))
        except ReplaykitError as error:
            collection.miss(path, error)


def _fingerprint(path: Any) -> tuple:
    """What tells whether a file changed; what is behind a URL is read once."""
    if not isinstance(path, Path):
        return (path, None, None)
    try:
        status = path.stat()
    except OSError:
        return (path, None, None)
    return (path, status.st_mtime_ns, status.st_size)
