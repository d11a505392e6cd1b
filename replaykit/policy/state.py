"""The policy state: a deterministic state machine over the normalised trajectory.

`PolicyTracker` takes one message at a time and costs the same for each, however long the episode; its digest covers
everything a `PolicyState` holds, except texts that are there for people. Results are paired with calls by their place,
because ids may repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from replaykit import canonical
from replaykit.episode import LostTurn
from replaykit.policy.confirmation import NO_MESSAGE, Confirmation, confirmation
from replaykit.policy.context import TRANSFER_TOOL, PolicyContext, on_reference
from replaykit.policy.conversation import Conversations, state_of
from replaykit.policy.format_errors import FormatError, call_error, ending_error, message_errors
from replaykit.policy.violations import Standing, Violation, acts_several_times, rules_broken_by_call


@dataclass(frozen=True, slots=True)
class Write:
    """One call of a write tool.

    Attributes:
        turn, call: Index of the message, position in it.
        tool: The tool.
        confirmed, authenticated: What held when its turn to run came (see `violations.Standing`).
        on_reference: It matches an action of the reference solution.
        succeeded: None while there is no result.
    """

    turn: int
    call: int
    tool: str
    confirmed: bool
    authenticated: bool | None
    on_reference: bool
    succeeded: bool | None = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class PolicyState:
    """Where the policy's obligations stand.

    Attributes:
        messages: Length of the trajectory so far.
        authenticated_user: The user id the last successful authentication gave, or None.
        confirmation: The verdict on the user's most recent message.
        pending_writes: Writes without a result.
        done_writes: Writes with one.
        transfer_attempted: The learner called the transfer tool, whatever it returned.
        transfer_succeeded: A transfer succeeded.
        violations, format_errors: In the order they arose.
        learner_state, customer_state: ``{"messages", "digest"}`` of the histories tau2 holds.
        termination: How the episode ended, or None before the end.
    """

    messages: int
    authenticated_user: str | None
    confirmation: Confirmation
    pending_writes: tuple[Write, ...]
    done_writes: tuple[Write, ...]
    transfer_attempted: bool
    transfer_succeeded: bool
    violations: tuple[Violation, ...]
    format_errors: tuple[FormatError, ...]
    learner_state: dict
    customer_state: dict
    termination: str | None = None

    def to_dict(self) -> dict:
        """Plain data, JSON-ready."""
        return {
            "messages": self.messages,
            "authenticated_user": self.authenticated_user,
            "confirmation": self.confirmation.to_dict(),
            "pending_writes": [write.to_dict() for write in self.pending_writes],
            "done_writes": [write.to_dict() for write in self.done_writes],
            "transfer": {"attempted": self.transfer_attempted, "succeeded": self.transfer_succeeded},
            "violations": [violation.to_dict() for violation in self.violations],
            "format_errors": [error.to_dict() for error in self.format_errors],
            "learner_state": self.learner_state,
            "customer_state": self.customer_state,
            "termination": self.termination,
        }

    def digest(self) -> str:
        """Hex SHA-256 of the state; details of format errors are left out, they hold texts of library versions."""
        lists = {
            "done_writes": [write.to_dict() for write in self.done_writes],
            "violations": [violation.to_dict() for violation in self.violations],
            "format_errors": [error.identity() for error in self.format_errors],
        }
        digests = {name: canonical.RunningDigest(values).hexdigest() for name, values in lists.items()}
        return canonical.digest(self.to_dict() | digests)


class PolicyTracker:
    """Follows an episode message by message.

    Attributes:
        violations, format_errors: What was found so far.
        done_writes: Writes with a result.
    """

    def __init__(self, context: PolicyContext) -> None:
        self._context = context
        self._authentication = context.authentication_tools
        self._messages = 0
        self._user: str | None = None
        self._confirmation = NO_MESSAGE
        self._attempted = self._transferred = False
        self._termination: str | None = None
        self._waiting: list[dict] = []  # the calls of the last learner turn
        self._turn = self._next = 0  # index of that turn; position of the call whose turn it is to run
        self._running: Write | None = None
        self._conversations = Conversations()
        self._states: tuple[dict, dict] | None = None
        self.done_writes: list[Write] = []
        self.violations: list[Violation] = []
        self.format_errors: list[FormatError] = []
        self._logs = {name: canonical.RunningDigest() for name in ("done_writes", "violations", "format_errors")}

    def feed(self, message: Mapping) -> None:
        """Take the trajectory's next message."""
        self._conversations.feed(message)
        role = message["role"]
        if role == "assistant":
            self._take_turn(message)
        elif role == "tool":
            if message.get("requestor") != "user" and self._next < len(self._waiting):
                self._settle(message)
        elif (message.get("content") or "").strip():
            self._confirmation = confirmation(message["content"])
        self._messages += 1

    def finish(
        self,
        termination: str | None,
        lost_turn: LostTurn | None = None,
        learner_state: Iterable[Mapping] | None = None,
        customer_state: Iterable[Mapping] | None = None,
    ) -> None:
        """The episode is over.

        Args:
            termination: How it ended.
            lost_turn: The turn that ended it from outside, if one did.
            learner_state, customer_state: The histories tau2 holds; without them they are derived.
        """
        self._abandon()
        recent = self.format_errors[-1] if self.format_errors else None
        last = recent if recent is not None and recent.turn == self._messages - 1 else None
        self._note(ending_error(termination, lost_turn, self._messages, last))
        if lost_turn is not None:
            self._conversations.lose_turn(lost_turn.seat)
        derived = self._conversations
        self._states = (
            derived.learner.to_dict() if learner_state is None else state_of(learner_state),
            derived.customer.to_dict() if customer_state is None else state_of(customer_state),
        )
        self._termination = termination

    def state(self) -> PolicyState:
        """A snapshot; its cost grows with what was found so far."""
        learner, customer = self._histories()
        return PolicyState(
            messages=self._messages,
            authenticated_user=self._user,
            confirmation=self._confirmation,
            pending_writes=tuple(self._pending()),
            done_writes=tuple(self.done_writes),
            transfer_attempted=self._attempted,
            transfer_succeeded=self._transferred,
            violations=tuple(self.violations),
            format_errors=tuple(self.format_errors),
            learner_state=learner,
            customer_state=customer,
            termination=self._termination,
        )

    def digest(self) -> str:
        """``state().digest()``, without building the state."""
        learner, customer = self._histories()
        return canonical.digest(
            {
                "messages": self._messages,
                "authenticated_user": self._user,
                "confirmation": self._confirmation.to_dict(),
                "pending_writes": [write.to_dict() for write in self._pending()],
                "transfer": {"attempted": self._attempted, "succeeded": self._transferred},
                "learner_state": learner,
                "customer_state": customer,
                "termination": self._termination,
            }
            | {name: log.hexdigest() for name, log in self._logs.items()}
        )

    def _histories(self) -> tuple[dict, dict]:
        return self._states or (self._conversations.learner.to_dict(), self._conversations.customer.to_dict())

    def _take_turn(self, message: Mapping) -> None:
        self._abandon()
        turn = self._messages
        for error in message_errors(message, turn, self._context):
            self._note(error)
        self._waiting, self._turn, self._next = message.get("tool_calls") or [], turn, 0
        if self._waiting:
            self._attempted = self._attempted or any(call["name"] == TRANSFER_TOOL for call in self._waiting)
            if acts_several_times(message):
                self._blame("multiple_actions_in_turn", None, None)
            self._begin()

    def _begin(self) -> None:
        """The next waiting call's turn to run has come: judge it by what holds now."""
        name, standing = self._waiting[self._next]["name"], self._standing()
        is_write = name in self._context.write_tools
        for rule in rules_broken_by_call(is_write, standing):
            self._blame(rule, self._next, name)
        self._running = self._write(self._next, standing) if is_write else None

    def _settle(self, result: Mapping) -> None:
        """The running call's result arrived."""
        call, succeeded = self._waiting[self._next], not result.get("error")
        self._note(call_error(call, self._turn, self._next, self._context, result))
        if self._running is not None:
            self._finish_write(self._running, succeeded)
        elif succeeded:
            self._note_success(call["name"], result)
        self._next += 1
        if self._next < len(self._waiting):
            self._begin()

    def _finish_write(self, write: Write, succeeded: bool) -> None:
        done = Write(
            write.turn, write.call, write.tool, write.confirmed, write.authenticated, write.on_reference, succeeded
        )
        self.done_writes.append(done)
        self._log("done_writes", done.to_dict())
        if succeeded and not done.on_reference:
            self._blame("off_reference_write", done.call, done.tool)

    def _note_success(self, name: str, result: Mapping) -> None:
        if name == TRANSFER_TOOL:
            self._transferred = True
        elif self._authentication is not None and name in self._authentication:
            self._user = (result.get("content") or "").strip()

    def _abandon(self) -> None:
        """Calls that never got a result are judged as made; their outcome stays unknown."""
        while self._next < len(self._waiting):
            self._note(call_error(self._waiting[self._next], self._turn, self._next, self._context, None))
            if self._running is not None:
                self.done_writes.append(self._running)
                self._log("done_writes", self._running.to_dict())
            self._next += 1
            if self._next < len(self._waiting):
                self._begin()
        self._running = None

    def _standing(self) -> Standing:
        authenticated = None if self._authentication is None else self._user is not None
        return Standing(self._confirmation.confirmed, authenticated, self._transferred)

    def _write(self, place: int, standing: Standing) -> Write:
        call = self._waiting[place]
        matches = on_reference(self._context.reference_actions, call["name"], call["arguments"])
        return Write(self._turn, place, call["name"], standing.confirmed, standing.authenticated, matches)

    def _pending(self) -> list[Write]:
        """Writes of the last turn without a result; those whose turn has not come stand as things are now."""
        places = range(self._next, len(self._waiting))
        standing = self._standing()
        return [self._write(i, standing) for i in places if self._waiting[i]["name"] in self._context.write_tools]

    def _blame(self, rule: str, place: int | None, tool: str | None) -> None:
        violation = Violation(rule, self._turn, place, tool)
        self.violations.append(violation)
        self._log("violations", violation.to_dict())

    def _note(self, error: FormatError | None) -> None:
        if error is not None:
            self.format_errors.append(error)
            self._log("format_errors", error.identity())

    def _log(self, name: str, entry: dict) -> None:
        self._logs[name].add_bytes(canonical.sorted_(entry))


def policy_states(
    trajectory: Sequence[Mapping],
    context: PolicyContext,
    lost_turn: LostTurn | None = None,
    termination: str | None = None,
    learner_state: Iterable[Mapping] | None = None,
    customer_state: Iterable[Mapping] | None = None,
) -> list[dict]:
    """The state's digest after every learner turn and at the end, in time linear in the trajectory.

    Returns:
        ``{"turn": int, "digest": str}`` each: the index of the learner's message, and last the trajectory's length.
        A turn's digest is taken when the learner has spoken and before its calls run, so its writes are pending.
    """
    tracker, states = PolicyTracker(context), []
    for turn, message in enumerate(trajectory):
        tracker.feed(message)
        if message["role"] == "assistant":
            states.append({"turn": turn, "digest": tracker.digest()})
    tracker.finish(termination, lost_turn, learner_state, customer_state)
    return [*states, {"turn": len(trajectory), "digest": tracker.digest()}]


def policy_timeline(trajectory: Sequence[Mapping], context: PolicyContext) -> list[tuple[int, PolicyState]]:
    """The state after every learner turn, for display; costs more than `policy_states`."""
    tracker, timeline = PolicyTracker(context), []
    for turn, message in enumerate(trajectory):
        tracker.feed(message)
        if message["role"] == "assistant":
            timeline.append((turn, tracker.state()))
    return timeline


def final_state(
    trajectory: Iterable[Mapping],
    context: PolicyContext,
    lost_turn: LostTurn | None = None,
    termination: str | None = None,
    learner_state: Iterable[Mapping] | None = None,
    customer_state: Iterable[Mapping] | None = None,
) -> PolicyState:
    """The state at the end of an episode (arguments as for `policy_states`)."""
    tracker = PolicyTracker(context)
    for message in trajectory:
        tracker.feed(message)
    tracker.finish(termination, lost_turn, learner_state, customer_state)
    return tracker.state()


def first_parting(recorded: Sequence[Mapping], recomputed: Sequence[Mapping]) -> dict | None:
    """The first turn where two runs' states part, or None.

    Args:
        recorded, recomputed: As `policy_states` returns them.

    Returns:
        ``{"turn": int, "recorded": digest | None, "recomputed": digest | None}``; None for a digest: that run had no
        learner turn there.
    """
    for ours, theirs in zip(recorded, recomputed, strict=False):
        if ours != theirs:
            turn = min(ours["turn"], theirs["turn"])
            return {"turn": turn, "recorded": _at(ours, turn), "recomputed": _at(theirs, turn)}
    shorter = min(len(recorded), len(recomputed))
    for rest, side in ((recorded[shorter:], "recorded"), (recomputed[shorter:], "recomputed")):
        if rest:
            return {"turn": rest[0]["turn"], "recorded": None, "recomputed": None, side: rest[0]["digest"]}
    return None


def _at(entry: Mapping, turn: int) -> str | None:
    return entry["digest"] if entry["turn"] == turn else None
