"""How the packed records of a cassette unfold. No IO; the other direction is `replaykit.store.packing`.

Values that repeat are stored once. A record may carry ``"new"``, a list of shared values; they are numbered from 0 in
file order, and ``{"$": 7}`` anywhere in a record stands for shared value 7. A shared value is a string, or a container
that refers to nothing but shared strings, so unfolding is two steps deep at most. A dictionary whose only key is
``"$"`` is written ``{"$": [VALUE]}``, and what is nested very deep as its JSON text, ``{"$": {"json": "[[...]]"}}``.

A *document* (a native request, a body) is written in full, ``{"is": {...}}``, or as a change to an earlier one,
``{"like": NUMBER, "grow": {"messages": [KEPT, 7, ...]}, "at": {"/seed": 1}, "leaves": [4, "x", 6, "y"]}``: a grown list
keeps its first KEPT items and gains shared values, the places named by JSON pointers have new values, and so have the
leaves (what is not an object or list with something in it), counted from 0 in the order in which they stand, index and
value in turn. All else is equal. A text that is like another is ``{"like": NUMBER, "cut": [HEAD, TAIL, "between"]}``:
so many characters of the other's start and end, and what is between.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from replaykit import canonical
from replaykit.seats import WireExchange

UNFOLDED_LIMIT = 256 * 1024 * 1024
_REF = "$"
_CONTAINERS = (dict, list)

UNFIT = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""What unfolding a record raises when it has not the shape it should have."""


class Pages:
    """What the records of one cassette unfold from: shared values, and four kinds of documents."""

    __slots__ = ("answers", "bodies", "natives", "replies", "shared")

    def __init__(self) -> None:
        self.shared = Shared()
        self.natives = Documents(self.shared)
        self.bodies = Documents(self.shared)
        self.answers = Documents(self.shared)
        self.replies = Documents(self.shared)

    def exchange(self, position: int, record: dict) -> WireExchange:
        """A wire exchange from its record.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: the record is not a wire exchange.
        """
        request = self._side(record["request"], self.bodies, position)
        answer = record["response"]
        return WireExchange(
            attempt=record["attempt"],
            request=request,
            response=None if answer is None else self._side(answer, self.answers, position),
            failure=self.shared.unfold(record.get("failure")),
            timing=record.get("timing") or {},
            partial=self._partial(record.get("partial")),
        )

    def _partial(self, packed: dict | None) -> bytes:
        alone = Documents(self.shared)
        if packed is not None and "is" in packed:
            alone.add(0, packed)
        return body_bytes(packed, alone, 0)

    def _side(self, packed: dict, documents: Documents, position: int) -> dict:
        head, body = self.shared.unfold(packed["head"]), body_bytes(packed["body"], documents, position)
        headers = {name: values or [str(len(body))] for name, values in head["headers"].items()}
        return {**head, "headers": headers, "body": body}


class Shared:
    """The shared values of one cassette, in file order."""

    __slots__ = ("_room", "_sizes", "_values")

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._sizes: list[int] = []
        self._room = 0

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> Iterator[Any]:
        """The shared values, unfolded, in number order."""
        return iter(self._values)

    def add(self, packed: Any) -> None:
        """Register the next shared value.

        Raises:
            ValueError: it is neither text nor a container of text and plain values.
        """
        if isinstance(packed, str):
            self._values.append(packed)
            self._sizes.append(len(packed))
            return
        if not isinstance(packed, (dict, list)):
            raise ValueError(f"a shared value is a {type(packed).__name__}")
        self._values.append(self.unfold(packed, self._text))
        self._sizes.append(UNFOLDED_LIMIT - self._room + len(repr(packed)))

    def unfold(self, packed: Any, lookup: Callable[[int], Any] | None = None) -> Any:
        """The value behind a packed one. Parts are shared between calls: treat the result as read-only.

        Raises:
            ValueError: a reference points nowhere, or the value would be larger than 256 MiB.
        """
        self._room = UNFOLDED_LIMIT
        return self._unfold(packed, lookup or self._any)

    def behind(self, targets: list) -> list[Any]:
        """The values behind references.

        Raises:
            ValueError: as in `unfold`.
        """
        self._room = UNFOLDED_LIMIT
        return [self._reference(target, self._any) for target in targets]

    def _unfold(self, packed: Any, lookup: Callable[[int], Any]) -> Any:
        kind, unfold = type(packed), self._unfold
        if kind is dict:
            if len(packed) == 1 and _REF in packed:
                return self._reference(packed[_REF], lookup)
            return {k: unfold(v, lookup) if type(v) in _CONTAINERS else v for k, v in packed.items()}
        if kind is list:
            return [unfold(v, lookup) if type(v) in _CONTAINERS else v for v in packed]
        return packed

    def _reference(self, target: Any, lookup: Callable[[int], Any]) -> Any:
        if type(target) is list and len(target) == 1:
            return {_REF: self._unfold(target[0], lookup)}
        if type(target) is dict and type(target.get("json")) is str:
            self._room -= len(target["json"])
            return json.loads(target["json"])
        if type(target) is not int or not 0 <= target < len(self._values):
            raise ValueError(f"a reference to shared value {target!r}, which does not exist there")
        self._room -= self._sizes[target]
        if self._room < 0:
            raise ValueError(f"a value that unfolds to more than {UNFOLDED_LIMIT} bytes")
        return lookup(target)

    def _any(self, target: int) -> Any:
        return self._values[target]

    def _text(self, target: int) -> str:
        value = self._values[target]
        if type(value) is not str:
            raise ValueError(f"shared value {target} is not text, and only text may be referred to from a shared value")
        return value


class Documents:
    """Documents by number, unfolded on demand; a document and the one it is like share their common parts."""

    __slots__ = ("_forms", "_memo", "_packed", "_shared")

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._packed: dict[int, dict] = {}
        self._forms: dict[int, str | None] = {}
        self._memo: dict[int, Any] = {}

    def add(self, number: int, packed: Any) -> None:
        """Register a document.

        Raises:
            ValueError: it is like a document that did not come before it.
        """
        if not isinstance(packed, dict) or ("is" in packed) == ("like" in packed):
            raise ValueError("a document is neither given in full nor as a change to another")
        if "like" in packed and packed["like"] not in self._packed:
            raise ValueError(f"a document is like number {packed['like']!r}, which did not come before it")
        self._packed[number] = packed
        self._forms[number] = packed["form"] if "form" in packed else self._forms.get(packed.get("like", 0))

    def form(self, number: int) -> str | None:
        """How the document was written: one of `BODY_FORMS`, or None when it never was bytes."""
        return self._forms[number]

    def value(self, number: int) -> Any:
        """A document; read-only.

        Raises:
            ValueError: it cannot be unfolded.
        """
        chain = []
        while number not in self._memo:
            chain.append(number)
            if "is" in self._packed[number]:
                break
            number = self._packed[number]["like"]
        value = self._memo.get(number)
        for number in reversed(chain):
            value = self._step(value, self._packed[number])
            if type(value) is not str:  # texts share nothing with each other, so keeping them all could fill the memory
                self._memo[number] = value
        return value

    def _step(self, base: Any, packed: dict) -> Any:
        if "is" in packed:
            return self._shared.unfold(packed["is"])
        value = base if "cut" not in packed else _spliced(base, packed["cut"])
        for key, grown in packed.get("grow", {}).items():
            value = {**value, key: self._grown(value.get(key), grown)}
        for place, part in packed.get("at", {}).items():
            value = _put(value, _steps(place), self._shared.unfold(part))
        if "leaves" in packed:
            value = with_leaves(value, self._shared.unfold(packed["leaves"]))
        return value

    def _grown(self, base: Any, grown: Any) -> list:
        if not isinstance(base, list) or not isinstance(grown, list) or not grown:
            raise ValueError("a list grows that is no list")
        kept = grown[0]
        if type(kept) is not int or not 0 <= kept <= len(base):
            raise ValueError(f"a list keeps {kept!r} of {len(base)} items")
        return base[:kept] + self._shared.behind(grown[1:])


def _steps(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def leaves(value: Any) -> Iterator[Any]:
    """What stands in a value that is not an object or a list with something in it, in order."""
    if type(value) is dict and value:
        for part in value.values():
            yield from leaves(part)
    elif type(value) is list and value:
        for part in value:
            yield from leaves(part)
    else:
        yield value


def with_leaves(value: Any, pairs: list) -> Any:
    """The value with some of its leaves exchanged: index and new leaf in turn.

    Raises:
        ValueError: there are fewer leaves.
    """
    changed = dict(zip(pairs[::2], pairs[1::2], strict=True))
    count = itertools.count()
    result = _exchanged(value, changed, count)
    there = range(next(count))
    if not all(type(index) is int and index in there for index in changed):
        raise ValueError("a leaf changes that is not there")
    return result


def _exchanged(value: Any, changed: dict[int, Any], count: Iterator[int]) -> Any:
    if type(value) is dict and value:
        return {key: _exchanged(part, changed, count) for key, part in value.items()}
    if type(value) is list and value:
        return [_exchanged(part, changed, count) for part in value]
    index = next(count)
    return changed.get(index, value)


def _put(value: Any, steps: list[str], part: Any) -> Any:
    """The value with one place set; what lies beside the way there is shared."""
    if not steps:
        return part
    key: Any = int(steps[0]) if isinstance(value, list) else steps[0]
    if not (isinstance(value, list) and 0 <= key < len(value)) and not (isinstance(value, dict) and key in value):
        raise ValueError(f"a change at {steps[0]!r}, where there is nothing")
    changed: Any = value.copy()
    changed[key] = _put(value[key], steps[1:], part)
    return changed


def _spliced(base: Any, cut: Any) -> str:
    head, tail, middle = cut
    counts = type(head) is type(tail) is int and head >= 0 and tail >= 0
    if type(base) is not str or not counts or head + tail > len(base):
        raise ValueError("a text keeps more of another than there is")
    return base[:head] + middle + base[len(base) - tail:]


BODY_FORMS = ("text", *canonical.WIRE_FORMS)


def body_bytes(packed: dict | None, documents: Documents, number: int) -> bytes:
    """The bytes of a stored body, exactly as they crossed the wire unless redaction changed them.

    Args:
        packed: What the record holds; None: an empty body.
        documents: The bodies of this side.
        number: The exchange's position in the file, from 1.

    Raises:
        ValueError: the body is not in one of the forms that cassettes hold.
    """
    if packed is None or "withheld" in packed:
        return b""
    if "base64" in packed:
        return _from_base64(packed["base64"])
    form, value = documents.form(number), documents.value(number)
    if form in canonical.WIRE_FORMS:
        return canonical.wire(value, form)
    if form != "text" or not isinstance(value, str):
        raise ValueError("a body in an unknown form")
    return value.encode("utf-8", "surrogatepass")


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError("a base64 body is not base64") from error
