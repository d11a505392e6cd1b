"""A cassette as a value: what one episode recorded, and how its packed records unfold. No IO.

Values that repeat are stored once. A record may carry ``"new"``, a list of shared values; they are numbered from 0 in
file order, and ``{"$": 7}`` anywhere in a record stands for shared value 7. A shared value is a string, or a container
that refers to nothing but shared strings, so unfolding is two steps deep at most. A dictionary whose only key is
``"$"`` is written ``{"$": [VALUE]}``.

A *document* (a native request, a JSON body) is written in full, ``{"is": {...}}``, or as a change to an earlier one,
``{"like": NUMBER, "grow": {"messages": [KEPT, 7, ...]}, "at": {"/seed": 1}, "leaves": [4, "x", 6, "y"]}``: a grown list
keeps its first KEPT items and gains shared values, the places named by JSON pointers have new values, and so have the
leaves (what is not an object or list with something in it), counted from 0 in the order in which they stand, index and
value in turn. All else is equal.
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.episode import Diagnostic, EpisodeResult, LostTurn
from replaykit.errors import EvidenceError
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, WireExchange

VERSION = 1
SCHEMA = f"replaykit.cassette/{VERSION}"
SUFFIXES = (".cassette.jsonl", ".cassette.jsonl.zst")
HEADER_KEYS = (
    "panel",
    "fleet_digest",
    "engine",
    "settings",
    "budget",
    "roster",
    "arm",
    "seeds",
    "controls",
    "created_by",
    "created_at",
)
DIGEST_LENGTH = 16  # hex digits of a request digest in a record: a check, since the request itself is there
UNFOLDED_LIMIT = 256 * 1024 * 1024
_REF = "$"


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
        value = self.unfold(packed, self._text)
        self._values.append(value)
        self._sizes.append(len(canonical.ordered(packed)) + UNFOLDED_LIMIT - self._room)

    def unfold(self, packed: Any, lookup: Callable[[int], Any] | None = None) -> Any:
        """The value behind a packed one. Parts are shared between calls: treat the result as read-only.

        Raises:
            ValueError: a reference points nowhere, or the value would be larger than 256 MiB.
        """
        self._room = UNFOLDED_LIMIT
        return self._unfold(packed, lookup or self._any)

    def _unfold(self, packed: Any, lookup: Callable[[int], Any]) -> Any:
        kind = type(packed)
        if kind is dict:
            if len(packed) == 1 and _REF in packed:
                return self._reference(packed[_REF], lookup)
            return {key: self._unfold(value, lookup) for key, value in packed.items()}
        if kind is list:
            return [self._unfold(value, lookup) for value in packed]
        return packed

    def _reference(self, target: Any, lookup: Callable[[int], Any]) -> Any:
        if type(target) is list and len(target) == 1:
            return {_REF: self._unfold(target[0], lookup)}
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
        self._forms[number] = packed["json"] if "json" in packed else self._forms.get(packed.get("like", 0))

    def form(self, number: int) -> str | None:
        """How the document was written: one of `canonical.WIRE_FORMS`, or None when it never was bytes."""
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
            value = self._memo[number] = self._step(value, self._packed[number])
        return value

    def _step(self, base: Any, packed: dict) -> Any:
        if "is" in packed:
            return self._shared.unfold(packed["is"])
        value = base
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
        return base[:kept] + self._shared.unfold([{_REF: number} for number in grown[1:]])


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


def body_bytes(packed: dict | None, shared: Shared, documents: Documents, number: int) -> bytes:
    """The bytes of a stored body, exactly as they crossed the wire unless redaction changed them.

    Args:
        packed: What the record holds; None: an empty body.
        shared: The cassette's shared values.
        documents: The JSON bodies of this side.
        number: The exchange's position in the file, from 1.

    Raises:
        ValueError: the body is not in one of the forms that cassettes hold.
    """
    if packed is None:
        return b""
    if not isinstance(packed, dict):
        raise ValueError("a body is not an object")
    if "text" in packed:
        return _text_bytes(shared.unfold(packed["text"]))
    if "base64" in packed:
        return _from_base64(packed["base64"])
    if "withheld" in packed:
        return b""
    form = documents.form(number)
    if form not in canonical.WIRE_FORMS:
        raise ValueError("a body in an unknown form")
    return canonical.wire(documents.value(number), form)


def _text_bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise ValueError("a text body is not text")
    return text.encode("utf-8", "surrogatepass")


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError("a base64 body is not base64") from error


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One seat request and what became of it.

    Attributes:
        number: Position among all requests of the episode, from 1.
        seat: ``learner``, ``customer`` or ``judge``.
        digest: Ordered digest of the native request as stored (after redaction).
        outcome: `SeatReply`, `SeatFailure`, a dict (what else ended it: a budget, a refusal), or None: interrupted.
        exchange_records: The packed wire exchanges with their positions in the file (see `exchanges`).
    """

    number: int
    seat: str
    digest: str
    outcome: SeatReply | SeatFailure | dict | None
    exchange_records: tuple[tuple[int, dict], ...]
    _pages: Pages = field(repr=False, compare=False)

    @property
    def native(self) -> SeatRequest:
        """The native request as tau2 built it (after redaction). Its lists are shared: read-only.

        Raises:
            EvidenceError: the record does not unfold to a native request.
        """
        try:
            return SeatRequest.from_dict(self._pages.natives.value(self.number), self.number)
        except UNFIT as error:
            raise EvidenceError(f"request {self.number} does not unfold to a native request: {error}") from error

    @property
    def exchanges(self) -> tuple[WireExchange, ...]:
        """The wire exchanges, rebuilt.

        Raises:
            EvidenceError: a body does not unfold.
        """
        try:
            return tuple(self._pages.exchange(position, record) for position, record in self.exchange_records)
        except UNFIT as error:
            raise EvidenceError(f"a wire exchange of request {self.number} does not unfold: {error}") from error


UNFIT = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
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
            partial=body_bytes(record.get("partial"), self.shared, self.answers, position),
        )

    def _side(self, packed: dict, documents: Documents, position: int) -> dict:
        head, body = self.shared.unfold(packed["head"]), body_bytes(packed["body"], self.shared, documents, position)
        headers = {name: values or [str(len(body))] for name, values in head["headers"].items()}
        return {**head, "headers": headers, "body": body}


@dataclass(frozen=True, slots=True)
class Cassette:
    """Everything one episode recorded, verified.

    Attributes:
        header: The header's members (panel, engine, settings, seeds, ...).
        requests: In order of their numbers.
        states: ``(turn, digest)`` of the policy state after each learner turn.
        notes: Free records: seams of a resume or a fork, in order.
        footer: None when interrupted; else ``result`` (`EpisodeResult.to_dict`), ``policy_states`` and what the
            recorder added.
        interrupted: The recording did not end: no footer.
        digest: Hex SHA-256 over all bytes before the footer (over the whole records when interrupted).
        whole_bytes: Bytes of the whole records; what follows them is a torn tail.
        path: Where it came from.
    """

    header: dict
    requests: tuple[RecordedRequest, ...]
    states: tuple[tuple[int, str], ...]
    notes: tuple[dict, ...]
    footer: dict | None
    digest: str
    whole_bytes: int
    path: Path | None = None

    @property
    def interrupted(self) -> bool:
        """The recording has no footer."""
        return self.footer is None

    @property
    def panel(self) -> str:
        """The panel's id, e.g. ``airline/0``."""
        return self.header["panel"]

    @property
    def result(self) -> EpisodeResult | None:
        """How the episode ended, or None when interrupted.

        Raises:
            EvidenceError: the stored result has other members than an episode's result.
        """
        if self.footer is None:
            return None
        try:
            return episode_result(self.footer["result"])
        except (KeyError, TypeError, AttributeError) as error:
            raise EvidenceError(f"the stored result is not an episode's result: {error}", self.path) from error


def episode_result(data: Mapping[str, Any]) -> EpisodeResult:
    """Undo `EpisodeResult.to_dict`.

    Raises:
        KeyError, TypeError: the data is not a result.
    """
    lost = data["lost_turn"]
    diagnostics = [Diagnostic(d["name"], d.get("detail")) for d in data["diagnostics"]]
    return EpisodeResult(**{**data, "lost_turn": LostTurn(**lost) if lost else None, "diagnostics": diagnostics})


@dataclass(frozen=True, slots=True)
class CassetteSummary:
    """What the header and the footer say; the records between were not read.

    Attributes:
        header: As in `Cassette`.
        footer: The short footer, or None when interrupted: ``summary`` (termination, reward, steps, ...),
            ``fields`` (what the recorder added), ``counts`` by kind, ``digest``.
        size_bytes: Size of the file.
    """

    path: Path
    header: dict
    footer: dict | None
    size_bytes: int

    @property
    def interrupted(self) -> bool:
        """The recording has no footer."""
        return self.footer is None

    @property
    def panel(self) -> str:
        """The panel's id."""
        return self.header["panel"]

    @property
    def summary(self) -> dict:
        """Termination, reward, steps, errors, hashes, seed, diagnostic names; empty when interrupted."""
        return self.footer["summary"] if self.footer else {}
