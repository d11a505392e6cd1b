"""One finished episode as scoring sees it: plain values that somebody else read from a cassette."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SUCCESS_TOLERANCE = 1e-6
_MOST = 1e12


@dataclass(frozen=True, slots=True)
class SeatUse:
    """What a seat's replies cost, attempts included.

    Attributes:
        replies: Replies and failed attempts that were paid for or may have been.
        prompt_tokens, completion_tokens: Sums over the replies that reported them, or None: none did.
        cost: US dollars over the replies that reported it, or None: none did.
        tokens_not_reported, cost_not_reported: How many replies said nothing.
    """

    replies: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    tokens_not_reported: int = 0
    cost_not_reported: int = 0

    def __add__(self, other: SeatUse) -> SeatUse:
        return SeatUse(
            self.replies + other.replies,
            _plus(self.prompt_tokens, other.prompt_tokens),
            _plus(self.completion_tokens, other.completion_tokens),
            _plus(self.cost, other.cost),
            self.tokens_not_reported + other.tokens_not_reported,
            self.cost_not_reported + other.cost_not_reported,
        )

    def to_dict(self) -> dict:
        """Plain data; what nobody reported is the text ``not reported``, never 0."""
        unknown = dict.fromkeys(("prompt_tokens", "completion_tokens", "cost"), "not reported")
        known = {name: getattr(self, name) for name in unknown if getattr(self, name) is not None}
        counts = {name: getattr(self, name) for name in ("replies", "tokens_not_reported", "cost_not_reported")}
        return counts | unknown | known


def seat_use(replies: Iterable[tuple[Mapping[str, Any] | None, float | None]]) -> SeatUse:
    """Add up a seat's replies.

    Args:
        replies: Usage and cost as the provider reported them, each None when it said nothing. A usage that lacks one
            of the two token counts, or holds null or anything but a whole number there, has not reported its tokens.
    """
    total = SeatUse()
    for usage, cost in replies:
        prompt, completion, price = reported(usage, cost)
        total += SeatUse(1, prompt, completion, price, int(prompt is None or completion is None), int(price is None))
    return total


def reported(usage: Mapping[str, Any] | None, cost: Any) -> tuple[int | None, int | None, float | None]:
    """Prompt tokens, completion tokens and US dollars of one reply; None for each that was not reported."""
    is_price = isinstance(cost, (int, float)) and not isinstance(cost, bool) and abs(cost) <= _MOST
    price = float(cost) if is_price else None  # what is no amount of money was not reported
    if usage is None:
        return None, None, price
    return _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens"), price


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode of one panel and arm.

    Attributes:
        panel: e.g. ``airline/0``.
        arm: The learner's identity.
        roster_digest, fleet_digest: The frozen customer and judge; the frozen fleet.
        settings: The inference settings of the seats.
        engine: The engine's identity.
        component: The sampling component of the panel.
        case_seed: The seed the trial was drawn with.
        reward: tau2's reward, or None: unknown.
        termination: How the episode ended.
        transferred: The learner called the transfer tool.
        label: ``{"y": 0 | 1, "rule": str}`` of the task, or None: it has no label.
        violations, format_errors: Counts by rule and by kind.
        diagnostics: Names, one for each time a diagnostic was raised.
        requests: Requests the budget was debited for, by seat.
        seats: What each seat used.
        source: Where the trial was read from, for people.
        controls: The set of labelled offline controls at the seats, or None: there were none.
    """

    panel: str
    arm: str
    roster_digest: str
    fleet_digest: str
    settings: Mapping[str, Any]
    engine: Mapping[str, Any]
    component: str
    case_seed: int
    reward: float | None
    termination: str
    transferred: bool
    label: Mapping[str, Any] | None = None
    violations: Mapping[str, int] = field(default_factory=dict)
    format_errors: Mapping[str, int] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()
    requests: Mapping[str, int] = field(default_factory=dict)
    seats: Mapping[str, SeatUse] = field(default_factory=dict)
    source: str = ""
    controls: str | None = None

    @property
    def graded(self) -> bool:
        """Whether the trial has a reward that speaks of the learner.

        An unknown reward does not, and neither does an episode that ended because a seat could not be reached: tau2
        drops those runs from its metrics instead of scoring them 0.
        """
        return self.reward is not None and self.termination != "infrastructure_error"

    @property
    def success(self) -> bool:
        """Whether the reward is 1.0 within 1e-6, the rule of tau2's own metrics."""
        return self.graded and self.reward is not None and abs(self.reward - 1.0) <= SUCCESS_TOLERANCE


def conditions(trial: Trial) -> dict[str, Any]:
    """What two arms must have in common to be compared."""
    return {
        "roster": trial.roster_digest,
        "settings": trial.settings,
        "fleet": trial.fleet_digest,
        "engine": trial.engine,
    }


def panel_order(panel: str) -> tuple:
    """Sorts ``airline/2`` before ``airline/10``."""
    domain, _, scenario = panel.partition("/")
    return (domain, 0, int(scenario), "") if scenario.isascii() and scenario.isdigit() else (domain, 1, 0, scenario)


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _tokens(usage: Mapping[str, Any] | None, key: str) -> int | None:
    value = usage.get(key) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
