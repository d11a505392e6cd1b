"""An episode whose learner is driven from outside, step by step: a request out, a reply in, done with the result.

For a trainer or another harness:

    with AgentLoop("airline/0", "reference") as loop:
        step = loop.start()
        while not isinstance(step, Done):
            step = loop.reply({"content": my_model(step.messages, step.tools)})
        print(step.result.reward, step.policy_states["final"]["violations"])

The episode is the one that `record` plays: the same gateway, turn rules, engine and policy rules, and, with a path, the
same cassette. Only the learner's replies come from the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replaykit import canonical, record, seating
from replaykit.arm import Arm
from replaykit.engine import load, pins
from replaykit.engine.protocol import Engine
from replaykit.episode import EpisodeResult
from replaykit.errors import UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.handover import Closed, HandOver
from replaykit.seating import Seating
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, TransportRequest, WireExchange
from replaykit.store import fleet_file
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


@dataclass(frozen=True, slots=True)
class Learner:
    """Who drives the learner's seat, as a cassette names it.

    Attributes:
        name: Name of the arm, e.g. of a checkpoint; two learners need two names.
        model, arguments: What tau2 is configured with; both stand in the learner's native requests.
    """

    name: str = "outside"
    model: str = pins.DEFAULT_MODEL
    arguments: Mapping[str, Any] = field(default_factory=lambda: dict(pins.DEFAULT_ARGUMENTS))


@dataclass(frozen=True, slots=True)
class Done:
    """The episode is over.

    Attributes:
        result: How it ended.
        policy_states: ``{"turns": [{"turn", "digest"}, ...], "final": ...}``, as in a cassette.
        usage: What each seat used, as far as replies said (`replaykit.scoring.tally.Tally`).
        cassette: Where it was recorded, or None.
    """

    result: EpisodeResult
    policy_states: dict
    usage: dict
    cassette: Path | None = None


Step = TransportRequest | Done


class AgentLoop:
    """One episode, driven by its learner. Not for several threads at once: one driver, one loop.

    Use it as a context manager or call `close`: a loop that is left early ends its episode, and a cassette that was
    being written stays as an interrupted recording.

    Args:
        panel: The panel or its id.
        seats: Who sits at the other seats: the name of a set of labelled controls (``reference``, ``one-exchange``),
            an `Arm`, or a `Seating`, whose header stays as it is and whose learner is not asked. A seating can be
            shared by many loops; with a name or an arm each loop opens connections of its own.
        learner: Who drives the learner's seat; by default ``outside``, or the arm's own name and model. Not with a
            `Seating`, which names its own.
        case_seed: The trial's case seed.
        cassette: Where to record the episode, or None: it is not recorded.
        fleet, engine: By default the fleet in use and the engine of this process.

    Attributes:
        native: The native request behind the current step, or None.

    Raises:
        UsageError: there is no such panel, or a learner beside a seating.
    """

    def __init__(
        self,
        panel: str | Panel,
        seats: str | Arm | Seating,
        *,
        learner: Learner | None = None,
        case_seed: int = pins.DEFAULT_CASE_SEED,
        cassette: Path | str | None = None,
        fleet: Fleet | None = None,
        engine: Engine | None = None,
    ) -> None:
        if learner is not None and isinstance(seats, Seating):
            raise UsageError("a seating names its own learner: put its name into the seating's header")
        fleet = fleet or fleet_file.read()
        panel = fleet.panel(panel) if isinstance(panel, str) else panel
        self._episode = _Episode(panel, seats, learner, case_seed, cassette and Path(cassette), fleet, engine)
        self._name = f"episode {panel.id}"
        self._hand_over = HandOver()
        self._thread: threading.Thread | None = None
        self._asked = self._started = False
        # A loop that nobody closed still lets go of its thread.
        self._let_go = weakref.finalize(self, self._hand_over.close)

    @property
    def native(self) -> SeatRequest | None:
        """The native request behind the current step, exactly as tau2 built it."""
        return self._episode.native if self._asked else None

    def start(self) -> Step:
        """Begin the episode.

        Returns:
            The learner's first request, or `Done` where it is never asked.

        Raises:
            UsageError: it was started before, or its seats or its cassette cannot be had.
            EngineNotReady: there is no engine.
        """
        return self._arrived(self._begin())

    def reply(self, reply: SeatReply | SeatFailure | Mapping[str, Any]) -> Step:
        """Answer the current request.

        Args:
            reply: A reply, its plain data (`SeatReply.to_dict`), or a `SeatFailure`: the learner could not be asked.

        Returns:
            The learner's next request, or `Done`.

        Raises:
            UsageError: nothing is asked, or this is no reply; the request still stands then.
        """
        return self._arrived(self._answer(reply))

    def run(self, learner: Callable[[TransportRequest], SeatReply | SeatFailure | Mapping[str, Any]]) -> Done:
        """Drive the episode to its end with a function."""
        step = self.start()
        while isinstance(step, TransportRequest):
            step = self.reply(learner(step))
        return step

    def close(self) -> None:
        """Leave. Waits for the episode's thread, which may still wait for a customer's reply. May be called twice."""
        self._leave()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> AgentLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> Future:
        if self._started:
            raise UsageError("this loop was started before: make a new one for another episode")
        self._started = True
        self._thread, waiting = self._hand_over.start(_playing(self._episode, self._hand_over), self._name)
        return waiting

    def _answer(self, reply: Any) -> Future:
        if not self._asked:
            raise UsageError("the learner is not asked anything: start the loop, and answer each request once")
        answer = _checked(reply)
        self._asked = False
        return self._hand_over.send(answer)

    def _arrived(self, waiting: Future) -> Step:
        try:
            step = waiting.result()
        except Closed as closed:
            raise UsageError("this loop was closed: make a new one for another episode") from closed
        self._asked = isinstance(step, TransportRequest)
        if not self._asked and self._thread is not None:
            self._thread.join()
        return step

    def _leave(self) -> None:
        self._asked, self._started = False, True
        self._let_go()


class AsyncAgentLoop:
    """An `AgentLoop` for coroutines: the same arguments, the same steps, and no thread waits for the driver's sake.

    A wait that is cancelled ends the episode.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._loop = AgentLoop(*arguments, **named)

    @property
    def native(self) -> SeatRequest | None:
        """See `AgentLoop.native`."""
        return self._loop.native

    async def start(self) -> Step:
        """See `AgentLoop.start`."""
        return await self._arrived(self._loop._begin())

    async def reply(self, reply: SeatReply | SeatFailure | Mapping[str, Any]) -> Step:
        """See `AgentLoop.reply`."""
        return await self._arrived(self._loop._answer(reply))

    async def run(self, learner: Callable[[TransportRequest], Awaitable[Any]]) -> Done:
        """Drive the episode to its end with a coroutine function."""
        step = await self.start()
        while isinstance(step, TransportRequest):
            step = await self.reply(await learner(step))
        return step

    async def close(self) -> None:
        """See `AgentLoop.close`."""
        self._loop._leave()
        await asyncio.to_thread(self._loop.close)

    async def __aenter__(self) -> AsyncAgentLoop:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _arrived(self, waiting: Future) -> Step:
        with contextlib.suppress(Exception, Closed):  # what ended the episode is raised below, as without coroutines
            await asyncio.wrap_future(waiting)
        return self._loop._arrived(waiting)


@dataclass(slots=True)
class _Episode:
    """What is played, and what its thread shows of it."""

    panel: Panel
    seats: str | Arm | Seating
    learner: Learner | None
    case_seed: int
    cassette: Path | None
    fleet: Fleet
    engine: Engine | None
    native: SeatRequest | None = None

    def play(self, source: Outside) -> Done:
        """Play it; the learner's replies come from the source."""
        self.engine = self.engine or load()
        with ExitStack() as stack:
            seated = self._seated(stack, source)
            redactor = Redactor(seated.secrets)
            watched = _Watched(stack.enter_context(self._journal(seated, redactor)), self)
            sources = {**seated.sources, "learner": source}
            result = record.play(self.engine, self.panel, seated, watched, self.case_seed, redactor, sources)
        return Done(result, watched.fields["policy_states"], watched.fields["usage"], self.cassette)

    def _journal(self, seated: Seating, redactor: Redactor) -> Any:
        if self.cassette is None:
            return _Unwritten()
        head = record.header(self.engine, self.fleet, self.panel, seated, self.case_seed)
        return Journal.create(self.cassette, head, redactor)

    def _seated(self, stack: ExitStack, source: Outside) -> Seating:
        if isinstance(self.seats, Seating):
            return self.seats
        from replaykit.transports.sender import Sender

        sender = stack.enter_context(Sender())
        if isinstance(self.seats, Arm):
            arm = self.seats
            learner = self.learner or Learner(arm.name, arm.learner.model, arm.learner.arguments)
            return _with_learner(seating.from_arm(arm, sender, seats=("customer", "judge")), learner, source)
        return _with_learner(self._controls(stack, self.seats, sender), self.learner or Learner(), source)

    def _controls(self, stack: ExitStack, kind: str, sender: Any) -> Seating:
        from replaykit.controls.server import ControlProvider

        provider = stack.enter_context(ControlProvider(keep_bytes=False))
        scenario = self.engine.scenarios(self.panel.domain)[self.panel.scenario]
        return seating.from_controls(kind, scenario, f"{self.panel.domain}-{self.panel.scenario}", provider, sender)


def _with_learner(seated: Seating, learner: Learner, source: Outside) -> Seating:
    """A seating whose learner is driven from outside, and says so."""
    identity = {"transport": "outside", "name": learner.name, "model": learner.model}
    arm = {"name": learner.name, "learner": identity, "digest": canonical.digest(identity)}
    transports = {"learner": source.identity()} | {s: seated.header["transports"][s] for s in ("customer", "judge")}
    models = replace(seated.models, learner=(learner.model, dict(learner.arguments)))
    return replace(seated, models=models, header=seated.header | {"arm": arm, "transports": transports})


class Outside:
    """The learner's seat, answered by whoever drives the loop."""

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """Hand the request out and wait for its reply; how long that may take is up to the driver.

        Raises:
            SeatFailure: the driver could not ask the learner.
        """
        reply = self._hand_over.ask(request)
        if isinstance(reply, SeatFailure):
            raise SeatFailure.from_dict(reply.to_dict())
        return reply

    def identity(self) -> dict[str, Any]:
        """Says that the replies come from outside replaykit."""
        return {"transport": "outside", "wire": None, "control": False}


class _Unwritten:
    """A journal that writes nothing."""

    def __enter__(self) -> _Unwritten:
        return self

    def __exit__(self, *_: object) -> None: ...

    def request(self, request: SeatRequest) -> None: ...

    def exchange(self, number: int, exchange: WireExchange) -> None: ...

    def reply(self, number: int, reply: SeatReply) -> None: ...

    def failure(self, number: int, failure: SeatFailure) -> None: ...

    def end(self, number: int, end: dict[str, Any]) -> None: ...

    def state(self, turn: int, digest: str) -> None: ...

    def close(self, fields: Mapping[str, Any]) -> None: ...


class _Watched:
    """A journal of which the loop sees the native request in hand and what the footer says."""

    def __init__(self, journal: Any, episode: _Episode) -> None:
        self._journal, self._episode = journal, episode
        self.fields: Mapping[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def request(self, request: SeatRequest) -> None:
        """Note and write a native request."""
        self._episode.native = request
        self._journal.request(request)

    def close(self, fields: Mapping[str, Any]) -> None:
        """Note and write the footer."""
        self.fields = fields
        self._journal.close(fields)


def _playing(episode: _Episode, hand_over: HandOver) -> Callable[[], Done]:
    """What the thread runs; it holds neither the loop nor its driver, so that a forgotten loop can be collected."""
    return lambda: episode.play(Outside(hand_over))


def _checked(reply: Any) -> SeatReply | SeatFailure:
    """A reply that the gateway can judge; whether the turn can be used is the turn rules' business."""
    if isinstance(reply, SeatFailure):
        return reply
    try:
        found = SeatReply.from_dict(dict(reply)) if isinstance(reply, Mapping) else reply
        if not isinstance(found, SeatReply):
            raise TypeError(f"a {type(reply).__name__}")
        canonical.line(found.to_dict())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"this is no reply of a seat ({error}): give a SeatReply or its plain data") from error
    return _plain(found)


def _plain(reply: SeatReply) -> SeatReply:
    if not all(isinstance(call.arguments, str) for call in reply.tool_calls):
        raise UsageError("this is no reply of a seat: the arguments of a call are the text that the model wrote")
    for name, kinds in (("content", str), ("finish_reason", str), ("usage", dict), ("cost", (int, float))):
        value = getattr(reply, name)
        if value is not None and not isinstance(value, kinds):
            raise UsageError(f"this is no reply of a seat: its {name} is a {type(value).__name__}")
    return reply
