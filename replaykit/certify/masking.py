"""Evidence never holds the run's key: each spelling becomes a mark, so that a leak can still be seen and counted."""

from __future__ import annotations

import base64
import json
from typing import Any

MARK = "[canary {}]"
PREFIX = "[canary "


class Canary:
    """The key of one probe, and how it may be spelt."""

    def __init__(self, key: str) -> None:
        self.key = key
        forms = _forms(key)
        self._forms = sorted(((form.encode(), name) for name, form in forms.items()), key=lambda f: -len(f[0]))

    def mask(self, data: bytes) -> bytes:
        """The bytes with every spelling replaced by its mark."""
        for form, name in self._forms:
            if form in data:
                data = data.replace(form, MARK.format(name).encode())
        return data

    def text(self, text: str) -> str:
        """The same for text."""
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """The same for plain data."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(k)): self.value(v) for k, v in value.items()}
        return [self.value(v) for v in value] if isinstance(value, (list, tuple)) else value

    def found(self, data: bytes) -> list[str]:
        """Names of the spellings that the data holds."""
        return sorted({name for form, name in self._forms if form in data})


def _forms(key: str) -> dict[str, str]:
    """Plain, escaped, split over two JSON strings, and base64 at each of its three alignments without the rims."""
    half = len(key) // 2
    escaped = "".join(f"\\u{ord(c):04x}" for c in key)
    forms = {
        "plain": key,
        "escaped": escaped,
        "quoted": json.dumps(json.dumps(key))[3:-3],
        "split": f"{key[:half]}\\n{key[half:]}",
    }
    raw = key.encode()
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        forms[f"base64-{shift}"] = text[(0, 2, 3)[shift] : -1]
    if forms["quoted"] == key:
        del forms["quoted"]
    return forms
