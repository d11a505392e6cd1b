"""The optional zstd container: frames of flushed records, and a short index at the end for quick looks.

    frame     the header line
    frame     the other records, each flushed
    frame     the footer line
    skippable ``RKX1``, offset of the footer's frame (u64), first 16 bytes of SHA-256 over everything before them

An interrupted file ends anywhere in the second frame.
"""

from __future__ import annotations

import hashlib
import io
import struct
from types import ModuleType
from typing import Any

from replaykit.errors import EvidenceError, UsageError

MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = 0x184D2A5E
_INDEX = struct.Struct("<II4sQ")
_CHECK = 16
_MARK = b"RKX1"
_WINDOW = 2**27
_CHUNK = 1 << 20
LEVEL = 10
FINAL_LEVEL = 15


def zstandard() -> ModuleType:
    """The zstandard package, imported when first needed.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import zstandard
    except ImportError as error:
        raise UsageError("a .zst cassette needs the zstandard package: pip install zstandard") from error
    return zstandard


class Compression:
    """Turns lines into flushed zstd blocks, one frame at a time."""

    __slots__ = ("_compressor", "_finish", "_flush", "_stream")

    def __init__(self, level: int = LEVEL) -> None:
        module = zstandard()
        self._compressor = module.ZstdCompressor(level=level, write_checksum=True)
        self._stream = None
        self._flush, self._finish = module.COMPRESSOBJ_FLUSH_BLOCK, module.COMPRESSOBJ_FLUSH_FINISH

    def block(self, line: bytes) -> bytes:
        """The bytes to append so that the line can be read back."""
        if self._stream is None:
            self._stream = self._compressor.compressobj()
        return self._stream.compress(line) + self._stream.flush(self._flush)

    def end(self) -> bytes:
        """The bytes that end the frame."""
        stream, self._stream = self._stream, None
        return b"" if stream is None else stream.flush(self._finish)

    def frame(self, data: bytes) -> bytes:
        """A whole frame."""
        return self._compressor.compress(data)


def index(footer_offset: int, frames_hash: Any) -> bytes:
    """The index that follows the footer's frame; ``frames_hash`` is the SHA-256 object over the frames."""
    start = _INDEX.pack(_SKIPPABLE, _INDEX.size + _CHECK - 8, _MARK, footer_offset)
    whole = frames_hash.copy()
    whole.update(start)
    return start + whole.digest()[:_CHECK]


def split_index(data: bytes) -> tuple[bytes, int | None]:
    """The frames without the index, and the offset of the footer's frame (None: no index).

    Raises:
        ValueError: the index does not fit what it follows.
    """
    size = _INDEX.size + _CHECK
    if len(data) < size:
        return data, None
    magic, length, mark, offset = _INDEX.unpack_from(data, len(data) - size)
    fitting = (magic == _SKIPPABLE) + (length == size - 8) + (mark == _MARK)
    if fitting < 2:  # no index; with one of the three wrong it is a changed one
        return data, None
    if fitting == 2 or hashlib.sha256(data[:-_CHECK]).digest()[:_CHECK] != data[-_CHECK:] or offset > len(data) - size:
        raise ValueError("the compressed bytes were changed")
    return data[:-size], offset


def decompress(data: bytes, limit: int, path: object) -> bytes:
    """Everything that can be read from the frames; a cut last frame gives what was flushed.

    Raises:
        EvidenceError: damaged, or larger than the limit.
    """
    module = zstandard()
    reader = module.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(io.BytesIO(data), read_across_frames=True)
    out = bytearray()
    try:
        while chunk := reader.read(_CHUNK):
            out += chunk
            if len(out) > limit:
                raise EvidenceError(f"larger than {limit} bytes: not a cassette of ours", path, limit)
    except module.ZstdError as error:
        raise EvidenceError(f"the compressed file is damaged ({error})", path, len(out)) from error
    return bytes(out)


def first_line(data: bytes, path: object, limit: int = 1 << 20) -> bytes:
    """The start of the decompressed file, up to and with its first newline, from its first compressed bytes.

    Raises:
        EvidenceError: damaged.
    """
    module = zstandard()
    reader = module.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(io.BytesIO(data), read_across_frames=False)
    try:
        start = reader.read(limit)
    except module.ZstdError as error:
        raise EvidenceError(f"the compressed file is damaged ({error})", path, 0) from error
    return start[:start.find(b"\n") + 1]


def decompress_body(raw: bytes, limit: int) -> bytes | None:
    """A zstd-encoded HTTP body, or None when it cannot be decoded here."""
    try:
        module = zstandard()
    except UsageError:
        return None
    reader = module.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(io.BytesIO(raw), read_across_frames=True)
    try:
        content = reader.read(limit + 1)
    except module.ZstdError:
        return None
    return content if len(content) <= limit else None
