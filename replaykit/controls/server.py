"""The loopback control provider: a real HTTP/1.1 server that speaks every wire and hosts the labelled controls."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from replaykit.controls.answering import Answered, Case, answer, nonce, refused, wire_of
from replaykit.controls.channel import Channel
from replaykit.controls.faults import Fault, Schedule
from replaykit.controls.gate import Gate
from replaykit.controls.http import Request
from replaykit.controls.identities import Identity
from replaykit.controls.journal import Connection, Exchange, Journal
from replaykit.controls.session import Session
from replaykit.controls.wires import WIRES, WireRefusal
from replaykit.errors import InternalError, UsageError
from replaykit.seats import SEATS

_NAME = re.compile(r"[A-Za-z0-9._~-]+")
_FIXED_ENTROPY = b"replaykit control provider"
_STOP_S = 10.0


class ControlProvider:
    """A provider on 127.0.0.1 whose replies are labelled controls. A context manager: it serves from entry to exit.

    Args:
        entropy: Key of the nonces that replies carry as their ids. None: a fixed key, so that replies are the same
            in every run.
        scale: Factor on all pauses of faults; 1.0 is real time.
        journal_path: File that gets one JSON line for each exchange (credentials masked).
        secrets: Further values to mask in that file.
        keep_bytes: Whether the journal in memory keeps raw bytes; switch off for long recordings.
        port: Port to listen on; 0 takes a free one.
    """

    def __init__(
        self,
        *,
        entropy: bytes | None = None,
        scale: float = 1.0,
        journal_path: Path | None = None,
        secrets: Iterable[str] = (),
        keep_bytes: bool = True,
        port: int = 0,
    ) -> None:
        self._entropy = _FIXED_ENTROPY if entropy is None else entropy
        self._scale, self._wanted_port = scale, port
        self._journal = Journal(journal_path, secrets, keep_bytes)
        self._lock = threading.Lock()
        self._cases: dict[str, Case] = {}
        self._ordinals: dict[tuple[str, str], int] = {}
        self._live: dict[threading.Thread, Channel] = {}
        self._listener: socket.socket | None = None

    def __enter__(self) -> ControlProvider:
        try:
            self._listener = socket.create_server(("127.0.0.1", self._wanted_port), backlog=128)
        except OSError as error:
            self._journal.close()
            where = f"127.0.0.1:{self._wanted_port}"
            raise UsageError(f"cannot listen on {where} ({error}); choose another port") from error
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._accepting = threading.Thread(target=self._accept, name="control-provider", daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port it listens on.

        Raises:
            UsageError: it does not serve.
        """
        if self._listener is None:
            raise UsageError("the control provider does not serve; enter it with 'with' first")
        return self._listener.getsockname()[1]

    @property
    def journal(self) -> tuple[Exchange, ...]:
        """Copies of all exchanges so far, in order of their first byte."""
        return self._journal.exchanges()

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Copies of all connections so far."""
        return self._journal.connections()

    def add_case(
        self,
        name: str,
        identities: Mapping[str, Identity],
        schedule: Schedule | None = None,
        *,
        strict: bool = True,
        context_tokens: int | None = None,
        key: str | None = None,
        continuation: bool = False,
    ) -> None:
        """Register who answers under a name; see `Case` for the options.

        Raises:
            UsageError: the name cannot stand in a URL or is taken, or an identity sits at the wrong seat.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a case; use letters, digits and . _ ~ - only")
        for seat, identity in identities.items():
            if identity.seat != seat:
                raise UsageError(f"the control {identity.label} cannot sit at the seat {seat!r} of case {name!r}")
        with self._lock:
            if name in self._cases:
                raise UsageError(f"the case {name!r} is registered already; choose another name")
            plan = schedule or Schedule()
            self._cases[name] = Case(name, dict(identities), plan, strict, context_tokens, key, continuation)

    def base_url(self, case: str, seat: str, wire: str = "openai-chat") -> str:
        """The base URL to give to a seat, in the form clients of this wire expect.

        Raises:
            UsageError: there is no such seat or wire, or the provider does not serve.
        """
        if seat not in SEATS:
            raise UsageError(f"there is no seat {seat!r}; choose from {', '.join(SEATS)}")
        if wire not in WIRES:
            raise UsageError(f"the control provider does not speak {wire!r}; choose from {', '.join(WIRES)}")
        return f"http://127.0.0.1:{self.port}/{case}/{seat}{WIRES[wire].base_suffix}"

    def request_count(self, case: str | None = None, seat: str | None = None) -> int:
        """Whole requests so far, of all cases and seats or of some."""
        with self._lock:
            wanted = [n for (c, s), n in self._ordinals.items() if case in (None, c) and seat in (None, s)]
        return sum(wanted)

    def unmet(self, case: str) -> list[tuple[str, int]]:
        """Seat and ordinal of the scheduled faults of a case that no request has met so far.

        Raises:
            UsageError: there is no such case.
        """
        if case not in self._cases:
            raise UsageError(f"there is no case {case!r} at this control provider")
        planned = self._cases[case].schedule.faults
        with self._lock:
            seen = {seat: self._ordinals.get((case, seat), 0) for seat in planned}
        return [(seat, n) for seat, by_ordinal in planned.items() for n in sorted(by_ordinal) if n > seen[seat]]

    def settle(self, timeout_s: float = 5.0) -> bool:
        """Wait until no exchange is under way; False when some still are after the time."""
        return self._journal.settle(timeout_s)

    def stop(self) -> None:
        """End every connection, blocked ones too, and wait for the threads. Does nothing when it is stopped.

        Raises:
            InternalError: a thread did not end.
        """
        listener, self._listener = self._listener, None
        if listener is None:
            return
        self._wake_sender.close()
        self._accepting.join(_STOP_S)
        listener.close()
        self._join_sessions()
        self._wake_receiver.close()
        self._journal.close()

    def _join_sessions(self) -> None:
        with self._lock:
            live = dict(self._live)
        for thread, channel in live.items():
            channel.abort()
            thread.join(_STOP_S)
        if any(thread.is_alive() for thread in (*live, self._accepting)):
            raise InternalError("a connection of the control provider did not end")

    def _accept(self) -> None:
        gate = Gate(self._listener, self._wake_receiver)
        while (accepted := gate.next()) is not None:
            opened = self._journal.connect(time.monotonic())
            channel = Channel(accepted, self._wake_receiver)
            session = Session(channel, self._journal, opened, self._answering, self._scale)
            thread = threading.Thread(target=self._run, args=(session,), name=f"control-{opened.id}", daemon=True)
            with self._lock:
                self._live[thread] = channel
            thread.start()

    def _run(self, session: Session) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                del self._live[threading.current_thread()]

    def _answering(self, request: Request, exchange: Exchange) -> tuple[Answered, Fault | None]:
        case_name, seat, path = _address(request.head.target)
        case = self._cases.get(case_name)
        wire, bare = wire_of(path)
        if case is None or seat not in case.identities or wire is None:
            return _nowhere(exchange, request.head.target)
        ordinal = self._next_ordinal(case.name, seat)
        fault, id_ = case.schedule.fault(seat, ordinal), nonce(self._entropy, case.name, seat, ordinal)
        answered = answer(case, case.identities[seat], wire, request, bare, id_, fault)
        exchange.case, exchange.seat, exchange.wire, exchange.ordinal = case.name, seat, wire.name, ordinal
        exchange.identity, exchange.fault = case.identities[seat].label, fault.to_dict() if fault else None
        exchange.model, exchange.problem, exchange.nonce = answered.model, answered.problem, id_
        exchange.status = answered.answer.status
        return answered, fault

    def _next_ordinal(self, case: str, seat: str) -> int:
        with self._lock:
            ordinal = self._ordinals.get((case, seat), 0) + 1
            self._ordinals[case, seat] = ordinal
            return ordinal


def _address(target: str) -> tuple[str, str, str]:
    """Case, seat and the path behind them, without a query."""
    parts = target.partition("?")[0].split("/", 3)
    if len(parts) < 4 or parts[0]:
        return "", "", ""
    return parts[1], parts[2], "/" + parts[3]


def _nowhere(exchange: Exchange, target: str) -> tuple[Answered, None]:
    refusal = WireRefusal("No control is registered at this address.", 404)
    exchange.problem, exchange.status = refusal.message, 404
    return Answered(refused(wire_of(_address(target)[2])[0], refusal, "none"), "none"), None
