"""From a provider's status and error body to a `SeatFailure`: pure, for every wire.

Four shapes of error body are read: ``{"error": {...}}``, the flat ``{"object": "error", "message": ...}``, a JSON array
that holds either, and ``{"detail": [...]}`` or ``{"message": ...}`` of gateways.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from replaykit.seats import SeatFailure

MAX_MESSAGE = 300
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

# Each pattern with one real spelling that it is for (vendor or server, reduced to the words that matter).
CONTEXT_OVERFLOW = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"maximum context length",  # OpenAI chat, Azure, DeepSeek, vLLM, SGLang, OpenRouter, Mistral
        r"exceeds? the context window",  # OpenAI Responses
        r"context[ _](?:length|window|limit|size)s?(?: has been| was| is)?[ _]exceed",  # llama.cpp
        r"prompt (?:is )?too long",  # Anthropic, Fireworks, Ollama
        r"exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:max(?:imum)? )?context (?:length|limit)",  # Anthropic, Ollama
        r"input token count .*exceeds the maximum number of tokens",  # Gemini
        r"too large for model with \d+",  # Mistral
        r"longer than the (?:maximum model length|model'?s context length)",  # vLLM, SGLang
        r"maximum prompt length is \d+",  # xAI
        r"input is too long for requested model",  # Bedrock
        r"exceeds the available context",  # llama.cpp
        r"when context the overflows",  # LM Studio
        r"too many tokens: (?:total|size|max)",  # Cohere
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be",  # TGI, Together
        r"reduce the length of the (?:messages|prompt|input)",  # Groq, Cerebras
        r"prompt exceeds max length",  # GLM
        r"exceeded model token limit",  # Moonshot
        r"context window exceeds limit",  # MiniMax
        r"range of input length should be",  # Qwen
        r"exceeds the maximum allowed input length",  # Poolside
        r"length of all messages is too long",  # Perplexity
        r"exceeds max_(?:seq|model)_len",  # self-hosted engines
    )
)
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "tokens_limit_reached",
    "model_context_window_exceeded",
}
_RATE_CODES = {
    "429",
    "rate_limit_exceeded",
    "rate_limit_error",
    "resource_exhausted",
    "too_many_requests",
    "insufficient_quota",
}
_OVERLOAD_CODES = {"503", "529", "overloaded_error", "overloaded", "unavailable", "server_overloaded", "slow_down"}
_AUTH_CODES = {
    "401",
    "403",
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "api_key_invalid",
    "unauthenticated",
    "permission_denied",
}
_SETTING_CODES = {"unsupported_value", "unsupported_parameter", "unknown_parameter"}
_SETTING_REFUSED = re.compile(
    r"\b(?:temperature|top_p|topP|seed|max_tokens|max_completion_tokens)\b.{0,80}?"
    r"(?:not support|unsupported|deprecated|not permitted|cannot both|only the default)"
    r"|(?:unsupported|unrecognized|unknown)[^.]{0,40}\b(?:temperature|top_p|topP|seed|max_tokens|max_completion_tokens)\b",
    re.IGNORECASE,
)
# Throttling texts speak of tokens too; a rate limit is never an overflow.
_NEVER_OVERFLOW = {401, 403, 404, 429, 503, 529}


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error body says, in any of its shapes; codes lower case.

    Attributes:
        message: Text for people, "" if there is none.
        codes: Code, type, status and reasons, as far as given.
        param: The request field it is about, or None.
        retry_after_s: Seconds from a ``RetryInfo`` detail.
    """

    message: str = ""
    codes: frozenset[str] = frozenset()
    param: str | None = None
    retry_after_s: float | None = None


def header(headers: Mapping[str, Any], name: str) -> str | None:
    """The first value of a header, its name compared without case; values may be texts or lists of texts."""
    for key, value in headers.items():
        if key.lower() == name:
            return value if isinstance(value, str) else next(iter(value), None)
    return None


def read_error(value: Any) -> ErrorBody:
    """Read an error from parsed JSON; never raises.

    Args:
        value: The parsed body, whatever it is.
    """
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return ErrorBody()
    error = value.get("error", value)
    if isinstance(error, str):
        return ErrorBody(message=error)
    if not isinstance(error, dict):
        return ErrorBody()
    details = [d for d in _list(error.get("details")) if isinstance(d, dict)]
    codes = [error.get(k) for k in ("code", "type", "status", "reason")] + [d.get("reason") for d in details]
    if isinstance(error.get("details"), dict):
        codes.append(error["details"].get("error_code"))
    param = error.get("param")
    return ErrorBody(
        message=_message(error),
        codes=frozenset(str(c).lower() for c in codes if isinstance(c, (str, int)) and not isinstance(c, bool)),
        param=param if isinstance(param, str) else None,
        retry_after_s=next((s for s in map(_retry_info, details) if s is not None), None),
    )


def status_failure(
    status: int, headers: Mapping[str, Any], body: bytes, now_s: float | None = None
) -> SeatFailure | None:
    """The failure an HTTP status stands for, or None for a 2xx.

    Args:
        status: HTTP status.
        headers: Response headers, names in any case.
        body: Decoded body, at most a few kilobytes of it are quoted.
        now_s: Unix seconds, for a ``Retry-After`` date.
    """
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return SeatFailure(
            "redirect_refused", f"the provider answered with redirect {status}; redirects are never followed", status
        )
    error = read_error(_parsed(body))
    wait = retry_after(headers, time.time() if now_s is None else now_s)
    text = clean(error.message) or "no error text"
    kind = classify(status, error)
    return SeatFailure(kind, f"HTTP {status}: {text}", status, error.retry_after_s if wait is None else wait)


def error_under_200(error: ErrorBody, status: int = 200) -> SeatFailure:
    """The failure of an error object that came with a success status."""
    kind = classify(status, error)
    text = clean(error.message) or "no error text"
    return SeatFailure(
        "malformed" if kind == "status" else kind,
        f"an error came under HTTP {status}: {text}",
        status,
        error.retry_after_s,
    )


def classify(status: int, error: ErrorBody) -> str:
    """One of `FAILURE_KINDS` for a status and what the error body says."""
    codes = error.codes
    if status not in _NEVER_OVERFLOW and not codes & _RATE_CODES and is_context_overflow(error):
        return "context_overflow"
    if status == 429 or (status < 400 and codes & _RATE_CODES):
        return "rate_limit"
    if status in (503, 529) or (status < 400 and codes & _OVERLOAD_CODES):
        return "overloaded"
    if status in (401, 403) or "api_key_invalid" in codes or (status < 400 and codes & _AUTH_CODES):
        return "auth"
    if status in (400, 422) and (codes & _SETTING_CODES or _SETTING_REFUSED.search(error.message)):
        return "capability"
    return "status"


def is_context_overflow(error: ErrorBody) -> bool:
    """Whether an error says, in any known spelling, that the prompt does not fit."""
    return bool(error.codes & _OVERFLOW_CODES) or any(p.search(error.message) for p in CONTEXT_OVERFLOW)


def retry_after(headers: Mapping[str, Any], now_s: float) -> float | None:
    """Seconds to wait by ``retry-after-ms``, else ``retry-after`` as seconds or HTTP date; None if unreadable."""
    millis = _seconds(header(headers, "retry-after-ms"))
    if millis is not None:
        return millis / 1000
    text = header(headers, "retry-after")
    seconds = _seconds(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, TypeError, OverflowError):
        return None


def clean(text: str) -> str:
    """Foreign text fit for one line of a message: no control characters, at most `MAX_MESSAGE` characters."""
    text = _UNPRINTABLE.sub(" ", text).encode("utf-8", "replace").decode().strip()
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _message(error: dict) -> str:
    message = error.get("message")
    if isinstance(message, str):
        return message
    detail = error.get("detail")
    if isinstance(detail, str):
        return detail
    parts = [d for d in _list(detail) if isinstance(d, dict)]
    return "; ".join(
        f"{'.'.join(map(str, _list(d.get('loc'))))}: {d.get('msg') or d.get('type') or ''}" for d in parts[:5]
    )


def _list(value: Any) -> Sequence:
    return value if isinstance(value, list) else ()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _retry_info(detail: dict) -> float | None:
    delay = detail.get("retryDelay")
    return _seconds(delay[:-1]) if isinstance(delay, str) and delay.endswith("s") else None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return max(0.0, value) if math.isfinite(value) else None
