"""Just enough HTTP/1.1 for the provider's side: one request out of a buffer, one response into bytes. No sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024


class NotHttp(Exception):
    """The bytes are no request this server can read; ``status`` is what to answer before closing."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclass(frozen=True, slots=True)
class Head:
    """Request line and headers; header names in lower case, of repeated headers the last one."""

    method: str
    target: str
    version: str
    headers: Mapping[str, str]
    size: int

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants the connection to stay open."""
        return self.version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True)
class Request:
    """One whole request: its head, its decoded body and its raw bytes."""

    head: Head
    body: bytes
    raw: bytes


def take_head(buffer: bytes | bytearray) -> Head | None:
    """The head of the request that the buffer begins with, or None while it is not whole.

    Raises:
        NotHttp: this is no request head, or it is too long.
    """
    end = buffer.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        if len(buffer) >= MAX_HEAD:
            raise NotHttp("the request head is too long", 431)
        return None
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise NotHttp("the request line is not HTTP/1.x")
    return Head(parts[0], parts[1], parts[2], dict(_header(line) for line in lines), end + 4)


def take_request(buffer: bytearray, head: Head) -> Request | None:
    """Remove one whole request from the front of the buffer; None while its body is not whole.

    Raises:
        NotHttp: the length or the chunks are wrong, or the body is too long.
    """
    found = _chunked(buffer, head.size) if "transfer-encoding" in head.headers else _sized(buffer, head)
    if found is None:
        return None
    body, end = found
    raw = bytes(buffer[:end])
    del buffer[:end]
    return Request(head, body, raw)


def response_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Status line and headers, with the blank line."""
    lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reason(status: int) -> str:
    """The reason phrase of a status; 529 has one of its own."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise NotHttp("a header line has no name")
    return name.lower(), value.strip()


def _sized(buffer: bytearray, head: Head) -> tuple[bytes, int] | None:
    text = head.headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise NotHttp("the content-length is not a number")
    end = head.size + _bounded(int(text))
    return (bytes(buffer[head.size : end]), end) if len(buffer) >= end else None


def _chunked(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        size = _chunk_size(bytes(buffer[at:line_end]))
        at = line_end + 2 + size + 2
        if len(buffer) < at:
            return None
        if size == 0:
            return bytes(body), at
        body += buffer[line_end + 2 : at - 2]
        _bounded(len(body))


def _chunk_size(line: bytes) -> int:
    try:
        return _bounded(int(line.split(b";")[0], 16))
    except ValueError as error:
        raise NotHttp("a chunk has no size") from error


def _bounded(size: int) -> int:
    if not 0 <= size <= MAX_BODY:
        raise NotHttp("the request body is too long", 413)
    return size
