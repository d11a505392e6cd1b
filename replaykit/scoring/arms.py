"""Two arms, panel by panel, under the same roster, settings, fleet and engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.scoring.trial import Trial, conditions, panel_order


def compare_arms(trials: Iterable[Trial], first: str, second: str) -> dict:
    """Compare two arms on every panel that both played.

    A difference is the second arm's value less the first's. Trials are paired by their case seed; a seed that an arm
    repeats, or that only one arm has, is listed and left out of the pairs.

    Returns:
        ``{"arms": [first, second], "conditions_digest", "panels": [PANEL, ...], "unpaired": [...]}`` with ``PANEL =
        {"panel", "component", "pairs": [{"case_seed", "rewards": [a, b], "difference", "successes": [a, b]}],
        "mean_difference", "seeds_left_out", "ungraded_seeds"}``; ``unpaired`` names the panels that one arm lacks.

    Raises:
        UsageError: an arm has no trial, the arms are the same, or their conditions differ (it names what differs).
    """
    if first == second:
        raise UsageError(f"the arm {first} cannot be compared with itself: name two arms")
    sides = ({}, {})
    shared: dict[str, Any] | None = None
    for trial in trials:
        if trial.arm in (first, second):
            shared = shared or conditions(trial)
            _require_same(shared, trial)
            sides[trial.arm == second].setdefault(trial.panel, []).append(trial)
    for arm, side in zip((first, second), sides, strict=True):
        if not side:
            raise UsageError(f"there is no trial of the arm {arm}: name an arm that was recorded")
    both = sorted(sides[0].keys() & sides[1].keys(), key=panel_order)
    return {
        "arms": [first, second],
        "conditions_digest": canonical.digest(shared),
        "panels": [_panel(sides[0][panel], sides[1][panel]) for panel in both],
        "unpaired": sorted(sides[0].keys() ^ sides[1].keys(), key=panel_order),
    }


def _require_same(shared: Mapping[str, Any], trial: Trial) -> None:
    found = conditions(trial)
    parts = [name for key in shared for name in _differing(key, shared[key], found[key])]
    if parts:
        raise UsageError(
            f"the arms cannot be compared: {', '.join(parts)}; compare only trials under the same roster, settings, "
            f"fleet and engine ({trial.source or trial.panel} is the first that departs)"
        )


def _differing(name: str, a: Any, b: Any) -> list[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted(set(a) | set(b))
        return [part for key in keys for part in _differing(f"{name}.{key}", a.get(key), b.get(key))]
    return [] if canonical.digest(a) == canonical.digest(b) else [f"{name} differs ({_short(a)} and {_short(b)})"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 20 else text[:12] + "…"


def _panel(first: Sequence[Trial], second: Sequence[Trial]) -> dict:
    a, b = _by_seed(first), _by_seed(second)
    seeds = sorted(seed for seed in a.keys() & b.keys() if a[seed] is not None and b[seed] is not None)
    graded = [seed for seed in seeds if a[seed].graded and b[seed].graded]
    pairs = [_pair(a[seed], b[seed]) for seed in graded]
    differences = [pair["difference"] for pair in pairs]
    return {
        "panel": first[0].panel,
        "component": first[0].component,
        "pairs": pairs,
        "mean_difference": sum(differences) / len(differences) if differences else None,
        "seeds_left_out": sorted((a.keys() | b.keys()) - set(seeds)),
        "ungraded_seeds": [seed for seed in seeds if seed not in graded],
    }


def _by_seed(trials: Iterable[Trial]) -> dict[int, Trial | None]:
    """Trials by case seed; None for a seed that is repeated."""
    by_seed: dict[int, Trial | None] = {}
    for trial in trials:
        by_seed[trial.case_seed] = None if trial.case_seed in by_seed else trial
    return by_seed


def _pair(a: Trial, b: Trial) -> dict:
    return {
        "case_seed": a.case_seed,
        "rewards": [a.reward, b.reward],
        "difference": b.reward - a.reward,
        "successes": [a.success, b.success],
    }
