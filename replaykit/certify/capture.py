"""Perform a probe and capture what was seen: the caller's log, the control's journal, what the consumer was given.

A capture is plain JSON data. Times are microseconds since the probe began, so that every duration is an integer.
"""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.budget import Budget
from replaykit.certify.caller_log import Log, Switch
from replaykit.certify.control import RoutedProvider
from replaykit.certify.heartbeat import Heartbeat
from replaykit.certify.masking import Canary
from replaykit.certify.probe import ANSWERS, Probe, Step, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.controls.faults import Fault, Schedule
from replaykit.controls.identities import Identity
from replaykit.controls.journal import Exchange
from replaykit.controls.replies import Reply
from replaykit.episode import TurnLost
from replaykit.record import CleanReplies
from replaykit.seats import (
    SEATS,
    SeatFailure,
    TransportRequest,
    normalise_message,
)
from replaykit.settings import TransportSettings
from replaykit.store.redaction import Redactor

_HANG_FACTOR, _HANG_S = 4.0, 3.0
NEVER = 2**52
"""When a step began that was never asked."""


@dataclass(frozen=True)
class Context:
    """What all probes of a run share.

    Attributes:
        entropy: Key of the nonces; committed to before the first request, revealed in the evidence.
        profile: See `replaykit.certify.profile`.
        provider: A provider that all probes share (gateways know one address), or None: one a probe.
    """

    entropy: bytes
    profile: Profile
    provider: RoutedProvider | None = None

    def key(self, case: str) -> str:
        """The credential of a case; it is no secret worth keeping, and yet appears in no evidence."""
        return "control" + canonical.sha256(self.entropy + case.encode())[:40]

    def demanded_key(self, case: str) -> str | None:
        """The credential that the control demands; behind a gateway, which asks with a key of its own, none."""
        return None if self.profile.gateway else self.key(case)


def identities() -> dict[str, Identity]:
    """The controls of probes: each seat gives one answer, the judge an empty list beside the nonce."""
    members = {"judge": "control"}
    return {s: Identity("probe", "one-answer", s, (Reply(ANSWERS[s]),), members.get(s)) for s in SEATS}


def schedule(steps: tuple[Step, ...], again: int = 0) -> Schedule:
    """The faults of the steps by seat and ordinal; steps that must not reach the wire have no ordinal.

    Args:
        again: For how many further requests the last step's fault goes on, for transports that ask again.
    """
    faults: dict[str, dict[int, Fault]] = {}
    counts = dict.fromkeys(SEATS, 0)
    for step in steps:
        if step.expect == "refused":
            continue
        counts[step.seat] += 1
        if step.fault is not None:
            faults.setdefault(step.seat, {})[counts[step.seat]] = step.fault
    for further in range(1, again + 1):
        seat = steps[-1].seat
        faults[seat][counts[seat] + further] = steps[-1].fault  # type: ignore[assignment]
    return Schedule(faults)


def perform(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """Perform a probe.

    Returns:
        The capture; where our own machinery failed, one with the member ``error``.
    """
    try:
        body = (
            probe.perform(check, probe, subject, context) if probe.perform else _asked(check, probe, subject, context)
        )
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        body = {"error": f"{type(error).__name__}: {error}"}
    return {"check": check, "probe": probe.name, **body}


def _asked(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    with Bench(f"{check}-{probe.name}", with_twins(probe), probe.options, subject, context) as bench:
        bench.ask_all()
        return bench.capture()


class Bench:
    """One case at a control provider, and the subject in front of it.

    Args:
        case: Name of the case.
        steps: All steps, twins included.
        options: See `probe.Probe`.
    """

    def __init__(self, case: str, steps: tuple[Step, ...], options: Any, subject: Subject, context: Context) -> None:
        self.case, self.steps, self.options, self.subject, self.context = case, steps, options, subject, context
        self.canary = Canary(context.key(case))
        self.schedule = schedule(steps, options.get("again", 0))
        self._records: list[dict] = [
            {"step": s.name, "skipped": True, "exchanges": [], "began_us": NEVER, "ended_us": NEVER} for s in steps
        ]
        self._stack = ExitStack()
        self.offset = 0

    def __enter__(self) -> Bench:
        profile, options = self.context.profile, self.options
        scaled = options.get("scaled", False)
        self._scale = profile.request_scale if scaled else 1.0
        self.provider = self.context.provider or self._stack.enter_context(
            RoutedProvider(entropy=self.context.entropy, scale=self._scale)
        )
        if self.context.provider is not None:
            self.provider.fault_scale = self._scale
        self.provider.add_case(
            self.case,
            identities(),
            self.schedule,
            strict=options.get("strict", True),
            key=self.context.demanded_key(self.case),
        )
        self._heartbeat = self._stack.enter_context(Heartbeat()) if scaled else None
        self._began = time.monotonic()
        self._first = len(self.provider.journal)
        self.sender = self._stack.enter_context(self.subject.layer.sender(**options.get("sender", {})))
        clean = Redactor((self.canary.key,))
        # A transport's failure is judged as it says it, so it is not cleaned here.
        self.sources = {s: CleanReplies(self._source(s), clean, lambda request: None, failures=False) for s in SEATS}
        self._switch = Switch()
        if options.get("record"):
            self._begin_cassette(clean)
        limits = Budget(**options.get("budget", {}))
        self.ledger = self.subject.layer.ledger(limits, time.monotonic)
        self.gateway = self.subject.layer.gateway(
            self.sources, self._switch, self.ledger, self._settings(), time.monotonic
        )
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def ask_all(self) -> None:
        """Ask every step, groups at the same time."""
        at = 0
        while at < len(self.steps):
            group = self.steps[at].group
            end = at + 1
            while group and end < len(self.steps) and self.steps[end].group == group:
                end += 1
            if group and not self.subject.base_url:
                self._together(range(at, end))
            else:
                for index in range(at, end):
                    self.ask(index)
            at = end

    def ask(self, index: int) -> None:
        """Ask one step and keep what the caller saw."""
        step = self.steps[index]
        time.sleep(step.pause_s * self._scale + step.think_s)
        self.provider.route = (self.case, step.seat)
        began = self._now()
        data = self._guarded(step, index) if self.options.get("scaled") else self._direct_or_gated(step, index)
        self._records[index] = self.canary.value(
            {"step": step.name, **data, "began_us": began, "ended_us": self._now()}
        )

    def note(self, index: int) -> None:
        """Enter a step that another process asks; its log is in that process's cassette."""
        self._records[index] = {
            "step": self.steps[index].name,
            "elsewhere": True,
            "exchanges": [],
            "began_us": self._now(),
            "ended_us": self._now(),
        }

    def journal(self, journal: Any) -> None:
        """Keep a cassette of the gateway's steps from here on, or no longer."""
        self._switch.journal = journal

    def capture(self) -> dict:
        """What was seen."""
        self.provider.settle(2.0)
        exchanges = [e for e in self.provider.journal[self._first :] if e.case in (None, self.case)]
        return {
            "case": self.case,
            "steps": self._records,
            "wire": [plain_exchange(e, self.canary, self._began) for e in exchanges],
            "connections": [self._connection(c) for c in self.provider.connections],
            "labels": {s: self.subject.layer.label(i) for s, i in identities().items()},
            "cassette": self._cassette(),
            "stall_us": self._heartbeat.stall_us if self._heartbeat else 0,
        }

    def cassette_text(self) -> str:
        """The cassette's text, the key masked.

        Raises:
            ValueError: no cassette was kept.
        """
        if self._switch.journal is None:
            raise ValueError("no cassette was kept")
        return self.canary.text(self._path.read_text("utf-8"))

    def _source(self, seat: str) -> Any:
        wire = self.context.profile.wire
        url = self.subject.base_url or self.provider.base_url(self.case, seat, wire)
        return self.subject.source(url, self.canary.key, self.sender)

    def _settings(self) -> TransportSettings:
        over = dict(self.options.get("settings", {}))
        return TransportSettings(request_s=17.0 * self._scale, **over)

    def _together(self, indices: range) -> None:
        threads = [threading.Thread(target=self.ask, args=(i,), daemon=True) for i in indices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    def _guarded(self, step: Step, index: int) -> dict:
        """Ask in a thread of its own, so that a transport without any deadline ends as hung and not for ever."""
        outcome: list[dict] = []
        thread = threading.Thread(target=lambda: outcome.append(self._direct_or_gated(step, index)), daemon=True)
        thread.start()
        thread.join(27.0 * self._scale * _HANG_FACTOR + _HANG_S)
        return outcome[0] if outcome else {"exchanges": [], "hung": True}

    def _direct_or_gated(self, step: Step, index: int) -> dict:
        log = Log()
        try:
            if step.settings is None:
                self._switch.log = log
                reply = self.gateway.ask(self.subject.layer.native(step.request(index + 1 + self.offset)))
                log.data["returned"] = reply.content
            else:
                self._direct(step, index, log)
        except TurnLost as lost:
            log.data["lost"] = lost.turn.to_dict()
        except SeatFailure as failure:
            log.data.setdefault("failure", failure.to_dict())
        except Exception as error:  # whatever a foreign transport raises is an observation
            log.data["error"] = f"{type(error).__name__}: {error}"
        return log.data

    def _direct(self, step: Step, index: int, log: Log) -> None:
        native = step.request(index + 1 + self.offset)
        log.request(native)
        request = TransportRequest(
            native.seat,
            native.number,
            native.model,
            [normalise_message(m) for m in native.messages],
            native.tools,
            native.tool_choice,
            dict(step.settings or {}),
            17.0 * self._scale,
        )
        reply = self.sources[step.seat].ask(request, lambda exchange: log.exchange(native.number, exchange))
        log.reply(native.number, reply)

    def _begin_cassette(self, redactor: Redactor) -> None:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="replaykit-"))
        self._path = Path(folder) / "probe.cassette.jsonl"
        header = dict.fromkeys(("panel", "fleet_digest", "created_at"), "probe")
        header |= {
            k: {} for k in ("engine", "settings", "budget", "arm", "roster", "transports", "seeds", "created_by")
        }
        self._switch.journal = self._stack.enter_context(
            self.subject.layer.journal(self._path, header | {"controls": "probe"}, redactor)
        )

    def _cassette(self) -> dict | None:
        """Which spellings of the key the cassette holds."""
        if self._switch.journal is None:
            return None
        self._switch.journal.abandon()
        data = self._path.read_bytes()
        return {"bytes": len(data), "canary": self.canary.found(data)}

    def _connection(self, connection: Any) -> dict:
        closed = None if connection.closed_s is None else self._us(connection.closed_s)
        return {
            "id": connection.id,
            "opened_us": self._us(connection.opened_s),
            "closed_us": closed,
            "closed_by": connection.closed_by,
        }

    def _us(self, moment: float) -> int:
        return round((moment - self._began) * 1e6)

    def _now(self) -> int:
        return self._us(time.monotonic())


def plain_exchange(exchange: Exchange, canary: Canary, began_s: float) -> dict:
    """An exchange of the control's journal as JSON data, the key masked, times in microseconds since a moment."""
    data = {k: getattr(exchange, k) for k in _KEPT}
    data["request"] = plain_bytes(canary.mask(exchange.request))
    data["response"] = plain_bytes(canary.mask(exchange.response))
    data["request_sha256"] = canonical.sha256(exchange.body())
    data["response_sha256"] = canonical.sha256(exchange.response.partition(b"\r\n\r\n")[2])
    return data | {"times_us": {k: round((v - began_s) * 1e6) for k, v in exchange.times.items()}}


_KEPT = (
    "number",
    "connection",
    "case",
    "seat",
    "wire",
    "ordinal",
    "request_complete",
    "fully_written",
    "outcome",
    "status",
    "model",
    "identity",
    "fault",
    "nonce",
    "problem",
)


def plain_bytes(data: bytes) -> Any:
    """Bytes as JSON data: text where they are UTF-8, else base64."""
    import base64

    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def raw_bytes(data: Any) -> bytes:
    """Undo `plain_bytes`."""
    import base64

    return base64.b64decode(data["base64"]) if isinstance(data, dict) else data.encode("utf-8")
