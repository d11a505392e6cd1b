"""The page as one HTML text: style, script and data inline, under a content policy that allows only these.

The data stands in a script element of a type that browsers do not run, with every ``<`` escaped, and the script shows
it through text nodes only. The policy names the script and the style by digest, forbids every connection, and asks the
browser to refuse any assignment of text as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Any

STYLES = ("tokens.css", "frame.css", "list.css", "episode.css", "panes.css", "diff.css")
SCRIPTS = (
    "dom.js", "data.js", "text.js", "tree.js", "list.js", "policy.js", "episode.js", "pane.js", "rows.js", "align.js",
    "diff.js", "keys.js", "main.js",
)  # fmt: skip
# Lone surrogates have no UTF-8 form; JSON can escape them.
_SURROGATE = re.compile("[\ud800-\udfff]")


def html(data: dict) -> str:
    """The whole page.

    Args:
        data: See `episodes.Collection.to_dict`; plain JSON data without non-finite numbers.
    """
    parts = {"policy": policy(), "style": _style(), "data": embedded(data), "script": _script()}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _file("page.html"))


def policy() -> str:
    """The page's content security policy."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_source(_script())}'",
            f"style-src '{_source(_style())}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", safe)


def _source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _style() -> str:
    return "\n" + "\n".join(map(_file, STYLES))


@cache
def _script() -> str:
    """The scripts in one scope, so that they name each other and nothing else."""
    return '\n"use strict";\n(() => {\n' + "\n".join(map(_file, SCRIPTS)) + "\n})();\n"


@cache
def _file(name: str) -> str:
    return resources.files("replaykit.reports.viewer").joinpath(name).read_text(encoding="utf-8")
