"""Wire exchanges on their way into a cassette: redacted, agreeing with their headers, packed."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from replaykit import canonical
from replaykit.errors import InternalError
from replaykit.seats import WireExchange
from replaykit.store.packing import Lane, Packer
from replaykit.store.redaction import Redactor

_GROWING = ("messages", "input", "contents")
_SEPARATOR = {"compact": b",", "ascii": b",", "spaced": b", ", "default": b", "}


class BodyLane:
    """The request bodies of one seat; each is packed as what it adds to the one before."""

    __slots__ = ("_lane", "_raw", "_form", "_key", "_cut", "_redacted")

    def __init__(self) -> None:
        self._lane = Lane()
        self._raw = b""
        self._form = ""
        self._key = ""
        self._cut = 0
        self._redacted = False

    def pack(self, ordinal: int, raw: bytes, packer: Packer, redactor: Redactor) -> dict | None:
        """Pack the body of the file's exchange number ``ordinal``."""
        if not raw:
            return None
        items = self._appended(raw)
        if items is None:
            return self._afresh(ordinal, raw, packer, redactor)
        return self._grown(ordinal, raw, items, packer, redactor)

    def _appended(self, raw: bytes) -> list | None:
        """The items that the growing list gained since the last body, or None when more than that changed."""
        if raw == self._raw:
            return []
        tail = self._raw[self._cut:]
        if not self._cut or len(raw) <= len(self._raw) or not raw.endswith(tail) or not raw.startswith(self._raw[:self._cut]):
            return None
        gained = raw[self._cut:len(raw) - len(tail)]
        separator = _SEPARATOR[self._form]
        if not gained.startswith(separator):
            return None
        return _exact_list(b"[" + gained[len(separator):] + b"]", self._form)

    def _grown(self, ordinal: int, raw: bytes, items: list, packer: Packer, redactor: Redactor) -> dict:
        document = self._lane.document
        if items:
            clean = redactor.value(items)
            self._redacted = self._redacted or clean is not items
            document = {**document, self._key: document[self._key] + clean}
            self._cut += len(raw) - len(self._raw)
        self._raw = raw
        return self._packed(ordinal, document, packer)

    def _afresh(self, ordinal: int, raw: bytes, packer: Packer, redactor: Redactor) -> dict:
        value, form = exact_json(raw, self._form)
        if not isinstance(value, dict) or not value:
            return plain_body(raw, redactor)
        clean = redactor.value(value)
        self._redacted, self._raw, self._form = clean is not value, raw, form
        self._key = next((key for key in _GROWING if isinstance(value.get(key), list) and value[key]), "")
        self._cut = _end_of_list(value, self._key, form) if self._key else 0
        return self._packed(ordinal, clean, packer)

    def _packed(self, ordinal: int, document: dict, packer: Packer) -> dict:
        packed = {"json": self._form, **self._lane.pack(ordinal, document, packer)}
        return {**packed, "redacted": True} if self._redacted else packed


def _exact_list(raw: bytes, form: str) -> list | None:
    value, found = exact_json(raw, form)
    return value if found == form and all(isinstance(item, dict) and item for item in value) else None


def _end_of_list(value: dict, key: str, form: str) -> int:
    """Byte offset just behind the last item of a member that is a list."""
    keys = list(value)
    head = {name: value[name] for name in keys[:keys.index(key) + 1]}
    return len(canonical.wire(head, form)) - 2


def exact_json(raw: bytes, first: str = "") -> tuple[Any, str]:
    """The value of a JSON body and the form that gives exactly these bytes back; ``(None, "")`` when none does."""
    try:
        value = json.loads(raw.decode("utf-8"))
        form = next((form for form in (first, *canonical.WIRE_FORMS) if form and canonical.wire(value, form) == raw), "")
    except (ValueError, RecursionError):
        return None, ""
    return (value, form) if form else (None, "")


def plain_body(raw: bytes, redactor: Redactor) -> dict:
    """A body as text, or as base64 when it is not UTF-8."""
    text = redactor.body(raw.decode("utf-8", "surrogateescape"))
    clean = text.encode("utf-8", "surrogateescape")
    try:
        return {"text": clean.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(clean).decode("ascii")}


def reply_body(raw: bytes, packer: Packer, redactor: Redactor) -> dict | None:
    """Pack a response body."""
    if not raw:
        return None
    value, form = exact_json(raw)
    if not isinstance(value, (dict, list)):
        return plain_body(raw, redactor)
    clean = redactor.value(value)
    packed = {"json": form, "value": packer.inline(clean)}
    return packed if clean is value else {**packed, "redacted": True}


def decoded(raw: bytes, encoding: str) -> bytes | None:
    """The content behind a ``content-encoding``, or None when it cannot be decoded here."""
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        step = _DECODERS.get(name)
        try:
            raw = step(raw) if step else None
        except (zlib.error, ValueError):
            return None
        if raw is None:
            return None
    return raw


def _inflate(raw: bytes) -> bytes:
    return _whole(raw, 15) if raw[:1] == b"\x78" else _whole(raw, -15)


def _whole(raw: bytes, bits: int) -> bytes:
    stream = zlib.decompressobj(bits)
    content = stream.decompress(raw, _DECODED_LIMIT)
    if not stream.eof or stream.unused_data:
        raise ValueError("the compressed body is cut, has bytes behind its end, or is too large")
    return content


def _zstd(raw: bytes) -> bytes | None:
    from replaykit.store import container

    return container.decompress_body(raw, _DECODED_LIMIT)


_DECODED_LIMIT = 64 * 1024 * 1024
_DECODERS = {
    "identity": lambda raw: raw,
    "gzip": lambda raw: _whole(raw, 31),
    "x-gzip": lambda raw: _whole(raw, 31),
    "deflate": _inflate,
    "zstd": _zstd,
}


def pack_exchange(
    ordinal: int, exchange: WireExchange, lane: BodyLane, packer: Packer, redactor: Redactor
) -> dict[str, Any]:
    """The members of an exchange's record."""
    request = exchange.request
    packed: dict[str, Any] = {
        "attempt": exchange.attempt,
        "request": {
            "method": request["method"],
            "uri": packer.text(redactor.uri(request["uri"])),
            "headers": _headers(request["headers"], "request", packer, redactor),
            "body": lane.pack(ordinal, _as_bytes(request["body"]), packer, redactor),
        },
        "response": _pack_response(exchange.response, packer, redactor),
    }
    if exchange.partial:
        packed["partial"] = plain_body(exchange.partial, redactor)
    if exchange.failure is not None:
        packed["failure"] = packer.inline(redactor.value(exchange.failure))
    if exchange.timing:
        packed["timing"] = {name: round(seconds, 6) for name, seconds in exchange.timing.items()}
    return packed


def _pack_response(response: dict | None, packer: Packer, redactor: Redactor) -> dict | None:
    if response is None:
        return None
    raw, headers = _as_bytes(response["body"]), dict(response["headers"])
    label = [name for name in headers if name.lower() == "content-encoding"]
    body: dict | None
    if label and raw:
        content = decoded(raw, ",".join(value for name in label for value in headers[name]))
        headers = {name: values for name, values in headers.items() if name not in label}
        # Undecodable bytes may hide a secret from redaction, so they are not kept.
        body = reply_body(content, packer, redactor) if content is not None else _withheld(raw)
    else:
        body = reply_body(raw, packer, redactor)
    return {
        "status": redactor.value(response["status"]),
        "headers": _headers(headers, "response", packer, redactor),
        "body": body,
    }


def _withheld(raw: bytes) -> dict:
    return {"withheld": "undecodable content-encoding", "bytes": len(raw), "digest": canonical.sha256(raw)}


def _headers(headers: dict, side: str, packer: Packer, redactor: Redactor) -> dict:
    """Kept headers as a shared value; the length is left out where it can only be the stored body's."""
    kept = redactor.headers(headers, side)
    kept = {name: [] if name.lower() == "content-length" else values for name, values in kept.items()}
    return packer.item(kept) if kept else {}


def _as_bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8")
    raise InternalError(f"a wire body is {type(body).__name__}, not bytes")
