"""From one whole request to a well-formed answer: which control speaks, in which wire's form. No sockets."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from replaykit.controls.delivery import Answer
from replaykit.controls.faults import Fault, Schedule, patched
from replaykit.controls.http import Request
from replaykit.controls.identities import Identity
from replaykit.controls.replies import Reply, characters, tokens
from replaykit.controls.wires import WIRES, Asked, RequestLine, Stamp, Wire, WireRefusal
from replaykit.controls.wires.wire import continuation_of, to_bytes

_VERSION_PREFIX = re.compile(r"^/v1(?:alpha|beta)?(?=/)")
_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Case:
    """What is registered under one name.

    Attributes:
        name: URL-safe name.
        identities: The control of each seat that may be asked.
        schedule: Faults, fixed before the run.
        strict: Whether members unknown to the wire, broken pairing and the like are refused.
        context_tokens: Prompts that count more get the wire's overflow error; None: no limit.
        key: If set, another credential is answered with 401.
        continuation: Whether replies with calls carry opaque state (thought signatures, thinking blocks, reasoning
            items) that has to come back while the tool loop lasts; wires without such state are not affected.
    """

    name: str
    identities: Mapping[str, Identity]
    schedule: Schedule
    strict: bool = True
    context_tokens: int | None = None
    key: str | None = None
    continuation: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and what the journal says about it."""

    answer: Answer
    nonce: str
    model: str | None = None
    problem: str | None = None


def nonce(entropy: bytes, case: str, seat: str, ordinal: int) -> str:
    """The id of the reply to the ordinal-th request of a case and seat: 32 hex digits of an HMAC-SHA-256."""
    text = f"{case}\x00{seat}\x00{ordinal}".encode()
    return hmac.new(entropy, text, hashlib.sha256).hexdigest()[:32]


def wire_of(path: str) -> tuple[Wire | None, str]:
    """The wire a path (behind case and seat) belongs to, and the path without its version."""
    bare = _VERSION_PREFIX.sub("", path)
    return next((wire for wire in WIRES.values() if wire.claims(bare)), None), bare


def credential(headers: Mapping[str, str]) -> str | None:
    """The key in the request's headers, without ``Bearer``."""
    value = next((headers[name] for name in _KEY_HEADERS if name in headers), None)
    return value.removeprefix("Bearer ").strip() if value is not None else None


def refused(wire: Wire | None, refusal: WireRefusal, id_: str) -> Answer:
    """An error answer in the wire's form; where no wire is known, in the form most servers use."""
    form = wire or WIRES["openai-chat"]
    return _json_answer(refusal.status, form.error(refusal, id_), form.headers(id_))


def answer(
    case: Case, identity: Identity, wire: Wire, request: Request, path: str, id_: str, fault: Fault | None
) -> Answered:
    """Read the request, let the control reply, put the reply (or the scheduled error) into the wire's form."""
    line = RequestLine(request.head.method, path, request.head.headers)
    asked, problem = None, None
    try:
        asked = _asked(case, wire, line, request.body)
        made = _replied(case, identity, wire, line, asked, id_, fault)
    except WireRefusal as refusal:
        made, problem = refused(wire, refusal, id_), refusal.message
    if fault and fault.kind in _ERRORS:
        made = _ERRORS[fault.kind](wire, line, asked, id_, fault, request.head.target)
    return Answered(made, id_, asked.model if asked else None, problem)


def prompt_tokens(asked: Asked) -> int:
    """The controls' count of a prompt: text and call arguments, four characters a token."""
    text = sum(len(m.get("content") or "") for m in asked.messages)
    calls = [c for m in asked.messages for c in m.get("tool_calls", ())]
    return tokens(text + sum(len(c["name"]) + len(c["arguments"]) for c in calls))


def _asked(case: Case, wire: Wire, line: RequestLine, body: bytes) -> Asked:
    if line.method != "POST":
        raise WireRefusal(f"{line.method} is not offered here", 405)
    if case.key is not None and credential(line.headers) != case.key:
        raise WireRefusal("The API key is not the one this control accepts.", 401)
    asked = wire.parse(line, _decoded(body), case.strict)
    count = prompt_tokens(asked)
    if case.context_tokens is not None and count > case.context_tokens:
        raise wire.overflow(count, case.context_tokens)
    if case.continuation and wire.missing_continuation:
        _check_continuation(asked, wire.missing_continuation)
    return asked


def _check_continuation(asked: Asked, missing: Callable[[int], WireRefusal]) -> None:
    """Each step of the current turn (after the last user message) that made calls must give their state back."""
    last_user = max((i for i, m in enumerate(asked.messages) if m["role"] == "user"), default=-1)
    for i, message in enumerate(asked.messages[last_user + 1 :], start=last_user + 1):
        calls = message.get("tool_calls")
        if calls and message.get("continuation") != continuation_of((c["id"], c["name"]) for c in calls):
            raise missing(i)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise WireRefusal("We could not parse the JSON body of your request.") from error


def _replied(
    case: Case, identity: Identity, wire: Wire, line: RequestLine, asked: Asked, id_: str, fault: Fault | None
) -> Answer:
    reply = _with_nonce(identity.reply(asked.messages), identity.nonce_member, id_)
    if fault and fault.kind in _REPLIES:
        reply = _REPLIES[fault.kind](reply, fault, line)
    served = asked.model if reply.served_model is None else reply.served_model
    usage = reply.usage or {}
    prompt = usage.get("prompt_tokens", prompt_tokens(asked))
    has_state = case.continuation and reply.tool_calls
    state = continuation_of((c.id, c.name) for c in reply.tool_calls) if has_state else None
    stamp = Stamp(id_, served, prompt, usage.get("completion_tokens", tokens(characters(reply))), state)
    return _json_answer(200, wire.render(reply, stamp), wire.headers(id_))


def _with_nonce(reply: Reply, member: str | None, id_: str) -> Reply:
    if member is None or reply.content is None:
        return reply
    try:
        value = json.loads(reply.content)
    except ValueError:
        return reply
    return reply.with_content(json.dumps(value | {member: id_})) if isinstance(value, dict) else reply


def _echoed(reply: Reply, fault: Fault, line: RequestLine) -> Reply:
    canary = fault["text"] or credential(line.headers) or ""
    if fault["place"] == "nested":
        return reply.with_content(json.dumps({"note": json.dumps({"credential": canary})}))
    return reply.with_content(f"You sent {canary} to me.")


def _json_answer(status: int, body: dict, headers: list[tuple[str, str]]) -> Answer:
    return Answer(status, (("content-type", "application/json"), *headers), to_bytes(body))


def _status(wire: Wire, line: RequestLine, asked: Asked | None, id_: str, fault: Fault, target: str) -> Answer:
    status = fault["status"]
    asks_s = _seconds(fault["retry_after"]) if fault["retry_after"] is not None else fault["retry_after_date_s"]
    text = fault["message"] or f"The control provider answers {status}, as its schedule says."
    made = refused(wire, WireRefusal(text, status, fault["code"], retry_s=asks_s), id_)
    value = fault["retry_after"]
    if fault["retry_after_date_s"] is not None:
        value = email.utils.formatdate(math.ceil(time.time() + fault["retry_after_date_s"]), usegmt=True)
    return made if value is None else replace(made, headers=(*made.headers, ("retry-after", str(value))))


def _seconds(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None


def _error_under_200(wire: Wire, line: RequestLine, asked: Asked | None, id_: str, fault: Fault, target: str) -> Answer:
    refusal = WireRefusal("The server had an error while processing your request.", fault["status"])
    return replace(refused(wire, refusal, id_), status=200)


def _overflow(wire: Wire, line: RequestLine, asked: Asked | None, id_: str, fault: Fault, target: str) -> Answer:
    count = max(prompt_tokens(asked) if asked else 0, fault["limit"] + 1)
    return refused(wire, wire.overflow(count, fault["limit"]), id_)


def _redirect(wire: Wire, line: RequestLine, asked: Asked | None, id_: str, fault: Fault, target: str) -> Answer:
    location = target if fault["target"] == "self" else fault["target"].rstrip("/") + target
    headers = (("content-type", "text/plain"), ("location", location))
    return Answer(fault["status"], headers, b"Moved.\n")


def _echo_error(wire: Wire, line: RequestLine, asked: Asked | None, id_: str, fault: Fault, target: str) -> Answer:
    canary = fault["text"] or credential(line.headers) or ""
    refusal = WireRefusal(f"Incorrect API key provided: {canary}.", 401)
    hidden = base64.b64encode(json.dumps(wire.error(refusal, id_)).encode()).decode("ascii")
    made = refused(wire, refusal, id_)
    return replace(made, headers=(*made.headers, ("x-error-json", hidden)))


_Error = Callable[[Wire, RequestLine, "Asked | None", str, Fault, str], Answer]
_ERRORS: dict[str, _Error] = {
    "status": _status,
    "error_under_200": _error_under_200,
    "overflow": _overflow,
    "redirect": _redirect,
    "echo_error": _echo_error,
}
_REPLIES: dict[str, Callable[[Reply, Fault, RequestLine], Reply]] = {
    "reply": lambda reply, fault, line: Reply.from_dict(fault["reply"]),
    "patch": lambda reply, fault, line: patched(reply, fault["patch"]),
    "echo": _echoed,
}
