"""The terms on which a recorded episode was run: seed, limits, budget, and the models that tau2 was configured with."""

from __future__ import annotations

from replaykit.budget import Budget
from replaykit.cassette import Cassette
from replaykit.engine.protocol import SeatModels
from replaykit.errors import EvidenceError
from replaykit.seats import SEATS

_MOST_STEPS = 100_000


def trial_seed(cassette: Cassette) -> int:
    """The trial's seed.

    Raises:
        EvidenceError: the header names none.
    """
    seed = cassette.header["seeds"].get("trial")
    if type(seed) is not int:
        raise EvidenceError("the header names no trial seed", cassette.path)
    return seed


def limits(cassette: Cassette) -> tuple[int, int] | None:
    """Steps and tool errors that end the episode, where a run had others than the mission's; else None.

    Raises:
        EvidenceError: the header holds no such pair.
    """
    held = cassette.header.get("limits")
    if held is None:
        return None
    pair = tuple(held.get(name) for name in ("steps", "errors")) if isinstance(held, dict) else ()
    if len(pair) != 2 or not all(type(n) is int and 0 <= n <= _MOST_STEPS for n in pair):
        raise EvidenceError("the header's limits are no numbers of steps and errors", cassette.path)
    return pair


def budget_of(cassette: Cassette) -> Budget:
    """The budget that holds in a replay: the mission's, or what an imported run asked where nobody counted."""
    return Budget() if "limits" not in cassette.header else Budget(requests=len(cassette.requests) + 1)


def models(cassette: Cassette) -> SeatModels:
    """What tau2 was configured with: it stands in the native requests; a seat that was never asked keeps a default."""
    header, first = cassette.header, {}
    for recorded in cassette.requests:
        if recorded.seat not in first:
            native = recorded.native
            arguments = {k: v for k, v in native.arguments.items() if k not in ("seed", "num_retries")}
            first[recorded.seat] = (native.model, arguments)
    seats = {
        "learner": header["arm"].get("learner"),
        "customer": header["roster"].get("customer"),
        "judge": header["roster"].get("judge"),
    }
    named = {s: ((seats[s] or {}).get("model", "unknown"), {}) for s in SEATS} | _configured(cassette)
    return SeatModels(*[first.get(s) or named[s] for s in SEATS])


def _configured(cassette: Cassette) -> dict[str, tuple[str, dict]]:
    """A fork's models by seat: they are its parent's, whoever sits there.

    Raises:
        EvidenceError: the header's member is not of its shape.
    """
    given = cassette.header.get("configured", {})
    try:
        found = {seat: (given[seat]["model"], dict(given[seat]["arguments"])) for seat in SEATS} if given else {}
        if not all(isinstance(model, str) for model, _ in found.values()):
            raise TypeError("a model is no text")
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceError(f"the header's configured models are none: {error}", cassette.path) from error
    return found
