"""What all HTTP wires share: options, declared capabilities, identity, and the one way to ask."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from replaykit import canonical
from replaykit._version import __version__
from replaykit.errors import UsageError
from replaykit.seats import ReplyCall, SeatFailure, SeatReply, TransportRequest, WireExchange, arguments_object
from replaykit.transports import bodies, pairing

if TYPE_CHECKING:
    from replaykit.transports.sender import Sender

SETTINGS = ("temperature", "top_p", "max_output_tokens", "seed", "stop")
_SECRET_NAMES = ("auth", "key", "token", "secret", "cookie", "signature", "credential", "password")
_SHARED_MODULES = (
    "bodies.py",
    "failures.py",
    "history.py",
    "network.py",
    "pairing.py",
    "redaction.py",
    "sender.py",
    "wire.py",
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a transport declares before it is used; an undeclared deviation is a failure.

    Attributes:
        not_carried: Native settings that never go on the wire, of `SETTINGS`.
        rewrites: Names of the changes it makes to a request, each with the sentence that says what it does.
        streaming: Whether it asks for a stream.
    """

    not_carried: tuple[str, ...] = ()
    rewrites: dict[str, str] = dataclasses.field(default_factory=dict)
    streaming: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for cassette and certificate."""
        return {"not_carried": list(self.not_carried), "rewrites": dict(self.rewrites), "streaming": self.streaming}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Options that all wires know.

    Attributes:
        omit: Settings that this model refuses and that are therefore not sent; declared as not carried.
    """

    omit: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.omit:
            if name not in SETTINGS:
                raise UsageError(f"the dialect omits {name!r}, which is no setting; choose from {', '.join(SETTINGS)}")


def read_dialect(kind: type[Dialect], data: Mapping[str, Any] | Dialect | None) -> Any:
    """A dialect from an arm's table.

    Raises:
        UsageError: an unknown option or a value that the option does not take.
    """
    if isinstance(data, kind):
        return data
    known = [f.name for f in dataclasses.fields(kind)]
    for name in data or {}:
        if name not in known:
            raise UsageError(f"unknown dialect option {name!r}; this wire knows {', '.join(known)}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in (data or {}).items()}
    return kind(**values)


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Check an option.

    Raises:
        UsageError: the value is not one of those allowed.
    """
    if value not in allowed:
        raise UsageError(f"the dialect option {name} is {value!r}; choose from {', '.join(map(str, allowed))}")


class WireTransport:
    """A provider behind one wire. Subclasses give the wire's name, address, authorisation and the two conversions.

    Args:
        base_url: ``http`` or ``https``, without credentials.
        model: Model name on the wire; None sends the request's own.
        key: Sent in the wire's authorisation header only; None sends no authorisation.
        sender: The shared sender.
        headers: Extra request headers of the arm.
        body_fields: Extra members of the request body; they cannot replace what the wire itself sends.
        dialect: Options of the wire, as its dialect or as a table.

    Raises:
        UsageError: an argument cannot be used.
    """

    name = ""
    wire_version: str | None = None
    dialect_type: type[Dialect] = Dialect
    own_fields: frozenset[str] = frozenset()
    auth_headers: frozenset[str] = frozenset({"authorization"})

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        key: str | None = None,
        sender: Sender | None = None,
        headers: Mapping[str, str] | None = None,
        body_fields: Mapping[str, Any] | None = None,
        dialect: Mapping[str, Any] | Dialect | None = None,
    ) -> None:
        self.base_url = self._address(base_url)
        self.model, self._key, self._sender = model, key, sender
        self.dialect = read_dialect(self.dialect_type, dialect)
        self.body_fields = self._check_fields(dict(body_fields or {}))
        self.extra_headers = self._check_headers(dict(headers or {}))
        if sender is not None:
            self._keep_secrets(sender)

    @property
    def capabilities(self) -> Capabilities:
        """What this transport does not carry and which rewrites it makes."""
        return Capabilities(not_carried=tuple(self.dialect.omit))

    @property
    def provider(self) -> str:
        """Whom side members belong to; they go back to the same wire, address and model only."""
        return f"{self.name} {self.base_url} {self.model or ''}".rstrip()

    def identity(self) -> dict[str, Any]:
        """Who answers: plain data for cassette headers and certificates, without any secret."""
        return {
            "transport": self.name,
            "wire": self.name,
            "wire_version": self.wire_version,
            "base_url": self.base_url,
            "model": self.model,
            "dialect": {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self.dialect).items()},
            "header_names": sorted(self.extra_headers),
            "body_fields": self.body_fields,
            "capabilities": self.capabilities.to_dict(),
            "code_digest": code_digest(type(self)),
        }

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """Answer one request with one attempt on the wire; see `ReplySource.ask`."""
        if self._sender is None:
            raise UsageError(f"{self.name} was made without a sender, so it cannot ask; give it one")
        pairing.check(request.messages)
        body = bodies.encode(self.to_wire(request))
        reply = self._sender.post(
            self.url(request),
            self.headers(),
            body,
            lambda status, headers, data: self.from_wire(status, headers, data, request),
            on_exchange,
            deadline_s=request.deadline_s,
        )
        return mark_cut(reply, request.settings.get("max_output_tokens"))

    def url(self, request: TransportRequest) -> str:
        """The address for this request."""
        raise NotImplementedError

    def to_wire(self, request: TransportRequest) -> dict[str, Any]:
        """The body for this request."""
        raise NotImplementedError

    def from_wire(self, status: int, headers: Mapping[str, Any], body: bytes, request: TransportRequest) -> SeatReply:
        """The reply in this response.

        Raises:
            SeatFailure: there is none.
        """
        raise NotImplementedError

    def authorisation(self, key: str) -> dict[str, str]:
        """The header that carries the key."""
        return {"authorization": f"Bearer {key}"}

    def headers(self) -> dict[str, str]:
        """All headers of a request; the arm's own win."""
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": f"replaykit/{__version__}",
        }
        if self._key:
            headers |= self.authorisation(self._key)
        return headers | {k.lower(): v for k, v in self.extra_headers.items()}

    def model_for(self, request: TransportRequest) -> str:
        """The model name to send."""
        return self.model or request.model

    def sent_settings(self, request: TransportRequest) -> dict[str, Any]:
        """The settings this wire carries, in `SETTINGS` order.

        Raises:
            SeatFailure: ``capability``: a setting the transport neither knows nor declares.
        """
        for name in request.settings:
            if name not in SETTINGS:
                raise SeatFailure("capability", f"{self.name} cannot carry the setting {name!r}; nothing was sent")
        dropped = self.capabilities.not_carried
        return {k: request.settings[k] for k in SETTINGS if k in request.settings and k not in dropped}

    def side_for(self, request: TransportRequest, call_id: str, name: str, arguments: str) -> dict[str, Any]:
        """What this very provider sent beside this very call and wants back; else an empty dict.

        Ids may repeat from turn to turn, so what the call asked for has to agree as well.
        """
        kept = request.side.get(call_id)
        if not isinstance(kept, dict) or kept.get("provider") != self.provider:
            return {}
        return kept if kept.get("of") == call_mark(name, arguments) else {}

    def _address(self, base_url: str) -> str:
        return check_base_url(base_url)

    def _check_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        for name in fields:
            if name in self.own_fields:
                raise UsageError(
                    f"the body field {name!r} is set by {self.name} itself; remove it from the extra body fields"
                )
        return fields

    def _check_headers(self, headers: dict[str, str]) -> dict[str, str]:
        reserved = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "content-encoding"}
        for name, value in headers.items():
            if name.lower() in reserved:
                raise UsageError(f"the header {name} is set by the sender; remove it from the extra headers")
            if not isinstance(value, str):
                raise UsageError(f"the value of the extra header {name} is not text")
            if self._key and name.lower() in self.auth_headers:
                raise UsageError(
                    f"the extra header {name} would be a second credential; give the key or the header, not both"
                )
        return headers

    def _keep_secrets(self, sender: Sender) -> None:
        sender.secrets.keep(self._key)
        for name, value in self.extra_headers.items():
            if names_secret(name):
                sender.secrets.keep(value)
                sender.secrets.keep(value.removeprefix("Bearer "))


def names_secret(name: str) -> bool:
    """Whether a header or query member is by its name one that holds a credential."""
    return any(part in name.lower() for part in _SECRET_NAMES)


def check_base_url(text: str) -> str:
    """A base URL without its trailing slash.

    Raises:
        UsageError: no http(s) address, or it carries a credential.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the base URL must be like https://host/v1")
    if "@" in parts.netloc:
        raise UsageError("the base URL holds a user name or password; give the key by its environment variable instead")
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if names_secret(name):
            raise UsageError(
                f"the base URL holds the credential {name!r}; give the key by its environment variable instead"
            )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))


def join_url(base_url: str, path: str) -> str:
    """A base URL with a path added before its query."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path + path, parts.query, ""))


def call_mark(name: str, arguments: str) -> str:
    """A digest of what a call asks for; the spelling of its arguments does not count, since tau2 writes them anew."""
    try:
        return canonical.digest([name, arguments_object(arguments)])
    except ValueError:
        return canonical.digest([name, arguments])


def mark_cut(reply: SeatReply, limit: int | None) -> SeatReply:
    """The reply with finish reason ``length`` when its calls broke off at the token limit under another label."""
    spent = (reply.usage or {}).get("completion_tokens")
    if limit is None or not isinstance(spent, int) or spent < limit or all(map(_is_object, reply.tool_calls)):
        return reply
    return dataclasses.replace(reply, finish_reason="length")


def code_digest(kind: type) -> str:
    """Digest over the source of a transport's module, of those it inherits from, and of what all wires share."""
    files = {pathlib.Path(__file__).with_name(name) for name in _SHARED_MODULES}
    files |= {pathlib.Path(inspect.getfile(base)) for base in kind.__mro__ if base.__module__ != "builtins"}
    return canonical.digest(sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))


def _is_object(call: ReplyCall) -> bool:
    try:
        arguments_object(call.arguments)
    except ValueError:
        return False
    return True
