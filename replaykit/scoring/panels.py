"""Scores of one panel and one arm, from its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import NoReturn

from replaykit import canonical
from replaykit.errors import UsageError
from replaykit.scoring.trial import SeatUse, Trial, conditions, panel_order

SUCCESS_RULE = "reward is 1.0 within 1e-6, as in tau2's own metrics"
RELIABILITY_RULE = "comb(successes, k) / comb(graded trials, k)"


def score_panels(trials: Iterable[Trial], ks: Sequence[int] = (1,)) -> list[dict]:
    """The scores of every panel and arm, one by one.

    Trials whose roster, settings, fleet or engine differ are never put together: they give rows of their own.

    Args:
        trials: Finished episodes.
        ks: The k of the reliability figures.

    Returns:
        One dictionary per panel, arm and conditions, in panel order: ``panel``, ``arm``, ``controls`` (the sets of
        controls at its seats), ``component``, ``conditions_digest``, ``trials``, ``graded``, ``successes``,
        ``success_rule``, ``rewards``, ``mean_reward``, ``reliability``, ``reliability_rule``, ``transfer``,
        ``violations``, ``format_errors``, ``terminations``, ``diagnostics``, ``requests``, ``seats``,
        ``repeated_seeds``.

    Raises:
        UsageError: a k is below 1.
    """
    bad = [k for k in ks if k < 1]
    if bad:
        raise UsageError(f"k = {bad[0]} has no reliability figure: give numbers from 1 on")
    groups: dict[tuple, list[Trial]] = {}
    for trial in trials:
        key = (panel_order(trial.panel), trial.panel, trial.arm, canonical.digest(conditions(trial)))
        groups.setdefault(key, []).append(trial)
    return [_score(sorted(groups[key], key=_trial_order), key[-1], ks) for key in sorted(groups)]


def reliability(successes: int, trials: int, k: int) -> dict:
    """``comb(successes, k) / comb(trials, k)`` as ``{"k", "value", "reason"}``; undefined when k exceeds the trials."""
    if k > trials:
        return {"k": k, "value": None, "reason": f"undefined: k = {k} is more than the {trials} graded trials"}
    return {"k": k, "value": comb(successes, k) / comb(trials, k), "reason": None}


def confusion_of_panels(rows: Iterable[Mapping]) -> dict:
    """How many panels were handed to a human rightly and wrongly; the unit is a panel, not an episode.

    Args:
        rows: The rows of one arm, from `score_panels`.

    Returns:
        ``{"unit": "panels", "should_and_did", "should_and_did_not", "should_not_and_did", "should_not_and_did_not",
        "trials_disagree", "no_label"}``.

    Raises:
        UsageError: the rows are of several arms or conditions, or a panel appears twice.
    """
    rows = list(rows)
    if len({(row["arm"], row["conditions_digest"]) for row in rows}) > 1:
        raise UsageError("confusion counts are of one arm under one roster, settings, fleet and engine: pick one")
    if len({row["panel"] for row in rows}) != len(rows):
        raise UsageError("a panel appears twice in the confusion counts: give each panel once")
    cells = Counter(_cell(row["transfer"]) for row in rows)
    names = ("should_and_did", "should_and_did_not", "should_not_and_did", "should_not_and_did_not")
    return {"unit": "panels"} | {name: cells[name] for name in (*names, "trials_disagree", "no_label")}


def across_panels(figure: str) -> NoReturn:
    """Refuse a figure over several panels.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"there is no {figure} across panels: each panel is a league of its own, with its own scenario and metric, "
        "and panels that share a database are not independent; read the figures panel by panel"
    )


def _score(trials: list[Trial], conditions_digest: str, ks: Sequence[int]) -> dict:
    graded = [trial for trial in trials if trial.graded]
    successes = sum(trial.success for trial in graded)
    rewards = [trial.reward for trial in graded if trial.reward is not None]
    return {
        "panel": trials[0].panel,
        "arm": trials[0].arm,
        "controls": sorted({trial.controls for trial in trials if trial.controls is not None}),
        "component": trials[0].component,
        "conditions_digest": conditions_digest,
        "trials": len(trials),
        "graded": len(graded),
        "successes": successes,
        "success_rule": SUCCESS_RULE,
        "rewards": [{"case_seed": t.case_seed, "reward": t.reward if t.graded else None} for t in trials],
        "mean_reward": sum(rewards) / len(rewards) if rewards else None,
        "reliability": [reliability(successes, len(graded), k) for k in ks],
        "reliability_rule": RELIABILITY_RULE,
        "transfer": _transfer(trials),
        "violations": _summed(trial.violations for trial in trials),
        "format_errors": _summed(trial.format_errors for trial in trials),
        "terminations": _counted(trial.termination for trial in trials),
        "diagnostics": _counted(name for trial in trials for name in trial.diagnostics),
        "requests": _summed(trial.requests for trial in trials),
        "seats": _seats(trials),
        "repeated_seeds": _repeated(trial.case_seed for trial in trials),
    }


def _transfer(trials: Sequence[Trial]) -> dict:
    labels = {(t.label["y"], t.label["rule"]) for t in trials if t.label is not None}
    if len(labels) > 1:
        raise UsageError(f"the trials of {trials[0].panel} carry different transfer labels: use one label file")
    y, rule = labels.pop() if labels else (None, None)
    count = sum(trial.transferred for trial in trials)
    return {"y": y, "rule": rule, "transferred": count, "not_transferred": len(trials) - count}


def _cell(transfer: Mapping) -> str:
    if transfer["y"] is None:
        return "no_label"
    if transfer["transferred"] and transfer["not_transferred"]:
        return "trials_disagree"
    should, did = "should" if transfer["y"] else "should_not", "did" if transfer["transferred"] else "did_not"
    return f"{should}_and_{did}"


def _seats(trials: Iterable[Trial]) -> dict[str, dict]:
    totals: dict[str, SeatUse] = {}
    for trial in trials:
        for seat, use in trial.seats.items():
            totals[seat] = totals.get(seat, SeatUse()) + use
    return {seat: use.to_dict() for seat, use in totals.items()}


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return {name: total[name] for name in sorted(total)}


def _counted(names: Iterable[str]) -> dict[str, int]:
    total = Counter(names)
    return {name: total[name] for name in sorted(total)}


def _repeated(seeds: Iterable[int]) -> list[int]:
    return sorted(seed for seed, count in Counter(seeds).items() if count > 1)


def _trial_order(trial: Trial) -> tuple:
    return (trial.case_seed, trial.source)
