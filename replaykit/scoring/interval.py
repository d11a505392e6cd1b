"""An interval for the difference of two arms, with the sampling component as the unit.

Panels that share a domain database are one component and are not independent, so the panels' mean differences are
first averaged within each component, and the interval is Student's t over the component means: as many observations as
components, equal weights. With the two components of airline and retail it has one degree of freedom and is wide;
that is what two independent observations say. It is an interval of a difference between arms, not a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, lgamma, log, sqrt

from replaykit.errors import UsageError


def component_interval(comparison: Mapping, level: float = 0.95) -> dict:
    """The interval of the mean component difference.

    Args:
        comparison: What `arms.compare_arms` returned.
        level: Confidence level, between 0 and 1.

    Returns:
        ``{"method", "level", "unit": "components", "components": {NAME: {"panels", "mean_difference"}}, "low",
        "high", "note"}``; the note says when the components agree exactly, which gives an interval without width.

    Raises:
        UsageError: fewer than two components have a paired difference, or the level is no probability.
    """
    if not 0.0 < level < 1.0:
        raise UsageError(f"the confidence level {level} is not between 0 and 1")
    components = _components(comparison)
    if len(components) < 2:
        raise UsageError(
            f"no interval: all pairs are of {len(components)} sampling component, and panels that share a database "
            "are not independent; compare the arms on panels of two components or more"
        )
    means = [entry["mean_difference"] for entry in components.values()]
    count, centre = len(means), sum(means) / len(means)
    spread = sqrt(sum((mean - centre) ** 2 for mean in means) / (count - 1))
    reach = student_quantile(0.5 + level / 2, count - 1) * spread / sqrt(count)
    return {
        "method": "Student's t over component means",
        "level": level,
        "unit": "components",
        "components": components,
        "low": centre - reach,
        "high": centre + reach,
        "note": None if spread else "the component means are equal, so the width 0 says nothing about sampling",
    }


def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t for a probability of at least one half."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def student_cdf(t: float, freedom: int) -> float:
    """The distribution function of Student's t for t >= 0."""
    return 1.0 - 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _components(comparison: Mapping) -> dict[str, dict]:
    means: dict[str, list[float]] = {}
    for panel in comparison["panels"]:
        if panel["mean_difference"] is not None:
            means.setdefault(panel["component"], []).append(panel["mean_difference"])
    return {
        name: {"panels": len(values), "mean_difference": sum(values) / len(values)}
        for name, values in sorted(means.items())
    }


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a
    return front * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1.0 / (1.0 + term * d or tiny), 1.0 + term / c or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value
