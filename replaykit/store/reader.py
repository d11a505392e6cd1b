"""Reading cassettes: every line verified, nothing executed, every fault named with its byte offset."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from replaykit import canonical
from replaykit.cassette import HEADER_KEYS, SCHEMA, SUFFIXES, VERSION, Cassette
from replaykit.errors import EvidenceError, SchemaTooNew, UsageError
from replaykit.store import container, lines, remote
from replaykit.store.assembly import Assembly
from replaykit.store.migrations import migrate, version_of


@dataclass(slots=True)
class Records:
    """The verified records of a file, as they stand in it.

    Attributes:
        records: Header first; ``offsets`` and ``sizes`` hold where each line is in the decompressed file.
        complete: The last one is a footer.
        whole_bytes: Length of the whole records; what follows is a torn tail.
        total: The last record's sum.
    """

    records: list[dict] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    complete: bool = False
    whole_bytes: int = 0
    total: str = SCHEMA


def read(path: str | os.PathLike[str]) -> Cassette:
    """Read and verify a cassette.

    Raises:
        UsageError: there is no such file, or it may not be read.
        EvidenceError: it is damaged, forged, oversized or no cassette; with the byte offset.
        SchemaTooNew: a newer replaykit wrote it.
    """
    target = remote.located(path)
    return parse(load(target), target)


def load(path: Path | remote.RemotePath) -> bytes:
    """The decompressed bytes of a cassette's file.

    Raises:
        UsageError, EvidenceError: as in `read`.
    """
    if isinstance(path, remote.RemotePath):
        return expand(path.read(lines.MAX_FILE), path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > lines.MAX_FILE:
                raise EvidenceError(f"larger than a cassette may be ({lines.MAX_FILE} bytes)", path, lines.MAX_FILE)
            data = file.read(size or lines.MAX_FILE + 1)  # a buffer of the limit's size costs milliseconds
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return expand(data, path)


def expand(data: bytes, path: Path | None = None) -> bytes:
    """A file's bytes without the zstd container, if it has one.

    Raises:
        EvidenceError: the container is damaged.
    """
    if data[:4] != container.MAGIC:
        return data
    try:
        frames, _ = container.split_index(data)
    except ValueError as error:
        raise EvidenceError(str(error), path, 0) from error
    return container.decompress(frames, lines.MAX_FILE, path)


def parse(data: bytes, path: Path | None = None) -> Cassette:
    """A cassette from its decompressed bytes.

    Raises:
        EvidenceError, SchemaTooNew: as in `read`.
    """
    found = verify(data, path)
    whole = data[:found.offsets[-1]] if found.complete else data[:found.whole_bytes]
    return assemble(found, path).cassette(canonical.sha256(whole), found.whole_bytes)


def assemble(found: Records, path: Path | None = None) -> Assembly:
    """Bring verified records to the current schema and check the shape of each.

    Raises:
        EvidenceError: a record has not the shape of its kind, or refers to what is not there.
    """
    version = version_of(found.records[0]["schema"]) or VERSION
    records, offsets = migrate(found.records, version), found.offsets
    if version < VERSION:
        offsets = [0] * len(records)  # a migrated record no longer stands anywhere
    assembly = Assembly(path)
    for offset, record in zip(offsets, records, strict=True):
        assembly.add(record, offset)
    return assembly


def verify(data: bytes, path: Path | None = None) -> Records:
    """Check every line of a cassette: sums, order, footer.

    Raises:
        EvidenceError, SchemaTooNew: as in `read`.
    """
    found = Records()
    if not data:
        raise EvidenceError("the file is empty: not a cassette", path, 0)
    while not found.complete and (end := data.find(b"\n", found.whole_bytes)) >= 0:
        _take(found, data, end + 1, path)
    if not found.records:
        raise EvidenceError("no whole header: not a cassette, or cut within its first record", path, 0)
    _check_rest(found, data, path)
    if found.complete:
        _check_footer(found, data, path)
    return found


def _take(found: Records, data: bytes, end: int, path: Path | None) -> None:
    start = found.whole_bytes
    if end - start > lines.MAX_LINE:
        raise EvidenceError(f"a record of more than {lines.MAX_LINE} bytes", path, start)
    if len(found.records) >= lines.MAX_RECORDS:
        raise EvidenceError(f"more than {lines.MAX_RECORDS} records", path, start)
    if not found.records:
        check_schema(data[start:end], path)
    try:
        record, found.total = lines.read(data[start:end], found.total)
    except ValueError as error:
        raise EvidenceError(str(error), path, start) from error
    if (record["kind"] == "header") != (not found.records):
        raise EvidenceError("the header is not the first record, or comes twice", path, start)
    found.records.append(record)
    found.offsets.append(start)
    found.whole_bytes = end
    found.complete = record["kind"] == "footer"


def check_schema(line: bytes, path: Path | None) -> None:
    """Check that a first line is a header of a schema known here, before its sum is checked.

    Raises:
        EvidenceError: it is another file.
        SchemaTooNew: a newer replaykit wrote it.
    """
    try:
        schema = lines.parse(line).get("schema")
    except ValueError as error:
        raise EvidenceError(f"not a cassette: {error}", path, 0) from error
    version = version_of(schema)
    if version is None:
        raise EvidenceError("not a cassette: the first line names no cassette schema", path, 0)
    if version > VERSION:
        raise SchemaTooNew(f"written in {schema}, this replaykit reads up to {SCHEMA}: update replaykit", path, 0)


def check_header(record: dict, path: Path | None) -> None:
    """Check that a header has its members.

    Raises:
        EvidenceError: one is missing.
    """
    missing = [key for key in HEADER_KEYS if key not in record]
    if missing:
        raise EvidenceError(f"the header lacks {', '.join(missing)}", path, 0)


def _check_rest(found: Records, data: bytes, path: Path | None) -> None:
    rest = data[found.whole_bytes:]
    if not rest:
        return
    if found.complete:
        raise EvidenceError("something follows the footer", path, found.whole_bytes)
    if len(rest) > lines.MAX_LINE:
        raise EvidenceError(f"a record of more than {lines.MAX_LINE} bytes", path, found.whole_bytes)
    if not lines.may_be_torn(rest):
        raise EvidenceError("the last record was changed: it is not the beginning of one", path, found.whole_bytes)


def _check_footer(found: Records, data: bytes, path: Path | None) -> None:
    footer, offset = found.records[-1], found.offsets[-1]
    if footer.get("digest") != hashlib.sha256(data[:offset]).hexdigest():
        raise EvidenceError("the footer's digest is not that of the records before it", path, offset)
    if footer.get("counts") != counts(found.records[:-1]):
        raise EvidenceError("the footer counts other records than there are", path, offset)


def counts(records: Iterable[dict]) -> dict[str, int]:
    """How many records there are of each kind."""
    return dict(Counter(record["kind"] for record in records))


def is_compressed(path: Path) -> bool:
    """Whether a file is in the zstd container."""
    with open(path, "rb") as file:
        return file.read(4) == container.MAGIC


def find(paths: Iterable[str | os.PathLike[str]]) -> list[Path | remote.RemotePath]:
    """The cassettes among files and below folders, sorted, each once; those behind URLs come last.

    Raises:
        UsageError: a path does not exist, or a folder cannot be read.
    """
    found: set[Path] = set()
    behind_urls: set[remote.RemotePath] = set()
    for path in map(remote.located, paths):
        if isinstance(path, remote.RemotePath):
            behind_urls.update(path.cassettes())
        elif path.is_dir():
            found.update(_below(path))
        elif path.exists():
            found.add(path)
        else:
            raise UsageError(f"{path} does not exist: give a cassette or a folder of cassettes")
    return [*sorted(found), *sorted(behind_urls, key=str)]


def _below(folder: Path) -> Iterable[Path]:
    """Files only: a pipe of that name would never end."""
    for root, _, names in os.walk(folder, onerror=_refuse_folder):
        paths = (Path(root, name) for name in names if name.endswith(SUFFIXES))
        yield from (path for path in paths if path.is_file())


def _refuse_folder(error: OSError) -> None:
    raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error
