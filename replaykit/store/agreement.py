"""A stored body and its stored headers must agree: either raw bytes with their label, or plain bytes without."""

from __future__ import annotations

from collections.abc import Callable

from replaykit.pages import BODY_FORMS, Documents, Pages, body_bytes
from replaykit.store.wire import decoded


def check_exchange(position: int, record: dict, pages: Pages) -> None:
    """Check the record of the file's exchange number ``position``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is no exchange, or body and headers do not agree.
    """
    head = _check_side("request", record["request"], pages, pages.bodies, position)
    if not isinstance(head["method"], str) or not isinstance(head["uri"], str):
        raise ValueError("the request has no method and address")
    if record["response"] is not None:
        head = _check_side("response", record["response"], pages, pages.answers, position)
        if type(head["status"]["code"]) is not int:
            raise ValueError("the response's status code is no number")


def _check_side(side: str, packed: dict, pages: Pages, documents: Documents, position: int) -> dict:
    head, body = pages.shared.unfold(packed["head"]), packed["body"]
    if not all(_is_texts(values) for values in head["headers"].values()):
        raise ValueError(f"the {side}'s headers are not lists of text")
    if isinstance(body, dict) and ("is" in body or "like" in body) and documents.form(position) not in BODY_FORMS:
        raise ValueError(f"the {side}'s body is written in no known form")
    if not (isinstance(body, dict) and "withheld" in body):
        check_agreement(side, head["headers"], lambda: body_bytes(body, documents, position))
    return head


def _is_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def check_agreement(side: str, headers: dict[str, list[str]], body: Callable[[], bytes]) -> None:
    """Check the labels of one side, ``request`` or ``response``. The body is asked for only when one needs it.

    An empty list of lengths stands for the stored body's own; an empty body may carry any label (HEAD, 204).

    Raises:
        ValueError: a content-encoding that does not fit the body, or another content-length.
    """
    encodings, lengths = _values(headers, "content-encoding"), _values(headers, "content-length")
    content = body() if encodings or lengths else b""
    if not content:
        return
    if encodings and decoded(content, ",".join(encodings)) is None:
        raise ValueError(f"the {side}'s content-encoding {', '.join(encodings)!r} does not fit its body")
    if any(length != str(len(content)) for length in lengths):
        raise ValueError(f"the {side}'s content-length is {lengths[0]}, its body has {len(content)} bytes")


def _values(headers: dict[str, list[str]], name: str) -> list[str]:
    return [value for key, values in headers.items() if key.lower() == name for value in values]
