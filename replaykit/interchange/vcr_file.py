"""vcrpy's cassettes (YAML or JSON, version 1) as text and back. Read with plain tags only; nothing is executed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit.errors import UsageError
from replaykit.interchange.reading import MAX_JSON, MAX_YAML, Members, json_value, read_bytes, yaml_value

VERSION = 1
_ABOUT = "replaykit"


@dataclass(frozen=True, slots=True)
class Interaction:
    """One recorded exchange.

    Attributes:
        request: ``{"method", "uri", "headers": {name: [values]}, "body": bytes}``.
        response: ``{"status": {"code", "message"}, "headers": {name: [values]}, "body": bytes}``.
    """

    request: dict[str, Any]
    response: dict[str, Any]


@dataclass(frozen=True, slots=True)
class VcrFile:
    """A cassette of vcrpy's.

    Attributes:
        about: What `text` was given beside the interactions; empty when vcrpy itself wrote the file.
    """

    digest: str
    interactions: tuple[Interaction, ...]
    about: dict[str, Any]


def text(interactions: Iterable[Interaction], about: Mapping[str, Any]) -> str:
    """The YAML text that vcrpy plays.

    Args:
        about: Plain data about the episode; vcrpy carries it along as metadata.
    """
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    rows = [{"request": _request(i.request), "response": _response(i.response)} for i in interactions]
    document = {"version": VERSION, "metadata": {_ABOUT: dict(about)}, "interactions": rows}
    return yaml.dump(document, Dumper=_without_aliases(dumper), sort_keys=False, allow_unicode=True, width=120)


def _without_aliases(dumper: type) -> type:
    """Equal values are written out each time: the file is for people and for other tools."""
    return type("_Dumper", (dumper,), {"ignore_aliases": lambda self, value: True})


def _request(request: Mapping[str, Any]) -> dict:
    headers = {name: [", ".join(values)] for name, values in request["headers"].items()}
    return {"method": request["method"], "uri": request["uri"], "headers": headers, "body": _as_text(request["body"])}


def _response(response: Mapping[str, Any]) -> dict:
    headers = {name: list(values) for name, values in response["headers"].items()}
    return {"status": dict(response["status"]), "headers": headers, "body": {"string": _as_text(response["body"])}}


def _as_text(body: bytes) -> str | bytes:
    """Text where the bytes are UTF-8 that YAML gives back as it was."""
    try:
        plain = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    return body if any(c in plain for c in "\r\x85\u2028\u2029\ufeff") else plain


def read(path: Path) -> VcrFile:
    """Read a cassette of vcrpy's.

    Raises:
        UsageError: it is not one, is empty, or cannot be read; with the interaction and the member.
    """
    is_json = path.suffix == ".json"
    data = read_bytes(path, MAX_JSON if is_json else MAX_YAML)
    whole = Members(json_value(data, path) if is_json else yaml_value(data, path), path)
    version = whole.take("version", int, default=None)
    if version != VERSION:
        raise whole.fault(f"has version {version!r}, and version {VERSION} is the one read here")
    rows = whole.take("interactions", list)
    if not rows:
        raise UsageError(f"{path} holds no interactions: there is nothing to import")
    interactions = tuple(_interaction(Members(row, path, "interactions", i)) for i, row in enumerate(rows))
    about = (whole.take("metadata", dict, default={})).get(_ABOUT)
    return VcrFile(hashlib.sha256(data).hexdigest(), interactions, about if isinstance(about, dict) else {})


def _interaction(found: Members) -> Interaction:
    asked, answered = found.inside("request"), found.inside("response")
    request = {
        "method": asked.take("method", str),
        "uri": asked.take("uri", str),
        "headers": _headers(asked),
        "body": _bytes(asked, "body"),
    }
    status = answered.inside("status")
    code, message = status.take("code", int), status.take("message", str, default="")
    response = {
        "status": {"code": code, "message": message},
        "headers": _headers(answered),
        "body": _bytes(answered.inside("body"), "string"),
    }
    return Interaction(request, response)


def _headers(found: Members) -> dict[str, list[str]]:
    headers = found.take("headers", dict, default={})
    rows = {name: [values] if isinstance(values, str) else values for name, values in headers.items()}
    for name, values in rows.items():
        if not isinstance(name, str) or not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise found.fault("is not a list of text", "headers", name)
    return rows


def _bytes(found: Members, name: str) -> bytes:
    value = found.take(name, (str, bytes), default=b"")
    try:
        return value.encode("utf-8") if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise found.fault("holds text that is not Unicode", name) from error
