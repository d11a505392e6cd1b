"""Wire exchanges on their way into a cassette: redacted, agreeing with their headers, packed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from replaykit import canonical
from replaykit.errors import InternalError
from replaykit.seats import WireExchange
from replaykit.store import lines
from replaykit.store.packing import DEEP, Lane, Packer, ShapeLane
from replaykit.store.redaction import Redactor

_GROWING = ("messages", "input", "contents")
_SEPARATOR = {"compact": b",", "ascii": b",", "spaced": b", ", "default": b", "}


class BodyLane:
    """The request bodies of one seat; each is packed as what it adds to the one before."""

    __slots__ = ("_cut", "_form", "_key", "_lane", "_raw", "_redacted", "_texts")

    def __init__(self) -> None:
        self._lane = Lane()
        self._texts = TextLane()
        self._raw = b""
        self._form = ""
        self._key = ""
        self._cut = 0
        self._redacted = False

    def pack(self, position: int, raw: bytes, packer: Packer, redactor: Redactor) -> dict | None:
        """Pack the body of the file's exchange number ``position``."""
        if not raw:
            return None
        items = self._appended(raw)
        if items is None:
            return self._afresh(position, raw, packer, redactor)
        return self._grown(position, raw, items, packer, redactor)

    def _appended(self, raw: bytes) -> list | None:
        """The items that the growing list gained since the last body, or None when more than that changed."""
        if raw == self._raw:
            return []
        head, tail = self._raw[:self._cut], self._raw[self._cut:]
        if not head or len(raw) <= len(self._raw) or not raw.endswith(tail) or not raw.startswith(head):
            return None
        gained = raw[self._cut:len(raw) - len(tail)]
        separator = _SEPARATOR[self._form]
        if not gained.startswith(separator):
            return None
        return _exact_list(b"[" + gained[len(separator):] + b"]", self._form)

    def _grown(self, position: int, raw: bytes, items: list, packer: Packer, redactor: Redactor) -> dict:
        document = self._lane.document
        if items:
            clean = redactor.value(items)
            self._redacted = self._redacted or clean is not items
            document = {**document, self._key: document[self._key] + clean}
            self._cut += len(raw) - len(self._raw)
        self._raw = raw
        return self._packed(position, document, packer)

    def _afresh(self, position: int, raw: bytes, packer: Packer, redactor: Redactor) -> dict:
        value, form = exact_json(raw, self._form)
        if not isinstance(value, dict) or not value:
            return self._texts.pack(position, plain_body(raw, redactor.body))
        clean = redactor.value(value)
        if form != self._form:
            self._lane = Lane()
        self._redacted, self._raw, self._form = clean is not value, raw, form
        self._key = next((key for key in _GROWING if isinstance(value.get(key), list) and value[key]), "")
        self._cut = _end_of_list(value, self._key, form) if self._key else 0
        return self._packed(position, clean, packer)

    def _packed(self, position: int, document: dict, packer: Packer) -> dict:
        return _marked(self._lane.pack(position, document, packer), self._form, self._redacted)


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
    if lines.deeper_than(raw, DEEP):
        return None, ""
    try:
        value = json.loads(raw.decode("utf-8"))
        forms = (first, *canonical.WIRE_FORMS) if first else canonical.WIRE_FORMS
        form = next((form for form in forms if canonical.wire(value, form) == raw), "")
    except (ValueError, RecursionError):
        return None, ""
    return (value, form) if form else (None, "")


def plain_body(raw: bytes, redact: Callable[[str], str]) -> dict:
    """A body as text, or as base64 when it is not UTF-8."""
    clean = redact(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    try:
        return {"form": "text", "is": clean.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(clean).decode("ascii")}


class TextLane:
    """The bodies of one seat that are no plain JSON; each is packed as what it changes in the one before."""

    __slots__ = ("_number", "_text")

    def __init__(self) -> None:
        self._number = 0
        self._text = ""

    def pack(self, number: int, body: dict) -> dict:
        """Shorten a body from `plain_body`."""
        if "is" not in body:
            return body
        before, text, like = self._text, body["is"], self._number
        self._number, self._text = number, text
        head = _common(before, text)
        tail = _common(before[head:][::-1], text[head:][::-1])
        if not like or head + tail < len(text) // 2:
            return body
        return {"like": like, "cut": [head, tail, text[head:len(text) - tail]]}


def _common(a: str, b: str) -> int:
    """Length of the common start of two texts."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


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


class WireLanes:
    """Packs the wire exchanges of one seat."""

    __slots__ = ("_answers", "_bodies", "_form")

    def __init__(self) -> None:
        self._bodies = BodyLane()
        self._answers = ShapeLane()
        self._form = ""

    def pack(self, position: int, exchange: WireExchange, packer: Packer, redactor: Redactor) -> dict[str, Any]:
        """The members of the record of the file's exchange number ``position``."""
        request = exchange.request
        body = self._bodies.pack(position, _as_bytes(request["body"]), packer, redactor)
        address = {"method": request["method"], "uri": redactor.uri(request["uri"])}
        packed: dict[str, Any] = {
            "attempt": exchange.attempt,
            "request": _side(address, request["headers"], "request", body, packer, redactor),
            "response": self._response(position, exchange.response, packer, redactor),
        }
        if exchange.partial:
            packed["partial"] = plain_body(exchange.partial, redactor.cut)
        if exchange.failure is not None:
            packed["failure"] = packer.inline(redactor.value(exchange.failure))
        if exchange.timing:
            packed["timing"] = {name: round(seconds, 4) for name, seconds in exchange.timing.items()}
        return packed

    def _response(self, position: int, response: dict | None, packer: Packer, redactor: Redactor) -> dict | None:
        if response is None:
            return None
        raw, headers = _as_bytes(response["body"]), response["headers"]
        label = [name for name in headers if name.lower() == "content-encoding"]
        if label and raw:
            content = decoded(raw, ",".join(value for name in label for value in headers[name]))
            headers = {name: values for name, values in headers.items() if name not in label}
            # Undecodable bytes may hide a secret from redaction, so they are not kept.
            body = _withheld(raw) if content is None else self._answer(position, content, packer, redactor)
        else:
            body = self._answer(position, raw, packer, redactor)
        return _side({"status": redactor.value(response["status"])}, headers, "response", body, packer, redactor)

    def _answer(self, position: int, raw: bytes, packer: Packer, redactor: Redactor) -> dict | None:
        if not raw:
            return None
        value, form = exact_json(raw, self._form)
        if not isinstance(value, (dict, list)):
            return plain_body(raw, redactor.body)
        self._form = form
        clean = redactor.value(value)
        return _marked(self._answers.pack(position, clean, packer, form), form, clean is not value)


def _marked(packed: dict, form: str, redacted: bool) -> dict:
    """A packed JSON body with its form, which a body that is like another takes from there."""
    start = {} if "like" in packed else {"form": form}
    return {**start, **packed, **({"redacted": True} if redacted else {})}


def _side(
    start: dict, headers: dict, side: str, body: dict | None, packer: Packer, redactor: Redactor
) -> dict[str, Any]:
    """One side of an exchange; the length is left out of the headers, where it can only be the stored body's."""
    kept = redactor.headers(headers, side)
    kept = {name: [] if name.lower() == "content-length" else values for name, values in kept.items()}
    return {"head": packer.item({**start, "headers": kept}), "body": body}


def _withheld(raw: bytes) -> dict:
    return {"withheld": "undecodable content-encoding", "bytes": len(raw), "digest": canonical.sha256(raw)}


def _as_bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8")
    raise InternalError(f"a wire body is {type(body).__name__}, not bytes")
