"""Keep keys out of messages: by value for the keys we were given, by pattern for keys we were not."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable
from urllib.parse import quote

MARK = "[secret]"
MIN_LENGTH = 4
_PATTERNS = re.compile(r"sk-[A-Za-z0-9*_-]{8,}|AIza[A-Za-z0-9_*-]{10,}|(?i:bearer)\s+[A-Za-z0-9._~+/*=-]{8,}")


class Secrets:
    """The secret values a process knows; safe to use from many threads."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._forms: tuple[str, ...] = ()
        for value in values:
            self.keep(value)

    def keep(self, value: str | None) -> None:
        """Learn one more secret; None and texts of less than four characters, which hide nothing, are not secrets."""
        if not value or len(value) < MIN_LENGTH:
            return
        with self._lock:
            self._forms = tuple(sorted({*self._forms, *_forms(value)}, key=len, reverse=True))

    def redact(self, text: str) -> str:
        """The text without any known secret, plain, quoted, escaped or in base64."""
        for form in self._forms:
            text = text.replace(form, MARK)
        return _PATTERNS.sub(MARK, text)


def _forms(value: str) -> set[str]:
    encoded = value.encode("utf-8", "surrogatepass")
    in_base64 = {base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(encoded).decode()}
    return {value, quote(encoded, safe=""), json.dumps(value)[1:-1], repr(value)[1:-1]} | {
        b.rstrip("=") for b in in_base64
    }
