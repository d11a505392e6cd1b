"""HTTP Archive 1.2, which browser tools read, from wire exchanges."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from replaykit.seats import WireExchange

_UNKNOWN = -1  # HAR's own word for a size or time that nobody measured


def document(rows: Iterable[tuple[str, int, WireExchange]], about: Mapping[str, Any]) -> dict:
    """A HAR document.

    Args:
        rows: Seat, request number and exchange, in order.
        about: ``version`` of this tool, ``started`` as ISO 8601 text, ``title``.
    """
    page = {"id": "episode", "title": about["title"], "startedDateTime": about["started"], "pageTimings": {}}
    creator = {"name": "replaykit", "version": about["version"]}
    entries = [_entry(seat, number, exchange, about["started"]) for seat, number, exchange in rows]
    return {"log": {"version": "1.2", "creator": creator, "pages": [page], "entries": entries}}


def _entry(seat: str, number: int, exchange: WireExchange, started: str) -> dict:
    total = exchange.timing.get("total_s")
    wait = _UNKNOWN if total is None else round(total * 1000, 1)
    entry = {
        "pageref": "episode",
        "startedDateTime": started,
        "time": max(0, wait),
        "request": _request(exchange.request),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": max(0, wait), "receive": 0},
        "comment": f"{seat}, request {number}, attempt {exchange.attempt}",
        "_seat": seat,
        "_request": number,
        "_attempt": exchange.attempt,
    }
    return entry | ({"_error": str(exchange.failure.get("kind"))} if exchange.failure else {})


def _request(request: Mapping[str, Any]) -> dict:
    body = request["body"]
    headers = _headers(request["headers"])
    return {
        "method": request["method"],
        "url": request["uri"],
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers,
        "queryString": [{"name": n, "value": v} for n, v in parse_qsl(urlsplit(request["uri"]).query, True)],
        "postData": {"mimeType": _kind(headers), "text": body.decode("utf-8", "replace")},
        "headersSize": _UNKNOWN,
        "bodySize": len(body),
    }


def _response(exchange: WireExchange) -> dict:
    """The response; an attempt that got none has status 0, as browsers write it."""
    response = exchange.response or {"status": {"code": 0, "message": ""}, "headers": {}, "body": exchange.partial}
    headers, body = _headers(response["headers"]), response["body"]
    content: dict[str, Any] = {"size": len(body), "mimeType": _kind(headers)}
    try:
        content["text"] = body.decode("utf-8")
    except UnicodeDecodeError:
        content |= {"text": base64.b64encode(body).decode("ascii"), "encoding": "base64"}
    return {
        "status": response["status"]["code"],
        "statusText": response["status"].get("message") or "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers,
        "content": content,
        "redirectURL": next((h["value"] for h in headers if h["name"].lower() == "location"), ""),
        "headersSize": _UNKNOWN,
        "bodySize": len(body),
    }


def _headers(headers: Mapping[str, Iterable[str]]) -> list[dict]:
    return [{"name": name, "value": value} for name, values in headers.items() for value in values]


def _kind(headers: list[dict]) -> str:
    return next((h["value"] for h in headers if h["name"].lower() == "content-type"), "")
