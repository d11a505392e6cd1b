"""A native request and a wire exchange, unfolded for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from replaykit.cassette import RecordedRequest
from replaykit.reports.folded import Folded, plain
from replaykit.seats import WireExchange


def request_lines(request: RecordedRequest, fold: int | None) -> RenderableType:
    """The native request, as tau2 built it.

    Args:
        fold: Lines of each long text, or None: all, with the tool schemas.
    """
    native = request.native
    return Group(
        plain(f"native request {request.number} to the {request.seat}", "bold underline"),
        _fact("model", native.model),
        _fact("arguments", json.dumps(native.arguments, ensure_ascii=False)),
        _fact("tool_choice", json.dumps(native.tool_choice)),
        *_tools(native.tools, fold),
        *(line for i, m in enumerate(native.messages) for line in _message(i, m, fold)),
    )


def _fact(name: str, value: str) -> Text:
    return Text(f"{name} ", "dim").append_text(plain(value))


def _tools(tools: list[dict] | None, fold: int | None) -> Iterator[RenderableType]:
    names = [str((t.get("function") or {}).get("name")) for t in tools or []]
    yield _fact("tools", f"{len(names)}: {', '.join(names)}" if tools else "none")
    if fold is None:
        yield from (plain(json.dumps(t, ensure_ascii=False, indent=1), "dim") for t in tools or [])


def _message(index: int, message: Mapping, fold: int | None) -> Iterator[RenderableType]:
    yield Text(f"[{index}] ", "dim").append_text(plain(message.get("role"), "bold"))
    if message.get("content") is not None:
        yield Folded(plain(message["content"]), fold)
    rest = {k: v for k, v in message.items() if k not in ("role", "content")}
    if rest:
        yield Folded(plain(json.dumps(rest, ensure_ascii=False), "dim"), fold)


def wire_lines(request: RecordedRequest, fold: int | None) -> RenderableType:
    """The HTTP exchanges that were made for a request (see `request_lines`)."""
    exchanges = request.exchanges
    title = plain(f"wire of request {request.number} to the {request.seat}", "bold underline")
    if not exchanges:
        return Group(title, plain("no exchange was recorded", "dim"))
    return Group(title, *(line for exchange in exchanges for line in _exchange(exchange, fold)))


def _exchange(exchange: WireExchange, fold: int | None) -> Iterator[RenderableType]:
    asked, answer = exchange.request, exchange.response
    yield plain(f"attempt {exchange.attempt}", "dim")
    yield plain(f"{asked.get('method')} {asked.get('uri')}", "bold")
    yield from _side(asked, fold)
    if answer is not None:
        status = answer.get("status") or {}
        yield plain(f"{status.get('code')} {status.get('message')}", "bold")
        yield from _side(answer, fold)
    if exchange.failure:
        yield plain(f"failure: {json.dumps(exchange.failure, ensure_ascii=False)}", "red")
    if exchange.partial:
        yield Folded(plain(f"partial response: {body_text(exchange.partial)}"), fold)
    if exchange.timing:
        yield _fact("timing", ", ".join(f"{k} {v}" for k, v in exchange.timing.items()))


def _side(side: Mapping, fold: int | None) -> Iterator[RenderableType]:
    for name, values in (side.get("headers") or {}).items():
        for value in values:
            yield Text("  ").append_text(plain(name, "dim")).append(": ", "dim").append_text(plain(value))
    yield Folded(plain(body_text(side.get("body") or b"")), fold and 3 * fold)


def body_text(body: bytes) -> str:
    """A body as text: JSON indented, other text as it is, what is no text by its length."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(body)} bytes that are not text)"
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text or "(empty)"


def request_document(request: RecordedRequest) -> dict:
    """The native request as plain data, with its number."""
    return {"number": request.number, **request.native.to_dict()}


def wire_document(request: RecordedRequest) -> dict:
    """The wire exchanges of a request as plain data; a body that is not text is named by its length."""
    exchanges = [_exchange_document(exchange) for exchange in request.exchanges]
    return {"number": request.number, "seat": request.seat, "exchanges": exchanges}


def _exchange_document(exchange: WireExchange) -> dict:
    return {
        "attempt": exchange.attempt,
        "request": _side_document(exchange.request),
        "response": exchange.response and _side_document(exchange.response),
        "failure": exchange.failure,
        "partial": raw_text(exchange.partial) if exchange.partial else None,
        "timing": exchange.timing,
    }


def _side_document(side: Mapping) -> dict:
    return {**side, "body": raw_text(side.get("body") or b"")}


def raw_text(body: bytes) -> str:
    """A body as the text it is, or its length."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(body)} bytes that are not text)"
