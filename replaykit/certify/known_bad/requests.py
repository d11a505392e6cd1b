"""Known-bads that change what is sent: identity, settings, histories, tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from replaykit.certify.known_bad import making
from replaykit.certify.known_bad.making import KnownBad, body, lax, layer, messages, reply, retrying, tools
from replaykit.certify.subject import Layer, artefact_label
from replaykit.gateway import Gateway
from replaykit.seats import SeatFailure, SeatReply, TransportRequest
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports import bodies
from replaykit.transports.openai_chat import OpenAIChat
from replaykit.transports.wire import SETTINGS, Capabilities


class SeatSwap(OpenAIChat):
    """The customer's requests go to the judge."""

    def url(self, request: TransportRequest) -> str:
        """Another seat's address."""
        return super().url(request).replace("/customer/", "/judge/")


class KeyInError(OpenAIChat):
    """Error texts quote the key."""

    def ask(self, request: TransportRequest, on_exchange: Any) -> SeatReply:
        """Ask and talk too much."""
        try:
            return super().ask(request, on_exchange)
        except SeatFailure as failure:
            raise SeatFailure(failure.kind, f"{failure.message} (sent with {self._key})", failure.status) from None


class SilentDrop(OpenAIChat):
    """Settings it does not know are left out."""

    def sent_settings(self, request: TransportRequest) -> dict[str, Any]:
        """Only what it knows."""
        return super().sent_settings(
            replace(request, settings={k: v for k, v in request.settings.items() if k in SETTINGS})
        )


def global_settings() -> type:
    """The settings of the first seat that asks hold for the process."""

    class GlobalSettings(OpenAIChat):
        settings: dict[str, Any] | None = None

        def sent_settings(self, request: TransportRequest) -> dict[str, Any]:
            kind = type(self)
            if kind.settings is None or "in-turn" in str(request.messages):
                kind.settings = super().sent_settings(request)
            return dict(kind.settings)

    return GlobalSettings


class NoPairing(OpenAIChat):
    """Sends whatever history it is given."""

    def ask(self, request: TransportRequest, on_exchange: Any) -> SeatReply:
        """Ask without looking at pairs."""
        sent = bodies.encode(self.to_wire(request))
        return self._sender.post(
            self.url(request),
            self.headers(),
            sent,
            lambda s, h, b: self.from_wire(s, h, b, request),
            on_exchange,
            deadline_s=request.deadline_s,
        )


class UndeclaredRewrite(OpenAIChat):
    """Drops the second tool name like the good one, but does not say so."""

    @property
    def capabilities(self) -> Capabilities:
        """Nothing declared."""
        return Capabilities(self.dialect.omit)


class CollapsingGateway(Gateway):
    """Takes the outer name for the inner one instead of comparing them."""

    def _check_names(self, request: Any, known: int) -> None:
        for message in request.messages:
            for call in message.get("tool_calls") or ():
                call["function"]["name"] = call["name"]


def _contents(change: Any) -> type:
    return messages(
        lambda sent, request: [
            m | {"content": change(m["content"])} if isinstance(m.get("content"), str) else m for m in sent
        ]
    )


def _merged(sent: list[dict], request: TransportRequest) -> list[dict]:
    found: list[dict] = []
    for message in sent:
        plain = message["role"] in ("user", "assistant") and not message.get("tool_calls")
        if found and plain and found[-1]["role"] == message["role"]:
            found[-1] = found[-1] | {"content": f"{found[-1]['content']}\n{message['content']}"}
        else:
            found.append(message)
    return found


def _hoisted(sent: list[dict], request: TransportRequest) -> list[dict]:
    system = " ".join(m["content"] for m in sent if m["role"] == "system")
    rest = [m for m in sent if m["role"] != "system"]
    return [{"role": "user", "content": system}, *rest]


def _without_tool_turns(sent: list[dict], request: TransportRequest) -> list[dict]:
    return [m for m in sent if m["role"] != "tool" and not m.get("tool_calls")]


def _renumbered(sent: list[dict], request: TransportRequest) -> list[dict]:
    text, ids = json.dumps(sent), [c["id"] for m in sent for c in m.get("tool_calls") or ()]
    for i, id_ in enumerate(ids):
        text = text.replace(json.dumps(id_), json.dumps(f"renumbered_{i}"))
    return json.loads(text)


def _flipped(sent: list[dict], request: TransportRequest) -> list[dict]:
    other = {"user": "assistant", "assistant": "user"}
    return [m | {"role": other.get(m["role"], m["role"])} for m in sent] if request.seat == "customer" else sent


def _one_role(sent: list[dict], request: TransportRequest) -> list[dict]:
    return [m if m["role"] == "system" else m | {"role": "user"} for m in sent] if request.seat == "customer" else sent


def _parts(sent: list[dict], request: TransportRequest) -> list[dict]:
    return [m | {"content": [{"type": "text", "text": m["content"] or ""}]} for m in sent]


def _deep(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return change({k: _deep(v, change) for k, v in value.items()})
    return [_deep(v, change) for v in value] if isinstance(value, list) else value


def _inlined(offered: list[dict]) -> list[dict]:
    def follow(node: dict) -> dict:
        return (
            {"type": "string", "enum": ["b", "a"]}
            if "$ref" in node
            else {k: v for k, v in node.items() if k != "$defs"}
        )

    return _deep(offered, follow)


def _extra_turn(good: Any, request: TransportRequest, on_exchange: Any) -> SeatReply:
    given = good(request, on_exchange)
    return good(request, on_exchange) if "###STOP###" in (given.content or "") else given


def _drop_tools(request: TransportRequest, attempt: int) -> TransportRequest:
    return replace(request, tools=None, tool_choice=None) if attempt else request


def _unlabelled() -> Layer:
    return Layer(label=lambda identity: {k: v for k, v in artefact_label(identity).items() if k != "control"})


def _leaky(path: Any, header: Any, redactor: Any) -> Journal:
    return Journal.create(path, header, Redactor(()))


def known_bads() -> tuple[KnownBad, ...]:
    """For checks C01 to C21."""
    return (
        KnownBad("kb_seat_swap", "C01", "seat_swapped", SeatSwap),
        KnownBad("kb_unlabelled", "C01", "unlabelled", layer=_unlabelled),
        KnownBad("kb_trust_env_proxy", "C02", "proxy_used", layer=lax(client={"trust_env": True})),
        KnownBad("kb_follow_redirect", "C03", "redirect_followed", layer=lax(client={"follow_redirects": True})),
        KnownBad("kb_key_in_cassette", "C04", "key_in_cassette", layer=layer(journal=_leaky)),
        KnownBad("kb_key_in_error", "C04", "key_in_error", KeyInError),
        KnownBad(
            "kb_drop_seed", "C05", "setting_missing", body(lambda b, r: {k: v for k, v in b.items() if k != "seed"})
        ),
        KnownBad(
            "kb_settings_as_text",
            "C05",
            "setting_changed",
            body(lambda b, r: b | {"max_tokens": str(b.get("max_tokens", 1))}),
        ),
        KnownBad(
            "kb_truthy_filter", "C06", "falsy_setting_missing", body(lambda b, r: {k: v for k, v in b.items() if v})
        ),
        KnownBad("kb_silent_drop", "C07", "silent_drop", SilentDrop),
        KnownBad("kb_adds_default_max_tokens", "C08", "undeclared_key", body(lambda b, r: {"max_tokens": 4096} | b)),
        KnownBad("kb_adds_user", "C08", "undeclared_key", body(lambda b, r: b | {"user": "someone"})),
        KnownBad("kb_global_settings", "C09", "settings_crossed", global_settings()),
        KnownBad(
            "kb_retry_drops_tools", "C10", "retry_body_differs", retrying(lambda f: f.status == 500, 1, _drop_tools)
        ),
        KnownBad("kb_model_overwrite", "C11", "model_overwritten", reply(lambda g, r: replace(g, model=r.model))),
        KnownBad("kb_strip", "C12", "history_changed", _contents(str.strip)),
        KnownBad("kb_merge_consecutive", "C12", "history_changed", messages(_merged)),
        KnownBad("kb_hoist_system", "C12", "history_changed", messages(_hoisted)),
        KnownBad("kb_last_k", "C13", "history_not_kept", messages(lambda m, r: m if len(m) < 8 else [m[0], *m[-6:]])),
        KnownBad("kb_drop_tool_turns", "C13", "history_not_kept", messages(_without_tool_turns)),
        KnownBad(
            "kb_str_none",
            "C14",
            "null_as_text",
            messages(lambda m, r: [x | {"content": str(x.get("content"))} for x in m]),
        ),
        KnownBad("kb_content_parts", "C14", "null_form", messages(_parts)),
        KnownBad("kb_renumber_ids", "C15", "ids_renumbered", messages(_renumbered)),
        KnownBad("kb_orphan_result", "C15", "bad_pairing_sent", NoPairing),
        KnownBad("kb_no_flip", "C16", "roles_flipped", messages(_flipped)),
        KnownBad("kb_double_flip", "C16", "roles_flipped", messages(_one_role)),
        KnownBad(
            "kb_strip_hashes",
            "C17",
            "stop_token_changed",
            reply(lambda g, r: replace(g, content=(g.content or "").replace("#", ""))),
        ),
        KnownBad("kb_extra_turn", "C17", "extra_request", making.asking(_extra_turn)),
        KnownBad("kb_truncate_64k", "C18", "truncated", _contents(lambda t: t[:65536])),
        KnownBad("kb_sort_keys", "C19", "schema_key_order", tools(lambda t: json.loads(json.dumps(t, sort_keys=True)))),
        KnownBad(
            "kb_strip_defaults",
            "C19",
            "schema_changed",
            tools(lambda t: _deep(t, lambda n: {k: v for k, v in n.items() if k != "default"})),
        ),
        KnownBad("kb_inline_refs", "C19", "schema_changed", tools(_inlined)),
        KnownBad(
            "kb_sort_tools",
            "C19",
            "tool_order",
            tools(lambda t: sorted(t, key=lambda x: x["function"]["name"], reverse=True)),
        ),
        KnownBad("kb_empty_tools_list", "C20", "tools_without_tools", body(lambda b, r: {"tools": []} | b)),
        KnownBad("kb_collapse_outer_over_inner", "C21", "mismatch_sent", layer=layer(gateway=CollapsingGateway)),
        KnownBad("kb_strip_outer_silently", "C21", "undeclared_rewrite", UndeclaredRewrite),
    )
