"""The three views of a capture, decoded: what the caller logged, what the control saw, what the consumer was given."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from replaykit.certify.capture import raw_bytes
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.probe import ANSWERS, Probe, Step, with_twins
from replaykit.certify.profile import Profile
from replaykit.controls.answering import wire_of
from replaykit.controls.wires import WIRES, RequestLine, WireRefusal
from replaykit.seats import SeatFailure, SeatReply


class Exchange:
    """One exchange of the control's journal.

    Args:
        data: As captured.
        wire: The wire of the profile.
    """

    def __init__(self, data: dict, wire: str) -> None:
        self.data, self._wire = data, wire
        self.at = data["times_us"].get("first_byte", 0)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError as error:
            raise AttributeError(name) from error

    @cached_property
    def head(self) -> tuple[str, str, dict[str, str]]:
        """Method, target and headers with names in lower case."""
        lines = raw_bytes(self.data["request"]).partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        method, target, _ = [*lines[0].split(" "), "", "", ""][:3]
        return method, target, {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}

    @cached_property
    def body(self) -> Any:
        """The request's body as data, members in order."""
        raw = raw_bytes(self.data["request"]).partition(b"\r\n\r\n")[2]
        try:
            return json.loads(_dechunked(raw) if "transfer-encoding" in self.head[2] else raw)
        except ValueError as error:
            raise Unseen(f"request {self.data['number']} is not JSON") from error

    @cached_property
    def asked(self) -> Any:
        """The request in the control's normal form.

        Raises:
            Unseen: it is no request of the wire.
        """
        method, target, headers = self.head
        path = wire_of(
            "/" + target.split("?")[0].split("/", 3)[3] if self.data["case"] and target.count("/") > 2 else target
        )[1]
        try:
            return WIRES[self._wire].parse(RequestLine(method, path, headers), self.body, False)
        except WireRefusal as error:
            raise Unseen(f"request {self.data['number']}: {error}") from error

    @property
    def whole(self) -> bool:
        """It arrived as a whole and its answer left as a whole."""
        return bool(self.data["request_complete"] and self.data["fully_written"])

    def reply_ids(self) -> tuple[str, ...]:
        """How the nonce may be spelt as a reply's id."""
        nonce = self.data["nonce"]
        return (nonce, f"chatcmpl-{nonce}", f"resp_{nonce}", f"msg_{nonce}")


@dataclass
class Seen:
    """One step with what each view saw of it."""

    step: Step
    data: dict
    wire: list[Exchange]

    @property
    def reply(self) -> SeatReply | None:
        """What the transport gave, if it gave a reply."""
        return SeatReply.from_dict(self.data["reply"]) if "reply" in self.data else None

    @property
    def delivered(self) -> SeatReply | None:
        """What the consumer got: a reply that was not lost on the way."""
        return None if "lost" in self.data or "failure" in self.data else self.reply

    @property
    def failure(self) -> SeatFailure | None:
        """What the transport said instead of a reply."""
        return SeatFailure.from_dict(self.data["failure"]) if "failure" in self.data else None

    @property
    def lost(self) -> str | None:
        """Why the turn was lost."""
        return self.data["lost"]["reason"] if "lost" in self.data else None

    @property
    def outcome(self) -> str:
        """One word: the failure's kind, the reason of the loss, ``reply``, ``hung`` or ``error``."""
        if "hung" in self.data or "error" in self.data:
            return "hung" if "hung" in self.data else "error"
        failure = self.failure
        return failure.kind if failure else self.lost or ("reply" if self.reply else "nothing")

    @property
    def told_us(self) -> int:
        """Microseconds until the caller was told."""
        return self.data["ended_us"] - self.data["began_us"]

    def only(self) -> Exchange:
        """The one exchange of this step.

        Raises:
            Unseen: there is none.
            Failed: ``retried``: there are several.
        """
        if not self.wire:
            raise Unseen(f"{self.step.name} never reached the wire")
        if len(self.wire) > 1:
            raise Failed("retried", f"{self.step.name}: {len(self.wire)} requests")
        return self.wire[0]


class Views:
    """A capture, read against the probe it was made from.

    Raises:
        Unseen: the capture was not made from this probe.
    """

    def __init__(self, probe: Probe, capture: dict, profile: Profile) -> None:
        self.probe, self.capture, self.profile = probe, capture, profile
        steps = with_twins(probe)
        records = capture.get("steps") or []
        if [r.get("step") for r in records] != [s.name for s in steps]:
            raise Unseen("the capture holds other steps than the check asks")
        exchanges = sorted((Exchange(e, profile.wire) for e in capture["wire"]), key=lambda e: e.at)
        shares = _shares(steps, records, exchanges)
        self.all = [Seen(s, r, w) for s, r, w in zip(steps, records, shares, strict=True)]
        self.wire = exchanges

    @property
    def steps(self) -> list[Seen]:
        """The steps of the probe, without the twins."""
        return [s for s in self.all if not s.step.name.startswith("twin-")]

    @property
    def twins(self) -> list[Seen]:
        """The accept twins."""
        return [s for s in self.all if s.step.name.startswith("twin-")]

    def step(self, name: str) -> Seen:
        """A step by name."""
        return next(s for s in self.all if s.step.name == name)


def _shares(steps: Iterable[Step], records: list[dict], exchanges: list[Exchange]) -> list[list[Exchange]]:
    """Which exchanges belong to which step: those that began after it did and before the next one of another group."""
    shares: list[list[Exchange]] = [[] for _ in records]
    steps = list(steps)
    for exchange in exchanges:
        before = [i for i, r in enumerate(records) if r["began_us"] <= exchange.at]
        if not before:
            continue
        last = before[-1]
        group = steps[last].group
        mates = [i for i, s in enumerate(steps) if group and s.group == group]
        digests = exchange.data["request_sha256"]
        own = [i for i in mates if any(e["request_sha256"] == digests for e in records[i]["exchanges"])]
        shares[own[0] if own else last].append(exchange)
    return shares


def deliver(seen: Seen) -> None:
    """Check that a healthy step was sent once and its own answer delivered.

    Raises:
        Failed, Unseen: it was not.
    """
    reply = seen.reply
    if not seen.wire:
        raise Failed("not_on_wire" if reply else "not_delivered", f"{seen.step.name}: {seen.outcome}")
    if reply is None or seen.outcome in ("error", "hung"):
        raise Failed("not_delivered", f"{seen.step.name}: {seen.outcome} {_why(seen)}")
    exchange = seen.only()
    if exchange.seat != seen.step.seat:
        raise Failed("seat_swapped", f"{seen.step.name} went to the {exchange.seat}")
    if not exchange.whole or exchange.status != 200:
        raise Failed("not_delivered", f"{seen.step.name}: the control answered {exchange.status} ({exchange.problem})")
    if reply.id not in exchange.reply_ids():
        raise Failed("wrong_nonce", f"{seen.step.name}: the reply is not the one the control gave")
    if seen.step.fault is None:
        _same_answer(seen, reply, exchange)


def _same_answer(seen: Seen, reply: SeatReply, exchange: Exchange) -> None:
    expected = ANSWERS[seen.step.seat]
    if seen.step.seat == "judge":
        expected = json.dumps(json.loads(expected) | {"control": exchange.nonce})
    if reply.content != expected or reply.tool_calls:
        raise Failed("not_delivered", f"{seen.step.name}: another text than the control gave")


def agree(seen: Seen, same_bytes: bool = True) -> None:
    """Check that the caller's log and the control's journal tell the same story of a step.

    Args:
        same_bytes: Whether both must have seen the same bytes; behind a gateway only the count is held.

    Raises:
        Failed: ``log_disagrees``.
    """
    logged, wire = seen.data["exchanges"], [e for e in seen.wire if e.request_complete]
    if len(logged) != len(wire):
        connected = [x for x in logged if x["status"] is not None or wire]
        if len(connected) != len(wire):
            raise Failed(
                "log_disagrees", f"{seen.step.name}: {len(logged)} exchanges logged, {len(wire)} seen by the control"
            )
    for mine, theirs in zip(logged, wire, strict=False) if same_bytes else ():
        if mine["request_sha256"] != theirs.data["request_sha256"]:
            raise Failed("log_disagrees", f"{seen.step.name}: another request body")
        if (
            mine["response_sha256"]
            and theirs.fully_written
            and mine["response_sha256"] != theirs.data["response_sha256"]
        ):
            raise Failed("log_disagrees", f"{seen.step.name}: another response body")


def common(views: Views) -> int:
    """The rules that hold in every check: accept twins delivered, healthy steps delivered, views agreeing.

    Returns:
        How many exchanges it rests on.

    Raises:
        Failed, Unseen: a rule is broken.
    """
    for seen in views.all:
        expected = seen.step.digest_of_request(views.all.index(seen) + 1)
        if seen.data.get("asked") not in (None, expected):
            raise Failed("log_disagrees", f"{seen.step.name}: another request was asked than the check asks")
    for seen in views.twins:
        deliver(seen)
    for first, second in zip(views.twins[::2], views.twins[1::2], strict=True):
        if first.reply.id == second.reply.id:  # type: ignore[union-attr]
            raise Failed("memoized", first.step.seat)
    for seen in views.steps:
        if seen.step.healthy and seen.step.expect != "refused" and "elsewhere" not in seen.data:
            deliver(seen)
    if views.profile.sees_wire:
        for seen in views.all:
            if "elsewhere" not in seen.data:
                agree(seen, not views.profile.gateway)
    return sum(e.whole for e in views.wire)


def _why(seen: Seen) -> str:
    failure = seen.failure
    return seen.data.get("error") or (failure.message if failure else "")


def _dechunked(raw: bytes) -> bytes:
    body, at = b"", 0
    while (end := raw.find(b"\r\n", at)) >= 0:
        size = int(raw[at:end].split(b";")[0], 16)
        body += raw[end + 2 : end + 2 + size]
        at = end + 4 + size
    return body
