"""Compare what crossed the seats of two episodes: requests and replies, aligned, each with what it can follow from.

A request is determined by the engine, the fleet, the seeds, who sits at its seat, and the replies before it; a reply by
its request and by who answers. So a request that differs although none of these does is a cause, and so is another
reply to the same request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from replaykit import canonical
from replaykit.cassette import Cassette, RecordedRequest
from replaykit.diff import renumbering, text
from replaykit.diff.align import align
from replaykit.diff.ignoring import Ignored
from replaykit.diff.leaves import Walk
from replaykit.diff.values import Finding
from replaykit.difference import MISSING, Difference
from replaykit.seats import SeatFailure, SeatReply

_APART = ("id", "usage", "cost")  # of a reply: the provider's own id; tokens and cost have a section of their own
_NAMED = 3  # differing replies that a later difference names
_BY_ENGINE = ("tools", "tool_choice", "arguments", "model")


@dataclass(slots=True)
class Conversation:
    """One side, with tool call ids by place where the other side numbers them otherwise.

    Attributes:
        natives: The native requests as plain data, without what is ignored.
        outcomes: Replies, failures and other ends as plain data.
        seats: Seat of each request.
        digests: Digest of each request, where nothing was renamed or left out.
    """

    natives: list[dict]
    outcomes: list[dict | None]
    seats: list[str]
    digests: list[str] | None
    interrupted: bool

    @classmethod
    def of(cls, cassette: Cassette, ids: renumbering.Turns | None, ignored: Ignored) -> Conversation:
        """Read a side of a comparison; ``ids`` are given where they have to be renamed."""
        natives, outcomes = [], []
        names = {seat: renumbering.Renaming(of_seat) for seat, of_seat in (ids or {}).items()}
        turns: Counter[str] = Counter()
        for request in cassette.requests:
            native, outcome = request.native.to_dict(), _outcome(request)
            if request.seat in names:
                native = {**native, "messages": names[request.seat].history(native["messages"])}
                if outcome and outcome.get("tool_calls"):
                    outcome = names[request.seat].reply(outcome, turns[request.seat])
                    turns[request.seat] += 1
            natives.append(_without(native, ignored, "requests", request.number))
            outcomes.append(outcome and _without(outcome, ignored, "replies", request.number))
        digests = None if names or ignored.touches("requests") else [r.digest for r in cassette.requests]
        return cls(natives, outcomes, [r.seat for r in cassette.requests], digests, cassette.interrupted)


def _without(value: dict, ignored: Ignored, *path: object) -> dict:
    """The value without what is ignored; a request keeps its seat, which is its place in the episode."""
    if ignored.covers(*path):
        return {"seat": value["seat"]} if "seat" in value else {}
    return ignored.without(value, *path)


def _outcome(request: RecordedRequest) -> dict | None:
    outcome = request.outcome
    if isinstance(outcome, SeatReply):
        return {key: value for key, value in outcome.to_dict().items() if key not in _APART}
    if isinstance(outcome, SeatFailure):
        return {"failure": outcome.to_dict()}
    return None if outcome is None else {"end": outcome}


class Talk:
    """The comparison of two conversations.

    Args:
        left, right: Both sides.
        walk: Does the comparing, and keeps count.
        ignored: What is left out.
        outside: Sections of the header that differ.
    """

    def __init__(
        self, left: Conversation, right: Conversation, walk: Walk, ignored: Ignored, outside: frozenset[str]
    ) -> None:
        self._left, self._right, self._walk, self._ignored, self._outside = left, right, walk, ignored, outside
        self._seen: set[tuple] = set()
        self._compared: dict[str, tuple[list, list]] = {}
        self._replies: list[str] = []
        self.unfinished: list[str] = []

    def findings(self) -> Iterator[Finding]:
        """Differences in the order in which the requests were made."""
        ours, theirs = self._tokens(self._left), self._tokens(self._right)
        if ours == theirs:
            pairs = [(i, i) for i in range(len(ours))]
        elif Counter(ours) == Counter(theirs):
            yield self._other_order(ours, theirs)
            return
        else:
            pairs = align(ours, theirs, lambda token: token[0])
        for i, j in pairs:
            if i is None or j is None:
                yield from self._one_sided(i, j)
            else:
                yield from self._pair(i, j, ours[i] == theirs[j])

    def _tokens(self, side: Conversation) -> list[tuple]:
        if side.digests is not None:
            return list(zip(side.seats, side.digests, strict=True))
        of = self._walk.tokens.of
        return [
            (native["seat"], *[tuple(map(of, v)) if isinstance(v, list) else of(v) for v in native.values()], *native)
            for native in (n if "seat" in n else {"seat": None, **n} for n in side.natives)
        ]

    def _other_order(self, ours: list, theirs: list) -> Finding:
        at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        seats = self._left.seats[at], self._right.seats[at]
        note = "both sides hold the same requests, in another order"
        if seats[0] != seats[1]:
            finding = _request(at, seats[0], Difference("/seat", "seat", *seats))
        else:
            order = [next(j + 1 for j, b in enumerate(theirs) if b == a) for a in ours]
            finding = _request(at, seats[0], Difference("", "order", list(range(1, len(ours) + 1)), order))
        return replace(finding, follows_from=self._causes(engine_only=False, seat=seats[0]), note=note)

    def _one_sided(self, i: int | None, j: int | None) -> Iterator[Finding]:
        side, at = (self._left, i) if j is None else (self._right, j)
        other = self._right if j is None else self._left
        if other.interrupted and at >= len(other.natives):
            word = "right" if j is None else "left"
            self._note(f"the {word} recording is interrupted: it ends after request {len(other.natives)}")
            return
        if self._ignored.covers("requests", at + 1):
            return
        asked = _said(side.natives[at])
        kind, values = ("missing", (asked, MISSING)) if j is None else ("extra", (MISSING, asked))
        causes = self._causes(engine_only=False, seat=side.seats[at])
        yield replace(_request(at, side.seats[at], Difference("", kind, *values)), follows_from=causes)
        if not self._replies:
            self._replies.append(f"request {at + 1}")

    def _pair(self, i: int, j: int, same: bool) -> Iterator[Finding]:
        found = [] if same else list(self._request(i, j))
        yield from found
        yield from self._reply(i, j, [] if same else [f"request {i + 1}"])

    def _note(self, sentence: str) -> None:
        if sentence not in self.unfinished:
            self.unfinished.append(sentence)

    def _request(self, i: int, j: int) -> Iterator[Finding]:
        left, right = self._left.natives[i], self._right.natives[j]
        seat = self._left.seats[i]
        found = self._differences(seat, left, right)
        seats = [d for d in found if d.pointer == "/seat"]
        for difference in [replace(seats[0], kind="seat")] if seats else found:
            key = (
                seat,
                difference.pointer,
                difference.kind,
                *map(canonical.ordered, (difference.left, difference.right)),
            )
            if key in self._seen:
                continue
            self._seen.add(key)
            causes = self._causes(_is_by_engine(difference.pointer, left, right), seat)
            yield replace(_request(i, seat, difference), follows_from=causes, note=_other_number(i, j))

    def _differences(self, seat: str, left: dict, right: dict) -> list[Difference]:
        """Differences between two requests, but for messages that earlier requests of the seat carried already."""
        before, after = self._compared.get(seat, ([], [])), (left.get("messages"), right.get("messages"))
        if not all(isinstance(messages, list) for messages in after):
            return self._walk.compare(left, right)
        self._compared[seat] = after
        grown = all(self._begins(now, known) for now, known in zip(after, before, strict=True))
        starts = (len(before[0]), len(before[1])) if grown else (0, 0)
        tails = self._walk.compare_tails(*after, starts, ("messages",))
        rest = [{k: v for k, v in side.items() if k != "messages"} for side in (left, right)]
        found = self._walk.compare(*rest)
        return [*(d for d in found if d.pointer == "/seat"), *tails, *(d for d in found if d.pointer != "/seat")]

    def _begins(self, messages: list, known: list) -> bool:
        of = self._walk.tokens.of
        pairs = zip(messages, known, strict=False)
        return len(messages) >= len(known) and all(a is b or of(a) == of(b) for a, b in pairs)

    def _reply(self, i: int, j: int, request: list[str]) -> Iterator[Finding]:
        left, right = self._left.outcomes[i], self._right.outcomes[j]
        if left is None or right is None:
            if left is not right:
                word = "left" if left is None else "right"
                self._note(f"request {i + 1} was not answered on the {word} when it was interrupted")
            return
        seat, found = self._left.seats[i], self._walk.compare(left, right)
        causes = (*request, *self._who_answers(seat))
        yield from (
            replace(_finding("replies", i, seat, d), follows_from=causes, note=_other_number(i, j)) for d in found
        )
        if found:
            self._replies.append(f"reply {i + 1}")

    def _who_answers(self, seat: str) -> list[str]:
        part = "arm" if seat == "learner" else "roster"
        return [s for s in (part, "transports", "settings", "seeds") if s in self._outside]

    def _causes(self, engine_only: bool, seat: str) -> tuple[str, ...]:
        part = "arm" if seat == "learner" else "roster"
        outside = [s for s in ("panel", "engine", "fleet", part, "seeds", "versions") if s in self._outside]
        return tuple(outside) if engine_only else (*outside, *self._replies[:_NAMED])


def _said(native: dict) -> dict:
    """What a request without a partner asks: the rest of it is the conversation so far."""
    messages = native.get("messages") or [None]
    return {"seat": native.get("seat"), "messages": len(messages), "last_message": messages[-1]}


def _is_by_engine(pointer: str, left: dict, right: dict) -> bool:
    """Whether a place of a request depends on the engine and its configuration, and never on a reply."""
    steps = pointer.split("/")[1:]
    if not steps or steps[0] != "messages" or len(steps) < 2:
        return bool(steps) and steps[0] in _BY_ENGINE
    roles = [_role(side, int(steps[1])) for side in (left, right)]
    return roles == ["system", "system"] and left.get("seat") != "judge"


def _role(native: dict, index: int) -> Any:
    messages = native.get("messages", [])
    return messages[index].get("role") if index < len(messages) else None


def _request(index: int, seat: str, difference: Difference) -> Finding:
    return _finding("requests", index, seat, difference)


def _finding(section: str, index: int, seat: str, found: Difference) -> Finding:
    kind, inner = found.kind, ()
    if kind == "value" and found.pointer.endswith("/arguments"):
        kind, inner = _arguments(found)
    elif found.pointer.endswith("/content") and all(v in (None, "", MISSING) for v in (found.left, found.right)):
        kind = "no_text"
    place = canonical.pointer(section, index + 1) + found.pointer
    return Finding(
        section,
        place,
        found.pointer,
        kind,
        found.left,
        found.right,
        seat,
        index + 1,
        inner=inner,
        right_pointer=found.right_pointer,
    )


def _arguments(found: Difference) -> tuple[str, tuple[Difference, ...]]:
    """Tool arguments are JSON in a text: the difference is told inside it."""
    inner = text.in_json(found.left, found.right)
    if inner is None:
        return found.kind, ()
    kinds = {d.kind for d in inner}
    return ("spelling" if not inner else kinds.pop() if len(kinds) == 1 else "value"), tuple(inner)


def _other_number(i: int, j: int) -> str | None:
    return None if i == j else f"it is number {j + 1} on the right"
