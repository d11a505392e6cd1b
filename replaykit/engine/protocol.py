"""The small protocol both engines implement, and an engine's identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from replaykit import canonical
from replaykit.engine.seam import Ask
from replaykit.episode import EpisodeResult


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What a cassette and a certificate say of the engine they were made with.

    Attributes:
        kind: ``pinned`` or ``embedded``.
        distribution, version, revision: As installed; ``unknown`` where it cannot be told.
        source_digest: Over the source of every tau2 module that an episode imports.
        data_digests: Data file name -> SHA-256.
        corrections: Names of the corrections that are active.
        python: ``3.11`` and the like: Python's own error texts enter learner requests.
        libraries: Version by name of what shapes requests (pydantic).
    """

    kind: str
    distribution: str
    version: str
    revision: str
    source_digest: str
    data_digests: dict[str, str]
    corrections: tuple[str, ...]
    python: str
    libraries: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Plain data."""
        return {
            "kind": self.kind,
            "distribution": self.distribution,
            "version": self.version,
            "revision": self.revision,
            "source_digest": self.source_digest,
            "data_digests": dict(self.data_digests),
            "corrections": list(self.corrections),
            "python": self.python,
            "libraries": dict(self.libraries),
        }

    @property
    def digest(self) -> str:
        """Digest of the identity."""
        return canonical.digest(self.to_dict())


@dataclass(frozen=True, slots=True)
class Scenario:
    """One base scenario's facts, as plain data.

    Attributes:
        reference_actions: ``{"name", "arguments", "requestor", "compare_args"}`` each, in order.
        reward_basis: tau2's names, e.g. ``["DB", "NL_ASSERTION"]``.
    """

    domain: str
    id: str
    reward_basis: tuple[str, ...]
    assertions: tuple[str, ...]
    communicate_info: tuple[str, ...]
    reference_actions: tuple[dict, ...]
    digest: str

    @property
    def judge_required(self) -> bool:
        """Whether tau2 asks the judge: assertions exist and the reward basis names them."""
        return "NL_ASSERTION" in self.reward_basis and bool(self.assertions)


@dataclass(frozen=True, slots=True)
class SeatModels:
    """The model name and arguments tau2 is configured with for each seat."""

    learner: tuple[str, dict]
    customer: tuple[str, dict]
    judge: tuple[str, dict]

    def to_dict(self) -> dict:
        """``{"model", "arguments"}`` by seat."""
        seats = (("learner", self.learner), ("customer", self.customer), ("judge", self.judge))
        return {seat: {"model": model, "arguments": arguments} for seat, (model, arguments) in seats}


class Engine(Protocol):
    """A tau2 runtime."""

    identity: EngineIdentity

    def scenarios(self, domain: str) -> dict[str, Scenario]:
        """Base scenarios by id, in file order."""

    def policy(self, domain: str) -> str:
        """The policy text."""

    def tool_schemas(self, domain: str) -> list[dict]:
        """The learner's tool schemas, in the order sent."""

    def write_tools(self, domain: str) -> frozenset[str]:
        """Names of the tools of type WRITE."""

    def reference_outcome(self, domain: str, scenario_id: str) -> tuple[str, list[dict]]:
        """Final database hash of the reference solution, and each action's outcome."""

    def run(
        self,
        domain: str,
        scenario_id: str,
        seed: int,
        models: SeatModels,
        ask: Ask,
        limits: tuple[int, int] | None = None,
    ) -> EpisodeResult:
        """Run one episode and evaluate it.

        Args:
            seed: Trial seed, passed to learner and customer.
            ask: Answers native requests, or raises `replaykit.episode.TurnLost`.
            limits: Steps and tool errors that end the episode; None: the mission's 200 and 10.
        """
