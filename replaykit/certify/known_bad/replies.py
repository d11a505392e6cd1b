"""Known-bads that change what is delivered: tool calls, envelopes, faults."""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from replaykit.certify.known_bad.making import (
    KnownBad,
    Meeting,
    asking,
    calls,
    lax,
    messages,
    reading,
    reply,
    retrying,
)
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, TransportRequest, arguments_object
from replaykit.transports.openai_chat import OpenAIChat


def _fuzzy(call: ReplyCall, request: TransportRequest) -> ReplyCall:
    offered = [t["function"]["name"] for t in request.tools or ()]
    near = difflib.get_close_matches(call.name, offered, 1, 0.3)
    return replace(call, name=near[0]) if near else call


def _repaired(text: str) -> str:
    for ending in ("", "}", '"}', "]}"):
        try:
            return json.dumps(arguments_object(text + ending))
        except ValueError:
            continue
    return "{}"


def _last_wins(call: ReplyCall, request: TransportRequest) -> ReplyCall:
    try:
        return replace(call, arguments=json.dumps(json.loads(call.arguments)))
    except ValueError:
        return call


def _floats(call: ReplyCall, request: TransportRequest) -> ReplyCall:
    try:
        return replace(call, arguments=json.dumps(json.loads(call.arguments, parse_int=float)))
    except ValueError:
        return call


def _retry_malformed(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
    given = good(request, on_exchange)
    try:
        for call in given.tool_calls:
            arguments_object(call.arguments)
    except ValueError:
        return good(request, on_exchange)
    return given


def _merge_index0(given: SeatReply, request: TransportRequest) -> SeatReply:
    if len(given.tool_calls) < 2:
        return given
    merged = "".join(c.arguments for c in given.tool_calls)
    return replace(given, tool_calls=(replace(given.tool_calls[0], arguments=merged.replace("}{", ", ")),))


def _first_choice(
    good: Callable, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest
) -> SeatReply:
    try:
        data = json.loads(body)
        data["choices"] = data["choices"][:1]
    except (ValueError, KeyError, TypeError):
        return good(status, headers, body, request)
    return good(status, headers, json.dumps(data).encode(), request)


def _error_as_text(
    good: Callable, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest
) -> SeatReply:
    try:
        return good(status, headers, body, request)
    except SeatFailure:
        if status != 200:
            raise
        return SeatReply(content=body.decode("utf-8", "replace") or "(empty)", finish_reason="stop")


def _skip_bad_chunk(
    good: Callable, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest
) -> SeatReply:
    if not body.startswith((b"data:", b":")):
        return good(status, headers, body, request)
    texts = []
    for line in body.decode().splitlines():
        try:
            texts.append(json.loads(line.removeprefix("data: "))["choices"][0]["delta"]["content"])
        except (ValueError, KeyError, TypeError):
            continue
    return SeatReply(content="".join(texts), finish_reason="stop")


def _partial_ok(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
    try:
        return good(request, on_exchange)
    except SeatFailure as failure:
        if failure.kind == "unreachable":
            return SeatReply(content="(what had come)", finish_reason="stop")
        raise


class PoisonedPool(OpenAIChat):
    """After a broken connection nothing works any more."""

    broken = False

    def ask(self, request: TransportRequest, on_exchange: Any) -> SeatReply:
        """Ask and remember."""
        if self.broken:
            self._sender.post(
                self.url(request), {}, b"", lambda s, h, b: None, on_exchange, deadline_s=request.deadline_s
            )
            raise SeatFailure("unreachable", "the pool is poisoned")
        try:
            return super().ask(request, on_exchange)
        except SeatFailure as failure:
            self.broken = failure.kind == "unreachable"
            raise


def _crosstalk() -> type:
    meeting = Meeting()

    def ask(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
        given = good(request, on_exchange)
        return meeting.swap(given) if "caller" in str(request.messages) else given

    return asking(ask)


def _shared_buffer() -> type:
    last: list[SeatReply] = []

    def ask(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
        last[:] = [good(request, on_exchange)]
        if "caller" in str(request.messages):
            time.sleep(0.8)
        return last[0]

    return asking(ask)


def _memoize_replies() -> type:
    known: dict[str, SeatReply] = {}

    def ask(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
        key = f"{request.seat} {request.messages}"
        if "Exactly" in key and key in known:
            return known[key]
        return known.setdefault(key, good(request, on_exchange)) if "Exactly" in key else good(request, on_exchange)

    return asking(ask)


def _finish(given: SeatReply, request: TransportRequest) -> SeatReply:
    return replace(given, finish_reason="tool_calls" if given.tool_calls else "stop")


def _asked_wait(failure: SeatFailure, attempt: int) -> float:
    return min(failure.retry_after_s or 0.0, 1.5) * 1.1 if attempt == 0 else 0.0


def _is(*statuses: int) -> Callable[[SeatFailure], bool]:
    return lambda failure: failure.status in statuses


def known_bads() -> tuple[KnownBad, ...]:
    """For checks C22 to C37, and C49."""
    return (
        KnownBad("kb_truncate_64", "C22", "name_changed", calls(lambda c, r: replace(c, name=c.name[:60]))),
        KnownBad("kb_casefold", "C22", "name_changed", calls(lambda c, r: replace(c, name=c.name.lower()))),
        KnownBad(
            "kb_sanitise_one_way", "C22", "name_changed", calls(lambda c, r: replace(c, name=c.name.replace("-", "_")))
        ),
        KnownBad("kb_fuzzy_repair", "C23", "name_repaired", calls(_fuzzy)),
        KnownBad(
            "kb_prefix_strip",
            "C23",
            "name_repaired",
            calls(lambda c, r: replace(c, name=re.sub(r"^functions\.|:\d+$", "", c.name))),
        ),
        KnownBad("kb_float_all", "C24", "argument_changed", calls(_floats)),
        KnownBad("kb_reserialise_evidence", "C24", "argument_text_changed", calls(_last_wins)),
        KnownBad(
            "kb_json_repair",
            "C25",
            "arguments_altered",
            calls(lambda c, r: replace(c, arguments=_repaired(c.arguments))),
        ),
        KnownBad("kb_last_duplicate_wins", "C25", "arguments_altered", calls(_last_wins)),
        KnownBad("kb_retry_malformed", "C25", "retried", asking(_retry_malformed)),
        KnownBad("kb_first_only", "C26", "calls_changed", reply(lambda g, r: replace(g, tool_calls=g.tool_calls[:1]))),
        KnownBad("kb_merge_index0", "C26", "calls_changed", reply(_merge_index0)),
        KnownBad(
            "kb_drop_text", "C26", "text_lost", reply(lambda g, r: replace(g, content=None) if g.tool_calls else g)
        ),
        KnownBad("kb_first_choice", "C26", "choices_merged", reading(_first_choice)),
        KnownBad(
            "kb_regenerate_ids",
            "C27",
            "ids_changed",
            reply(
                lambda g, r: replace(g, tool_calls=tuple(replace(c, id=f"new_{i}") for i, c in enumerate(g.tool_calls)))
            ),
        ),
        KnownBad(
            "kb_ids_shortened",
            "C27",
            "ids_changed",
            messages(lambda m, r: json.loads(json.dumps(m).replace("i" * 40, "i" * 24))),
        ),
        KnownBad("kb_ignore_finish", "C28", "incomplete_as_answer", reply(_finish)),
        KnownBad(
            "kb_fill_stop",
            "C28",
            "finish_invented",
            reply(lambda g, r: replace(g, finish_reason=g.finish_reason or "stop")),
        ),
        KnownBad(
            "kb_none_as_answer",
            "C29",
            "empty_as_answer",
            reply(lambda g, r: g if g.tool_calls or (g.content or "").strip() else replace(g, content=str(g.content))),
        ),
        KnownBad("kb_error_as_text", "C30", "error_as_content", reading(_error_as_text)),
        KnownBad("kb_partial_ok", "C31", "partial_accepted", asking(_partial_ok)),
        KnownBad("kb_poisoned_pool", "C31", "poisoned", PoisonedPool),
        KnownBad("kb_retry_all", "C32", "retried", retrying(lambda f: f.status is not None, 2)),
        KnownBad("kb_hammer", "C33", "retried_early", retrying(_is(429), 2)),
        KnownBad("kb_honour_once", "C33", "retried_early", retrying(_is(429), 2, wait=_asked_wait)),
        KnownBad("kb_hide_first_attempt", "C34", "first_attempt_hidden", retrying(_is(500), 1, quiet=True)),
        KnownBad("kb_memoize", "C35", "memoized", _memoize_replies()),
        KnownBad("kb_skip_bad_chunk", "C36", "stream_merged", reading(_skip_bad_chunk), lax()),
        KnownBad("kb_crosstalk", "C37", "crossed", _crosstalk()),
        KnownBad("kb_shared_buffer", "C37", "crossed", _shared_buffer()),
        KnownBad(
            "kb_swallow_judge",
            "C49",
            "judge_reply_changed",
            reply(lambda g, r: replace(g, content='{"results": []}') if r.seat == "judge" else g),
        ),
    )
