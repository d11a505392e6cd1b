"""Telling a tool's rejection of its arguments from a business error, by what tau2 wrote into the tool message.

tau2 turns whatever a tool raises into ``Error: <text of the exception>``. Arguments are rejected in three ways:

* Python refuses the call itself: an argument is missing, unexpected, or clashes with a name of tau2's own dispatcher.
* A data model refuses a value: ``2 validation errors for FlightInfo``.
* The tool trips over a value of the wrong type or outside an enumeration: a type or attribute fault of Python, or a
  failed look-up, whose whole text is the ``repr`` of that value.

Everything else is a business error: the tool understood its arguments and said no ("Reservation X not found"). Two
limits follow from reading texts. A value of the wrong type that the tool takes for an unknown id (``order_id`` 5)
gives a business error. And ``calculate`` runs its expression, so what a textual expression raises is about the
expression's value, never about its type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PREFIX = "Error: "
_CALL_REFUSED = re.compile(
    r"[\w.<>]+\(\) (?:"
    r"missing \d+ required (?:positional|keyword-only) arguments?: '.+'"
    r"|got an unexpected keyword argument '.*'(?:\. Did you mean '.*'\?)?"
    r"|got multiple values for (?:keyword )?argument '.+'"
    r"|got some positional-only arguments passed as keyword arguments: '.+'"
    r"|takes (?:\d+|from \d+ to \d+) positional arguments? but \d+ (?:was|were) given"
    r")|keywords must be strings",
    re.DOTALL,
)
_MODEL_REFUSED = re.compile(r"\d+ validation errors? for \w+(?:\[.*?\])?\n")
_T = r"'[\w.]+'"
_TYPE_FAULT = re.compile(
    rf"unhashable type: {_T}"
    rf"|cannot use {_T} as an? [\w ]+ \(unhashable type: {_T}\)"
    rf"|{_T} object (?:is not (?:iterable|subscriptable|callable|a mapping|a container or iterable)"
    rf"|cannot be interpreted as an integer|has no attribute '\w+'(?:\. Did you mean: '\w+'\?)?"
    rf"|does not support item assignment|is not reversible|is not an iterator)"
    rf"|argument of type {_T} is not (?:iterable|a container or iterable)"
    rf"|object of type {_T} has no len\(\)"
    rf"|unsupported operand type\(s\) for [^ ]+(?: or pow\(\))?: {_T} and {_T}"
    rf"|bad operand type for [^ ]+ [^ ]+: {_T}"
    rf"|'[<>=!]+' not supported between instances of {_T} and {_T}"
    r"|can only (?:concatenate|join) .+ \(not \"\w+\"\) to \w+"
    rf"|can't multiply sequence by non-int of type {_T}"
    r"|'in <string>' requires string as left operand, not \w+"
    r"|\w+\(\) arg(?:ument)? \d+ must be .+"
    r"|\w+\(\) argument must be .+, not '?\w+'?"
    r"|(?:list|tuple|string|byte) indices must be integers.*"
    r"|sequence item \d+: expected str instance, \w+ found"
    r"|expected string or bytes-like object.*"
    rf"|.+ argument after \*\*? must be (?:a mapping|an iterable), not \w+"
)


def error_text(content: str | None) -> str:
    """The exception's text of an error message, without tau2's prefix."""
    text = content or ""
    return text[len(_PREFIX) :] if text.startswith(_PREFIX) else text


def is_unknown_tool(name: str, content: str | None) -> bool:
    """Whether an error message says that the environment has no such tool."""
    return error_text(content) == f"Tool '{name}' not found."


def rejects_arguments(name: str, arguments: Mapping[str, Any], content: str | None) -> bool:
    """Whether an error message means that the tool rejected its arguments.

    Args:
        name: The called tool.
        arguments: What it was called with.
        content: The content of the tool message; only call this for a message with ``error`` true.
    """
    text = error_text(content)
    if _CALL_REFUSED.fullmatch(text) or _MODEL_REFUSED.match(text):
        return True
    if name == "calculate" and isinstance(arguments.get("expression"), str):
        return False
    return bool(_TYPE_FAULT.fullmatch(text)) or any(text == repr(value) for value in arguments.values())
