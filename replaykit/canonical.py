"""The only place where data becomes bytes or a digest.

Three forms, each with one use:

* `line`      compact JSON in the order in which the value was built; what files hold.
* `ordered`   the same as bytes for digests: key order counts, 1 and 1.0 and true differ.
* `sorted_`   compact JSON with sorted keys; for values whose key order has no meaning.

Non-finite floats have no JSON form; files hold them as ``{"$float": "NaN"}`` (see `encode`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

def _encoder(**options: Any) -> Callable[[Any], str]:
    """The encode method of a `json.JSONEncoder`, made once and for all.

    The method itself makes a new encoder in C at every call, which is half the time of a short record. Circular values
    end in a RecursionError.
    """
    plain = json.JSONEncoder(**options)
    if json.encoder.c_make_encoder is None:
        return plain.encode
    text = json.encoder.encode_basestring_ascii if plain.ensure_ascii else json.encoder.encode_basestring
    switches = (plain.key_separator, plain.item_separator, plain.sort_keys, plain.skipkeys, plain.allow_nan)
    parts = json.encoder.c_make_encoder(None, plain.default, text, None, *switches)
    return lambda value: "".join(parts(value, 0))


_ENCODE_ORDERED = _encoder(ensure_ascii=False, separators=(",", ":"), allow_nan=True)
_ENCODE_SORTED = _encoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=True)
_ENCODE_ASCII = _encoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)
_ENCODE_LINE = _encoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_FLOAT_KEY = "$float"
_WIRE = {
    name: _encoder(ensure_ascii=ascii_, separators=separators, allow_nan=False)
    for name, ascii_, separators in (
        ("compact", False, (",", ":")),
        ("ascii", True, (",", ":")),
        ("spaced", False, (", ", ": ")),
        ("default", True, (", ", ": ")),
    )
}
WIRE_FORMS = tuple(_WIRE)
"""The ways in which JSON bodies are commonly written; see `wire`."""


def ordered(value: Any) -> bytes:
    """Compact JSON bytes that keep key order; lone surrogates are kept as they are."""
    return _ENCODE_ORDERED(value).encode("utf-8", "surrogatepass")


def sorted_(value: Any) -> bytes:
    """Compact JSON bytes with sorted keys; lone surrogates are kept as they are."""
    return _ENCODE_SORTED(value).encode("utf-8", "surrogatepass")


def sorted_text(value: list | dict) -> str:
    """The text that `sorted_` encodes, for an object or a list."""
    return _ENCODE_SORTED(value)


def sha256(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """Hex SHA-256 of a value's sorted form: the identity of a value whose key order means nothing."""
    return sha256(sorted_(value))


def ordered_digest(value: Any) -> str:
    """Hex SHA-256 of a value's ordered form: the identity of a request, where key order counts."""
    return sha256(ordered(value))


def framed(*texts: str | None) -> bytes:
    """Texts as bytes that no other texts give: each with its length, None apart from the empty text, and an end."""
    whole = ""
    for text in texts:
        whole += "-" if text is None else f"{len(text)}:{text}"
    return (whole + ";").encode("utf-8", "surrogatepass")


class RunningDigest:
    """The digest of a growing list of `framed` entries; an entry costs its own length, however long the list.

    Attributes:
        entries: Those not yet worked in; append new ones here.
    """

    __slots__ = ("_hash", "_hex", "entries")

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._hex: str | None = None
        self.entries: list[bytes] = []

    def hexdigest(self) -> str:
        """Hex SHA-256 of the entries so far."""
        if self.entries or self._hex is None:
            self._hash.update(b"".join(self.entries))
            self._hex = self._hash.hexdigest()
            self.entries.clear()
        return self._hex


def line(value: Any) -> bytes:
    """One line of a file: UTF-8 JSON without a newline. Call `encode` first if floats may be non-finite.

    A value with a lone surrogate is written with ASCII escapes, so that the file stays valid UTF-8.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    try:
        return _ENCODE_LINE(value).encode("utf-8")
    except UnicodeEncodeError:
        return _ENCODE_ASCII(value).encode("ascii")


def wire(value: Any, form: str) -> bytes:
    """The bytes of a JSON body in one of `WIRE_FORMS`: for rebuilding what a client or provider wrote.

    Raises:
        ValueError: the value holds NaN, an infinity or, in a form that is not ASCII, a lone surrogate.
        KeyError: no such form.
    """
    return _WIRE[form](value).encode("utf-8")


def pretty(value: Any) -> str:
    """Indented JSON text with sorted keys and a final newline, for files that people review."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n"


def encode(value: Any) -> Any:
    """Replace non-finite floats by ``{"$float": "NaN"|"Infinity"|"-Infinity"}``, deep; shares what is unchanged."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT_KEY: _float_name(value)}
    if isinstance(value, dict):
        return {k: encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    return value


def decode(value: Any) -> Any:
    """Undo `encode`."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(_FLOAT_KEY), str):
            return float(value[_FLOAT_KEY])
        return {k: decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [decode(v) for v in value]
    return value


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1, 1.0 and True apart, and treats NaN as equal to itself; key order counts."""
    return ordered(a) == ordered(b)


def pointer(*parts: object) -> str:
    """A JSON pointer (RFC 6901) from its parts."""
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)


def _float_name(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
