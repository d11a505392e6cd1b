"""The budget of one episode, as values and pure accounting; clocks are given in.

201 requests (200 steps and one judge), 17 s a request and 10 s of grace, 180 s for connections, 393 s for the
simulation itself: 201 x (17 + 10) + 180 + 393 = 6,000 s. Retries count as requests; a request is debited before
it is sent, so a kill between debit and answer never gives one back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one episode."""

    requests: int = 201
    request_s: float = 17.0
    grace_s: float = 10.0
    connection_s: float = 180.0
    simulation_s: float = 393.0

    @property
    def wall_s(self) -> float:
        """Seconds for the whole episode: 6,000 with the defaults."""
        return self.requests * (self.request_s + self.grace_s) + self.connection_s + self.simulation_s

    def to_dict(self) -> dict:
        """Plain data with the derived wall limit."""
        return asdict(self) | {"wall_s": self.wall_s}


class BudgetSpent(Exception):
    """A limit is reached. ``limit`` is ``requests``, ``connection``, ``simulation`` or ``wall``."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the episode's budget of {limit} is spent")
        self.limit = limit


@dataclass(slots=True)
class Ledger:
    """What an episode has spent. Not thread-safe: one episode, one ledger.

    Attributes:
        clock: Monotonic seconds.
        started_s: When the episode began.
        requests: Wire attempts debited so far, all seats.
        waiting_s: Seconds spent waiting for seats (not counted as simulation).
        connecting_s: Seconds spent establishing connections.
    """

    budget: Budget
    clock: Callable[[], float]
    requests: int = 0
    waiting_s: float = 0.0
    connecting_s: float = 0.0
    started_s: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.started_s = self.clock()

    def debit(self) -> None:
        """Take one request, before it is sent.

        Raises:
            BudgetSpent: a limit is reached; nothing is taken.
        """
        elapsed = self.clock() - self.started_s
        if elapsed >= self.budget.wall_s:
            raise BudgetSpent("wall")
        if elapsed - self.waiting_s >= self.budget.simulation_s:
            raise BudgetSpent("simulation")
        if self.connecting_s >= self.budget.connection_s:
            raise BudgetSpent("connection")
        if self.requests >= self.budget.requests:
            raise BudgetSpent("requests")
        self.requests += 1

    def remaining_s(self) -> float:
        """Seconds left of the wall limit."""
        return self.budget.wall_s - (self.clock() - self.started_s)
