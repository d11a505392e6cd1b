"""Model output as text that may be shown: what a terminal or a reader's eye would obey is written out instead."""

from __future__ import annotations

import re
from typing import Any

from replaykit import canonical

# C0 and C1 controls but newline and tab; direction marks and overrides; invisible and tag characters; surrogates.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def shown(text: Any) -> str:
    """Text with every character written out that would steer a terminal or hide in a line; lines and tabs stay."""
    plain = text if isinstance(text, str) else canonical.ordered(text).decode("utf-8", "surrogatepass")
    return _OBEYED.sub(_written_out, plain).expandtabs(4)


def one_line(text: Any) -> str:
    """As `shown`, on one line."""
    return shown(text).replace("\n", "\\n")


def _written_out(match: re.Match) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
