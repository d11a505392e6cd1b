"""The wire ``gemini-generate``: ``generateContent``; the version is part of the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, TransportRequest
from replaykit.transports import bodies, history
from replaykit.transports.bodies import is_count, malformed, member, object_text
from replaykit.transports.history import Call, Step
from replaykit.transports.wire import Capabilities, Dialect, WireTransport, call_mark, join_url, one_of

NO_TEXT = "(no text)"
# Base64 of the documented token by which a history without signatures is let through.
SKIP_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
MAX_SEED = 2**31 - 1
FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length"} | dict.fromkeys(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"), "content_filter"
)
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_output_tokens": "maxOutputTokens",
    "seed": "seed",
    "stop": "stopSequences",
}
_DROPPED_KEYWORDS = {"$schema", "discriminator", "examples"}
_REWRITES = {
    "redundant_tool_name": "the second name of an assistant tool call is not sent",
    "model_in_address": "the model name is part of the address, not of the body",
    "system_apart": "the leading system messages go in the member 'systemInstruction'",
    "merged_turns": "neighbouring turns of one role are one turn, tool results first",
    "arguments_as_object": "the argument text of a call is sent as the JSON object it holds",
    "result_as_object": "a tool result is sent as {'output': text}, with the name of the call it answers",
    "call_ids": "a tool call id is sent only where this provider issued it; order pairs the others",
    "no_text": f"an assistant text without characters is left out; such a user text is sent as {NO_TEXT!r}",
    "no_parameters": "a tool without parameters is declared without a schema",
    "schema_keywords": "in tool schemas $schema, discriminator and examples are left out and const becomes enum",
}


@dataclass(frozen=True, slots=True)
class GenerateDialect(Dialect):
    """Options of this wire.

    Attributes:
        version: ``v1beta`` or ``v1``.
        leading_user: Text of the user turn put before a history that begins with the model.
        missing_signature: ``omit``, or ``skip`` to send the documented token with calls of the current turn whose
            thought signature is not known.
    """

    version: str = "v1beta"
    leading_user: str = "."
    missing_signature: str = "omit"

    def __post_init__(self) -> None:
        Dialect.__post_init__(self)
        one_of("version", self.version, ("v1beta", "v1"))
        one_of("leading_user has text", bool(self.leading_user), (True,))
        one_of("missing_signature", self.missing_signature, ("omit", "skip"))


class GeminiGenerate(WireTransport):
    """``POST {base_url}/{version}/models/{model}:generateContent``."""

    name = "gemini-generate"
    dialect_type = GenerateDialect
    own_fields = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "model"})
    auth_headers = frozenset({"x-goog-api-key", "authorization"})

    @property
    def wire_version(self) -> str:
        """The version in the address."""
        return self.dialect.version

    @property
    def capabilities(self) -> Capabilities:
        """Settings omitted by the dialect; a seed of 31 bits."""
        leading = f"a user turn {self.dialect.leading_user!r} is put before a history that begins with the model"
        rewrites = _REWRITES | {"leading_user_turn": leading}
        if self.dialect.missing_signature == "skip":
            rewrites["missing_signature"] = (
                "a call whose thought signature is not known carries the token that skips its check"
            )
        return Capabilities(tuple(self.dialect.omit), rewrites)

    def url(self, request: TransportRequest) -> str:
        """The address for this request."""
        model = quote(self.model_for(request).removeprefix("models/"), safe="")
        return join_url(self.base_url, f"/{self.dialect.version}/models/{model}:generateContent")

    def authorisation(self, key: str) -> dict[str, str]:
        """The header that carries the key; never the address."""
        return {"x-goog-api-key": key}

    def to_wire(self, request: TransportRequest) -> dict[str, Any]:
        """The body, members in the order systemInstruction, contents, tools, toolConfig, generationConfig, extras."""
        system, rest = history.split_system(history.steps(request.messages, history.RESPONSES_ID))
        body: dict[str, Any] = {}
        if system:
            body["systemInstruction"] = {"parts": [{"text": s} for s in system]}
        body["contents"] = self._contents(rest, request)
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_declaration(t) for t in request.tools]}]
            body["toolConfig"] = {"functionCallingConfig": {"mode": (request.tool_choice or "auto").upper()}}
        settings = {_SETTINGS[k]: v for k, v in self.sent_settings(request).items()}
        extra = dict(self.body_fields)
        generation = _checked_settings(settings) | extra.pop("generationConfig", {})
        return body | ({"generationConfig": generation} if generation else {}) | extra

    def from_wire(
        self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest | None = None
    ) -> SeatReply:
        """See `from_wire`."""
        return from_wire(status, headers, body, self.provider, request.number if request else 0)

    def _check_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        generation = fields.get("generationConfig", {})
        if not isinstance(generation, dict) or generation.keys() & set(_SETTINGS.values()):
            raise UsageError(
                "the body field 'generationConfig' is a table that may not hold the settings; use the dialect's omit"
            )
        return super()._check_fields(fields)

    def _contents(self, rest: list[Step], request: TransportRequest) -> list[dict[str, Any]]:
        current = max((i for i, step in enumerate(rest) if step.role == "user"), default=-1)
        turns = [self._turn(step, request, i > current) for i, step in enumerate(rest)]
        turns = [turn for turn in turns if turn[1]]
        if turns and turns[0][0] == "model":
            turns.insert(0, ("user", [{"text": self.dialect.leading_user}]))
        return [{"role": role, "parts": parts} for role, parts in history.merged(turns)]

    def _turn(self, step: Step, request: TransportRequest, is_current: bool) -> tuple[str, list[dict]]:
        if step.answers is not None:
            return "user", [{"functionResponse": self._response(step.answers, step.text, request)}]
        if step.role == "assistant":
            text = [{"text": step.text}] if step.text else []
            return "model", text + [self._call(c, request, is_current and i == 0) for i, c in enumerate(step.calls)]
        return "user", [{"text": step.text or NO_TEXT}]

    def _call(self, call: Call, request: TransportRequest, needs_signature: bool) -> dict[str, Any]:
        side = self.side_for(request, call.id, call.name, call.arguments)
        function = {"name": call.name, "args": call.arguments_object()}
        if side.get("issued"):
            function = {"id": call.id} | function
        signature = side.get("thoughtSignature")
        if signature is None and needs_signature and self.dialect.missing_signature == "skip":
            signature = SKIP_SIGNATURE
        return {"functionCall": function} | ({"thoughtSignature": signature} if signature else {})

    def _response(self, call: Call, text: str, request: TransportRequest) -> dict[str, Any]:
        side = self.side_for(request, call.id, call.name, call.arguments)
        return ({"id": call.id} if side.get("issued") else {}) | {"name": call.name, "response": {"output": text}}


def to_wire(request: TransportRequest, dialect: GenerateDialect | None = None, **extra: Any) -> dict[str, Any]:
    """The body for a request, without a transport at hand; extra keywords are extra body fields."""
    return GeminiGenerate("http://localhost", dialect=dialect, body_fields=extra).to_wire(request)


def from_wire(
    status: int, headers: Mapping[str, Any], body: bytes, provider: str = "gemini-generate", number: int = 0
) -> SeatReply:
    """The reply in a generated content.

    Args:
        status: HTTP status.
        headers: Response headers.
        body: Raw response body.
        provider: Mark put on side members, so that they go back to nobody else.
        number: Of the request; calls that came without an id get ``g{number}_{index}``.

    Raises:
        SeatFailure: the body holds not exactly one candidate, nor the reason why there is none.
    """
    data = bodies.reply_object(status, headers, body)
    blocked = bodies.optional_object(data, "promptFeedback").get("blockReason") if not data.get("candidates") else None
    if blocked:
        return SeatReply(finish_reason="content_filter", usage=_usage(data.get("usageMetadata")), **_names(data))
    candidate = _only_candidate(data)
    parts = _parts(candidate)
    calls, side = _read_calls(parts, provider, number)
    texts = [p["text"] for p in parts if isinstance(p.get("text"), str) and not p.get("thought")]
    return SeatReply(
        content="".join(texts) if texts else None,
        tool_calls=calls,
        finish_reason=_finish(candidate.get("finishReason"), bool(calls)),
        usage=_usage(data.get("usageMetadata")),
        side=side,
        **_names(data),
    )


def _names(data: dict) -> dict[str, Any]:
    return {"model": bodies.optional_text(data, "modelVersion"), "id": bodies.optional_text(data, "responseId")}


def _only_candidate(data: dict) -> dict:
    candidates = member(data, "candidates", list, "")
    if len(candidates) != 1 or not isinstance(candidates[0], dict):
        raise malformed(f"/candidates holds {len(candidates)} candidates where one was asked for")
    return candidates[0]


def _parts(candidate: dict) -> list[dict]:
    """The parts; a candidate that ended in an error may come without content."""
    if candidate.get("content") is None and candidate.get("finishReason") not in (None, "STOP"):
        return []
    content = member(candidate, "content", dict, "/candidates/0")
    parts = content.get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(p, dict) for p in parts):
        raise malformed("/candidates/0/content/parts is no list of parts")
    return parts


def _read_calls(parts: list[dict], provider: str, number: int) -> tuple[tuple[ReplyCall, ...], dict[str, Any]]:
    calls, side = [], {}
    for index, part in enumerate(parts):
        if part.get("functionCall") is None:
            continue
        where = canonical.pointer("candidates", 0, "content", "parts", index)
        function = member(part, "functionCall", dict, where)
        name = member(function, "name", str, where + "/functionCall")
        arguments = {} if function.get("args") is None else function["args"]
        if not isinstance(arguments, dict):
            raise malformed(f"{where}/functionCall/args is not an object")
        issued = function.get("id") if isinstance(function.get("id"), str) and function["id"] else None
        call = ReplyCall(issued or f"g{number}_{len(calls)}", name, object_text(arguments))
        calls.append(call)
        kept = {"issued": True} if issued else {}
        if isinstance(part.get("thoughtSignature"), str):
            kept["thoughtSignature"] = part["thoughtSignature"]
        if kept:
            side[call.id] = {"provider": provider, "of": call_mark(name, call.arguments), **kept}
    return tuple(calls), side


def _finish(word: Any, has_calls: bool) -> str | None:
    finish = FINISH.get(word, word) if isinstance(word, str) else None
    if isinstance(finish, str) and finish.startswith("IMAGE_"):
        return "content_filter"
    return "tool_calls" if has_calls and finish == "stop" else finish


def _usage(usage: Any) -> dict[str, Any] | None:
    """Usage with thoughts inside the output's; the wire leaves counts of zero out."""
    if not isinstance(usage, dict) or not is_count(usage.get("promptTokenCount")):
        return None

    def total(*names: str) -> int:
        return sum(usage[n] for n in names if is_count(usage.get(n)))

    return {
        "prompt_tokens": total("promptTokenCount", "toolUsePromptTokenCount"),
        "completion_tokens": total("candidatesTokenCount", "thoughtsTokenCount"),
    } | usage


def _checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    seed = settings.get("seed")
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise SeatFailure("capability", f"the seed {seed} does not fit the 31 bits of this wire; nothing was sent")
    return settings


def _declaration(tool: dict) -> dict[str, Any]:
    function = tool["function"]
    declared = {"name": function["name"], "description": function.get("description") or function["name"]}
    schema = function.get("parameters") or {}
    return declared | ({"parametersJsonSchema": _schema(schema)} if schema.get("properties") else {})


def _schema(schema: Any, is_properties: bool = False) -> Any:
    """The schema without the keywords this wire refuses; names of properties are not keywords."""
    if isinstance(schema, list):
        return [_schema(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    if is_properties:
        return {name: _schema(s) for name, s in schema.items()}
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "const":
            kept["enum"] = [value]
        elif key in ("enum", "default", "required"):
            kept[key] = value
        elif key not in _DROPPED_KEYWORDS:
            kept[key] = _schema(value, key in ("properties", "$defs", "definitions"))
    return kept
