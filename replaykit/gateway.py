"""The one way a native request goes, whoever answers: record, replay, certification, fork, an external agent loop.

Always in this order: budget, tool-name check on the native request, normalisation, reply source, turn rules. The
request is put on record before anything is sent, the reply or failure as it arrives. What differs between the verbs is
only the source of replies and who keeps the record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from operator import is_
from typing import Any, Protocol

from replaykit import canonical, turn_rules
from replaykit.budget import BudgetSpent, Ledger
from replaykit.episode import Diagnostic, LostTurn, TurnLost
from replaykit.errors import ReplaykitError, ToolNameMismatch
from replaykit.seats import (
    NotRecorded,
    ReplySource,
    SeatFailure,
    SeatReply,
    SeatRequest,
    TransportRequest,
    WireExchange,
    check_tool_names,
    normalise_message,
)
from replaykit.settings import TAU3_TEXT_1, TransportSettings


class Record(Protocol):
    """Who keeps the record of an episode: a journal, or a comparison with one."""

    def request(self, request: SeatRequest) -> None:
        """A native request, before it is sent."""

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """One wire exchange, as it ends."""

    def reply(self, number: int, reply: SeatReply) -> None:
        """The reply to a request."""

    def failure(self, number: int, failure: SeatFailure) -> None:
        """A request that got no usable reply."""

    def end(self, number: int, end: dict[str, Any]) -> None:
        """A request that was not sent, and why."""


class Gateway:
    """The three seats of one episode. One episode, one gateway, one thread.

    Args:
        sources: Who answers, by seat.
        record: Who keeps the record.
        ledger: What may be spent.
        settings: What every seat is asked with.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        sources: Mapping[str, ReplySource],
        record: Record,
        ledger: Ledger,
        settings: TransportSettings = TAU3_TEXT_1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources, self._record, self._ledger, self._settings, self._clock = (
            sources,
            record,
            ledger,
            settings,
            clock,
        )
        self._side: dict[str, dict[str, Any]] = {}
        self._normal: dict[str, tuple[list[dict], list[dict]]] = {}  # messages a seat was last asked, native and normal
        self._tools: tuple[list[dict], list[dict]] | None = None  # schemas last asked with, and the copy given out
        self.diagnostics: list[Diagnostic] = []

    def ask(self, request: SeatRequest) -> SeatReply:
        """Answer one native request.

        Raises:
            TurnLost: the turn cannot be used; the episode ends.
        """
        self._record.request(request)
        self._debit(request)
        known = self._known(request)
        self._check_names(request, known)
        reply = self._answer(request, self._normalise(request, known))
        lost, oddities = turn_rules.judge_reply(request, reply, self._settings)
        self.diagnostics += oddities
        if lost is not None:
            raise TurnLost(lost)
        return reply

    def _debit(self, request: SeatRequest) -> None:
        try:
            self._ledger.debit()
        except BudgetSpent as spent:
            self._spent(request, spent)

    def _spent(self, request: SeatRequest, spent: BudgetSpent) -> None:
        self._record.end(request.number, {"reason": "budget", "limit": spent.limit})
        raise TurnLost(turn_rules.spent(request, spent.limit)) from spent

    def _known(self, request: SeatRequest) -> int:
        """How many messages at the start were checked and normalised before.

        tau2's history is a growing list of the same dictionaries, and what is asked of a seat shares none of them.
        """
        native, _ = self._normal.get(request.seat, ([], []))
        is_prefix = len(native) <= len(request.messages) and all(map(is_, native, request.messages))
        return len(native) if is_prefix else 0

    def _check_names(self, request: SeatRequest, known: int) -> None:
        try:
            check_tool_names(request.messages, known)
        except ToolNameMismatch as mismatch:
            detail = {"pointer": mismatch.pointer, "outer": mismatch.outer, "inner": mismatch.inner}
            self._record.end(request.number, {"reason": "tool_name_mismatch", **detail})
            self.diagnostics.append(Diagnostic("gateway.tool_name_mismatch", {"number": request.number, **detail}))
            raise TurnLost(
                LostTurn(request.seat, request.number, "tool_name_mismatch", "unexpected_error", str(mismatch))
            ) from mismatch

    def _normalise(self, request: SeatRequest, known: int) -> TransportRequest:
        settings = {
            "temperature": self._settings.temperature,
            "top_p": self._settings.top_p,
            "max_output_tokens": self._settings.output_tokens[request.seat],
        }
        if request.seat != "judge" and request.arguments.get("seed") is not None:
            settings["seed"] = request.arguments["seed"]
        deadline_s = min(self._settings.request_s, max(0.0, self._ledger.remaining_s()))
        return TransportRequest(
            seat=request.seat,
            number=request.number,
            model=request.model,
            messages=self._normal_messages(request, known),
            tools=self._own_tools(request),
            tool_choice=request.tool_choice,
            settings=settings,
            deadline_s=deadline_s,
            side=self._side.setdefault(request.seat, {}),
        )

    def _normal_messages(self, request: SeatRequest, known: int) -> list[dict]:
        """Each message once."""
        _, normal = self._normal.get(request.seat, ([], []))
        normal = normal[:known] + [_own(m) for m in request.messages[known:]]
        self._normal[request.seat] = list(request.messages), normal
        return normal.copy()

    def _own_tools(self, request: SeatRequest) -> list[dict] | None:
        """The schemas are the engine's, shared by all its episodes: whoever may write on them gets a copy."""
        tools = request.tools
        if tools is None or getattr(self._sources[request.seat], "inert", False):
            return tools
        if self._tools is None or self._tools[0] is not tools:
            self._tools = tools, deepcopy(tools)
        return self._tools[1]

    def _answer(self, request: SeatRequest, asked: TransportRequest) -> SeatReply:
        began = self._clock()
        try:
            reply = guarded(
                self._sources[request.seat], asked, lambda exchange: self._exchange(request.number, exchange)
            )
        except SeatFailure as failure:
            self._record.failure(request.number, failure)
            raise TurnLost(turn_rules.failed(request, failure)) from failure
        except BudgetSpent as spent:  # a recorded end, played again
            self._spent(request, spent)
        except NotRecorded as unknown:
            self._record.end(request.number, {"reason": "not_recorded", "termination": unknown.termination})
            raise TurnLost(turn_rules.not_recorded(request, unknown.termination)) from unknown
        finally:
            self._ledger.waiting_s += self._clock() - began
        self._record.reply(request.number, reply)
        self._side[request.seat].update(reply.side)
        return reply

    def _exchange(self, number: int, exchange: WireExchange) -> None:
        self._ledger.connecting_s += exchange.timing.get("connect_s", 0.0)
        self._record.exchange(number, exchange)


def guarded(source: ReplySource, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
    """Ask a source. Transports are anybody's code: whatever they do wrong is a failure of the seat.

    Raises:
        SeatFailure: as the source raised it; ``transport_error`` for any other exception and for what is no reply.
        ReplaykitError: as the source raised it.
        BaseException: what `on_exchange` raised; a record that cannot be kept is no fault of the transport.
    """
    trouble: list[BaseException] = []

    def keep(exchange: WireExchange) -> None:
        try:
            on_exchange(exchange)
        except BaseException as error:
            trouble.append(error)
            raise

    try:
        reply = source.ask(request, keep)
    except (ReplaykitError, BudgetSpent, NotRecorded) as error:
        if trouble:
            raise trouble[0] from error
        sound = _writable_failure(error) if isinstance(error, SeatFailure) else error
        if sound is error:
            raise
        raise sound from error
    except Exception as error:
        if trouble:
            raise trouble[0] from None
        sentence = f"the transport raised {type(error).__name__}: {error}"
        raise SeatFailure("transport_error", sentence) from error
    if trouble:
        raise trouble[0]
    return _checked(reply, getattr(source, "inert", False))


def _writable_failure(failure: SeatFailure) -> SeatFailure:
    """The failure, or another where its members are of no use to a record."""
    try:
        canonical.line(SeatFailure.from_dict(failure.to_dict()).to_dict())
    except (TypeError, ValueError) as error:
        return SeatFailure("transport_error", f"the transport raised a failure that cannot be written: {error}")
    return failure


def _checked(reply: Any, is_own: bool) -> SeatReply:
    if not isinstance(reply, SeatReply):
        raise SeatFailure("transport_error", f"the transport returned a {type(reply).__name__}, which is no SeatReply")
    try:
        reply.check()
        if not is_own:
            canonical.line(reply.to_dict())
    except (TypeError, ValueError, RecursionError) as error:
        raise SeatFailure("transport_error", f"the transport returned no usable reply: {error}") from error
    return reply


def _own(message: dict) -> dict:
    """A normalised message that shares no dictionary with the native one."""
    normal = normalise_message(message)
    return dict(message) if normal is message else normal
