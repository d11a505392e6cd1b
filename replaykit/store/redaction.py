"""Redaction before the write: by value, by header rule, by field rule and by the known shapes of keys.

Everything works on copies and is idempotent; what holds no secret comes back as the same object.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

PLACEHOLDER = "[REDACTED]"
MIN_SECRET = 8  # shorter ones would tear ordinary words apart
_MIN_BASE64 = 10

KEPT_REQUEST_HEADERS = frozenset(
    (
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-length",
        "content-type",
        "user-agent",
    )
)
KEPT_RESPONSE_HEADERS = frozenset(
    (
        "content-encoding",
        "content-length",
        "content-type",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    )
)
_KEPT = {"request": KEPT_REQUEST_HEADERS, "response": KEPT_RESPONSE_HEADERS}

SECRET_FIELDS = frozenset(
    ("access_token", "api_key", "apikey", "authorization", "client_secret", "id_token", "password", "private_key",
     "proxy_authorization", "refresh_token", "secret_key", "x_api_key", "x_goog_api_key")
)

_WORD = "[A-Za-z0-9_-]"
_TOKEN = "[A-Za-z0-9._~+/-]"
_PEM = "[A-Z ]*PRIVATE KEY-----"
_DIGIT_AHEAD = f"(?={_WORD}*[0-9])"
# Literals one of which must occur, pattern, replacement: the literals make the usual text cheap to pass.
_TABLE = (
    (("sk-",), rf"(?<![A-Za-z0-9_-])sk-{_DIGIT_AHEAD}{_WORD}{{20,}}", PLACEHOLDER),
    (("AIza",), rf"AIza{_WORD}{{35}}", PLACEHOLDER),
    (("hf_",), r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}", PLACEHOLDER),
    (("nvapi-",), rf"nvapi-{_WORD}{{20,}}", PLACEHOLDER),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,}", PLACEHOLDER),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,}", PLACEHOLDER),
    (("glpat-",), rf"glpat-{_WORD}{{20,}}", PLACEHOLDER),
    (("gsk_",), r"(?<![A-Za-z0-9_])gsk_[A-Za-z0-9]{30,}", PLACEHOLDER),
    (("xai-",), r"(?<![A-Za-z0-9_-])xai-[A-Za-z0-9]{40,}", PLACEHOLDER),
    (("pplx-",), r"pplx-[A-Za-z0-9]{32,}", PLACEHOLDER),
    (("AKIA", "ASIA"), r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", PLACEHOLDER),
    (("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,}", PLACEHOLDER),
    (("eyJ",), rf"eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}", PLACEHOLDER),
    (("earer ", "EARER "), rf"((?i:bearer) +)(?={_TOKEN}*[0-9]){_TOKEN}{{16,}}=*", rf"\g<1>{PLACEHOLDER}"),
    (("PRIVATE KEY",), rf"-----BEGIN {_PEM}.*?(?:-----END {_PEM}|\Z)", PLACEHOLDER),
    (("://",), r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@\"'<>\\]+:[^/\s@\"'<>\\]+@", rf"\g<1>{PLACEHOLDER}@"),
)
_SHAPES = tuple((re.compile(pattern, re.DOTALL), replacement) for _, pattern, replacement in _TABLE)
_LITERALS = tuple(literal for literals, _, _ in _TABLE for literal in literals)
_QUERY = re.compile(
    r"([?&](?:key|api[-_]?key|access_token|token|auth|sig|signature|password|secret)=)[^&#\s\"]+", re.IGNORECASE
)
_FIELD_NAMES = "|".join(sorted(name.replace("_", "[-_]?") for name in SECRET_FIELDS))
_FIELD = re.compile(rf'("(?:{_FIELD_NAMES})"\s*:\s*")(?:[^"\\]|\\.)+', re.IGNORECASE)


_WRITTEN = json.JSONEncoder(ensure_ascii=False).encode


class Redactor:
    """Takes secrets out of text, values, headers and addresses.

    Args:
        secrets: The values of every known key. Values shorter than 8 characters are left alone.
    """

    __slots__ = ("_forms", "_known")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= MIN_SECRET for form in _spellings(secret)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    def text(self, text: str) -> str:
        """Text without known secrets and without anything shaped like a key."""
        if len(text) < MIN_SECRET or not self._suspects(text):
            return text
        if self._known is not None:
            text = self._known.sub(PLACEHOLDER, text)
        for pattern, replacement in _SHAPES:
            text = pattern.sub(replacement, text)
        return text

    def value(self, value: Any) -> Any:
        """Plain data with every key and every text redacted; members named like a credential lose their text."""
        if type(value) in (dict, list):
            written = _WRITTEN(value)  # one look at the whole is much cheaper than one at each text
            if not self._suspects(written) and not _FIELD.search(written):
                return value
        try:
            return self._deep(value)
        except RecursionError:
            return self._flat(value)

    def headers(self, headers: Mapping[str, Iterable[str]], side: str) -> dict[str, list[str]]:
        """The headers worth keeping of one side, ``request`` or ``response``; names compare without case."""
        kept = {name: values for name, values in headers.items() if name.lower() in _KEPT[side]}
        return {name: [self.text(value) for value in values] for name, values in kept.items()}

    def uri(self, uri: str) -> str:
        """An address without credentials in its authority or its query."""
        return _QUERY.sub(rf"\g<1>{PLACEHOLDER}", self.text(uri))

    def body(self, text: str) -> str:
        """The text of a body that is not plain JSON (a stream of events, a broken reply)."""
        return _FIELD.sub(rf"\g<1>{PLACEHOLDER}", self.text(text))

    def cut(self, text: str) -> str:
        """The text of a body that broke off, which may end within a known secret."""
        clean = self.body(text)
        parts = (form[:length] for form in self._forms for length in range(len(form) - 1, MIN_SECRET - 1, -1))
        torn = next((part for part in parts if clean.endswith(part)), "")
        return clean[:len(clean) - len(torn)] + PLACEHOLDER if torn else clean

    def _suspects(self, text: str) -> bool:
        for literal in _LITERALS:
            if literal in text:
                return True
        return any(map(text.__contains__, self._forms))

    def _flat(self, value: Any) -> Any:
        """What is nested too deeply to be walked is redacted as its JSON text."""
        try:
            return json.loads(self.body(_WRITTEN(value)))
        except ValueError:  # what was taken out was part of the structure
            return PLACEHOLDER

    def _deep(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            return self._mapping(value)
        if kind in (list, tuple):
            parts = [self._deep(part) for part in value]
            return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
        return value

    def _mapping(self, value: dict) -> dict:
        parts = {self._key(key): self._member(key, part) for key, part in value.items()}
        same = len(parts) == len(value) and all(a is b for a, b in zip(parts.values(), value.values(), strict=True))
        return value if same and all(a is b for a, b in zip(parts, value, strict=True)) else parts

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _member(self, key: Any, part: Any) -> Any:
        if type(part) is str and part and isinstance(key, str) and key.lower().replace("-", "_") in SECRET_FIELDS:
            return part if part == PLACEHOLDER else PLACEHOLDER
        return self._deep(part)


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it may stand in text: plain, escaped for JSON up to three times, for addresses, in base64."""
    yield secret
    for ascii_ in (True, False):
        escaped = secret
        for _ in range(3):  # a reply's tool arguments are JSON in JSON, and are looked at once more as JSON
            escaped = json.dumps(escaped, ensure_ascii=ascii_)[1:-1]
            yield escaped
    for quoted in (quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace")):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), quoted)
    yield from _base64_spellings(secret.encode("utf-8", "surrogatepass"))


def _base64_spellings(secret: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(secret).decode()
        for shift in range(3):
            text = encode(b"\0" * shift + secret).decode()
            core = text[-(-shift * 8 // 6):(shift + len(secret)) * 8 // 6]  # only what the secret alone decides
            if len(core) >= _MIN_BASE64:
                yield core
