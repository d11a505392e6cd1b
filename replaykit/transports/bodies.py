"""Request bodies to bytes and response bodies to data; pure. Every refusal is a `SeatFailure`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from replaykit import canonical
from replaykit.seats import SeatFailure
from replaykit.transports.failures import error_under_200, header, read_error, status_failure

MAX_DECODED_BYTES = 64 * 1024 * 1024
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def encode(body: dict) -> bytes:
    """Compact UTF-8 JSON in the order of the data, as it goes on the wire.

    Raises:
        SeatFailure: ``unsendable``, naming the place: a lone surrogate, a non-finite number or a foreign type.
    """
    try:
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        place = next(_lone_surrogates(body, ()), "")
        raise SeatFailure(
            "unsendable", f"half a surrogate pair at {place} has no UTF-8 form; nothing was sent"
        ) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise SeatFailure("unsendable", f"the request is not JSON data: {error}; nothing was sent") from None


def reply_object(status: int, headers: Mapping[str, Any], body: bytes) -> dict:
    """The JSON object of a successful reply.

    Raises:
        SeatFailure: the status is not a success, the body is not JSON, or it is an error object.
    """
    failure = status_failure(status, headers, _decoded_or_raw(headers, body))
    if failure is not None:
        raise failure
    value = _parse(_typed(headers, decoded(headers, body), status), status)
    is_error_list = isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("error")
    if is_error_list or (isinstance(value, dict) and (value.get("error") or value.get("object") == "error")):
        raise error_under_200(read_error(value), status)
    if not isinstance(value, dict):
        raise malformed(f"the body is JSON {type(value).__name__}, not an object", status)
    return value


def decoded(headers: Mapping[str, Any], body: bytes) -> bytes:
    """The body without its content-encoding.

    Raises:
        SeatFailure: ``malformed``: the label lies or was not asked for, or the body unpacks too far.
    """
    encoding = (header(headers, "content-encoding") or "identity").strip().lower()
    if encoding == "identity" or not body:
        return body
    if encoding not in _WBITS:
        raise malformed(f"the body is encoded as {encoding[:40]!r}, which was not asked for")
    unpack = zlib.decompressobj(_WBITS[encoding])
    try:
        data = unpack.decompress(body, MAX_DECODED_BYTES)
    except zlib.error:
        raise malformed(f"the body is labelled {encoding} but is not") from None
    if not unpack.eof:
        raise malformed(f"the {encoding} body is cut or unpacks to more than {MAX_DECODED_BYTES} bytes")
    return data


def malformed(reason: str, status: int | None = 200) -> SeatFailure:
    """A 2xx whose body is not a reply."""
    return SeatFailure("malformed", f"the provider's reply is not usable: {reason}", status)


def object_text(value: dict) -> str:
    """JSON text of arguments that a wire gave as an object: compact, key order kept."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def member(data: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A member of a parsed reply that must be there with the right type.

    Raises:
        SeatFailure: ``malformed``, naming the JSON pointer.
    """
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise malformed(f"{where}{canonical.pointer(key)} is {_json_kind(value)}, not {_kinds(kind)}")
    return value


def optional_object(data: dict, key: str) -> dict:
    """An object member, or an empty one when it is absent or something else."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def optional_text(data: dict, key: str) -> str | None:
    """A text member, or None when it is absent or something else."""
    value = data.get(key)
    return value if isinstance(value, str) else None


def is_count(value: Any) -> bool:
    """Whether a value is a token count."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _typed(headers: Mapping[str, Any], body: bytes, status: int) -> bytes:
    kind = (header(headers, "content-type") or "application/json").split(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise malformed(f"the content type is {kind[:60]!r}, not JSON", status)
    return body


def _parse(body: bytes, status: int) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise malformed(f"invalid UTF-8 at byte {error.start}", status) from None
    except (ValueError, RecursionError) as error:
        raise malformed(f"not JSON ({str(error)[:80]})", status) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _decoded_or_raw(headers: Mapping[str, Any], body: bytes) -> bytes:
    try:
        return decoded(headers, body)
    except SeatFailure:
        return body


def _lone_surrogates(value: Any, path: tuple) -> Any:
    if isinstance(value, str):
        if any("\ud800" <= c <= "\udfff" for c in value):
            yield canonical.pointer(*path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _lone_surrogates(key, path)
            yield from _lone_surrogates(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _lone_surrogates(item, (*path, index))


def _json_kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "absent or null" if value is None else names.get(type(value), "something else")


def _kinds(kind: type | tuple[type, ...]) -> str:
    names = {dict: "an object", list: "a list", str: "text"}
    return " or ".join(names[k] for k in (kind if isinstance(kind, tuple) else (kind,)))
