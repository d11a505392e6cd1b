"""A wire exchange as vcrpy sees it, and back. vcrpy is only imported here, and nothing of it is ever patched in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replaykit.seats import WireExchange

if TYPE_CHECKING:
    from vcr.request import Request


def to_vcr(exchange: WireExchange) -> tuple[Request, dict[str, Any] | None]:
    """The exchange as a vcrpy request and response.

    vcrpy holds one value a request header, so repeated values are joined by commas as HTTP allows.

    Returns:
        The request, and ``{"status", "headers", "body": {"string": bytes}}`` or None when no whole response arrived.
    """
    from vcr.request import Request

    sent = exchange.request
    headers = {name: ", ".join(values) for name, values in sent["headers"].items()}
    request = Request(sent["method"], sent["uri"], sent["body"], headers)
    if exchange.response is None:
        return request, None
    response = exchange.response
    return request, {
        "status": dict(response["status"]),
        "headers": {name: list(values) for name, values in response["headers"].items()},
        "body": {"string": response["body"]},
    }


def from_vcr(request: Request, response: dict[str, Any] | None, attempt: int = 1) -> WireExchange:
    """Undo `to_vcr`; text bodies become UTF-8 bytes, timing and failure are not held by vcrpy and stay empty."""
    sent = {
        "method": request.method,
        "uri": request.uri,
        "headers": {name: [value] for name, value in request.headers.items()},
        "body": _bytes(request.body),
    }
    return WireExchange(attempt, sent, None if response is None else _response(response))


def _response(response: dict[str, Any]) -> dict[str, Any]:
    headers = {
        name: [values] if isinstance(values, str) else list(values) for name, values in response["headers"].items()
    }
    return {"status": dict(response["status"]), "headers": headers, "body": _bytes(response["body"].get("string"))}


def _bytes(body: Any) -> bytes:
    if isinstance(body, str):
        return body.encode()
    return b"" if body is None else bytes(body)
