"""The policy's deterministic state machine over the normalised trajectory.

It takes one message at a time and costs the same for each, however long the episode. Every verdict is logged as it
arises, and the state's digest is taken over that log and the two conversation histories. Texts that are there for
people stay out of it, because they hold what library versions say. Results are paired with calls by their place,
because ids may repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from replaykit import canonical
from replaykit.episode import LostTurn
from replaykit.policy.confirmation import NO_MESSAGE, confirmation
from replaykit.policy.context import TRANSFER_TOOL, PolicyContext, on_reference
from replaykit.policy.conversation import Conversations
from replaykit.policy.format_errors import FormatError, call_error, ending_error, message_errors
from replaykit.policy.state import PolicyState, Write
from replaykit.policy.violations import Standing, Violation, acts_several_times, rules_broken_by_call


class PolicyTracker:
    """Follows an episode message by message.

    Attributes:
        violations, format_errors: What was found so far.
        done_writes: Writes that ran, or never will.
    """

    def __init__(self, context: PolicyContext) -> None:
        self.violations: list[Violation] = []
        self.format_errors: list[FormatError] = []
        self.done_writes: list[Write] = []
        self._context = context
        self._authentication = context.authentication_tools
        self._messages = 0
        self._user: str | None = None
        self._confirmation = NO_MESSAGE
        self._attempted = self._transferred = False
        self._termination: str | None = None
        self._calls: Sequence[dict] = ()  # of the last learner turn
        self._turn = self._next = 0  # index of that turn; place of the call whose turn it is to run
        self._running: Write | None = None
        conversations = Conversations()
        self._conversations = conversations
        self._learner, self._customer = conversations.learner, conversations.customer
        self._log = canonical.RunningDigest()

    def feed(self, message: Mapping) -> None:
        """Take the trajectory's next message."""
        self._conversations.feed(message)
        role = message["role"]
        if role == "assistant":
            self._take_turn(message)
        elif role == "tool":
            if message.get("requestor") != "user" and self._next < len(self._calls):
                self._settle(message)
        elif (message.get("content") or "").strip():
            self._hear(message["content"])
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
        last = self.format_errors[-1] if self.format_errors else None
        if last is not None and last.turn != self._messages - 1:
            last = None
        self._note(ending_error(termination, lost_turn, self._messages, last))
        if lost_turn is not None:
            self._conversations.lose_turn(lost_turn.seat)
        if learner_state is not None:
            self._learner = self._learner.held(learner_state)
        if customer_state is not None:
            self._customer = self._customer.held(customer_state)
        self._termination = termination
        lost = (lost_turn.seat, lost_turn.reason) if lost_turn is not None else (None, None)
        prompts = (self._learner.prompt_digest, self._customer.prompt_digest)
        self._enter("end", termination, *lost, "attempted" if self._attempted else None, *prompts)

    def digest(self) -> str:
        """The digest of the state so far."""
        parts = self._log.hexdigest() + self._learner.digest.hexdigest() + self._customer.digest.hexdigest()
        return canonical.sha256(parts.encode("ascii"))

    def state(self) -> PolicyState:
        """A snapshot; its cost grows with what was found so far."""
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
            learner_state=self._learner.to_dict(),
            customer_state=self._customer.to_dict(),
            termination=self._termination,
            digest=self.digest(),
        )

    def _hear(self, text: str) -> None:
        self._confirmation = verdict = confirmation(text)
        self._enter("heard", verdict.reason, verdict.word)

    def _take_turn(self, message: Mapping) -> None:
        if self._next < len(self._calls):
            self._abandon()
        self._turn, self._next = self._messages, 0
        self._calls = calls = message.get("tool_calls") or ()
        if message.get("content") or not calls:
            for error in message_errors(message, self._turn, self._context):
                self._note(error)
        if calls:
            if not self._attempted:
                self._attempted = TRANSFER_TOOL in [call["name"] for call in calls]
            if acts_several_times(message):
                self._blame("multiple_actions_in_turn", None, None)
            self._begin()

    def _begin(self) -> None:
        """The next call's turn to run has come: judge it by what holds now."""
        name = self._calls[self._next]["name"]
        is_write = name in self._context.write_tools
        if not is_write and not self._transferred:
            return  # no rule is about it
        standing = self._standing()
        if is_write:
            self._running = self._write(self._next, standing)
            self._enter("write", name, self._running.verdicts())
        for rule in rules_broken_by_call(is_write, standing):
            self._blame(rule, self._next, name)

    def _settle(self, result: Mapping) -> None:
        """The running call's result arrived."""
        call, succeeded = self._calls[self._next], not result.get("error")
        name = call["name"]
        if not succeeded or name not in self._context.tool_names:
            self._note(call_error(call, self._turn, self._next, self._context, result))
        if self._running is not None:
            self._finish_write(self._running, succeeded)
        elif succeeded:
            self._note_success(name, result)
        self._advance()

    def _finish_write(self, write: Write, succeeded: bool) -> None:
        self.done_writes.append(replace(write, succeeded=succeeded))
        self._enter("written", "ok" if succeeded else "error")
        if succeeded and not write.on_reference:
            self._blame("off_reference_write", write.call, write.tool)

    def _note_success(self, name: str, result: Mapping) -> None:
        if name == TRANSFER_TOOL:
            self._transferred = True
            self._enter("transferred")
        elif self._authentication is not None and name in self._authentication:
            self._user = (result.get("content") or "").strip()
            self._enter("authenticated", self._user)

    def _abandon(self) -> None:
        """Calls that got no result are judged as made; their outcome stays unknown."""
        while self._next < len(self._calls):
            self._note(call_error(self._calls[self._next], self._turn, self._next, self._context, None))
            if self._running is not None:
                self.done_writes.append(self._running)
            self._advance()

    def _advance(self) -> None:
        self._running = None
        self._next += 1
        if self._next < len(self._calls):
            self._begin()

    def _standing(self) -> Standing:
        authenticated = None if self._authentication is None else self._user is not None
        return Standing(self._confirmation.confirmed, authenticated, self._transferred)

    def _write(self, place: int, standing: Standing) -> Write:
        call = self._calls[place]
        matches = on_reference(self._context.reference_actions, call["name"], call["arguments"])
        return Write(self._turn, place, call["name"], standing.confirmed, standing.authenticated, matches)

    def _pending(self) -> list[Write]:
        """Writes of the last turn without a result; those whose turn has not come stand as things are now."""
        if self._next >= len(self._calls):
            return []
        places, standing = range(self._next, len(self._calls)), self._standing()
        return [self._write(i, standing) for i in places if self._calls[i]["name"] in self._context.write_tools]

    def _blame(self, rule: str, place: int | None, tool: str | None) -> None:
        self.violations.append(Violation(rule, self._turn, place, tool))
        self._enter("violation", rule, str(self._turn), str(place), tool)

    def _note(self, error: FormatError | None) -> None:
        if error is not None:
            self.format_errors.append(error)
            self._enter("format_error", error.kind, str(error.turn), str(error.call), error.tool)

    def _enter(self, *entry: str | None) -> None:
        self._log.entries.append(canonical.framed(*entry))
