"""What samples say: quantiles of many durations, medians of a few rounds."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Spread(NamedTuple):
    """How a set of durations is distributed, in milliseconds. Every figure is one of the samples."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """The smallest sample that at least `fraction` of the samples do not exceed."""
    return ordered[max(1, math.ceil(fraction * len(ordered))) - 1]


def spread(microseconds: Sequence[float]) -> Spread:
    """The quantiles of durations that are given in microseconds."""
    ordered = sorted(microseconds)
    return Spread(*(round(quantile(ordered, fraction) / 1_000, 3) for fraction in (0.5, 0.95, 0.99, 1.0)))


def curve(microseconds: Sequence[float], points: int = 200) -> list[float]:
    """Durations thinned for a plot: their quantiles at `points` even steps, in milliseconds; the last is the maximum."""
    ordered = sorted(microseconds)
    return [round(quantile(ordered, step / points) / 1_000, 3) for step in range(1, points + 1)]


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median over the rounds of each figure by itself: a ratio's is the median of ratios, not the ratio of medians."""
    return {name: round(statistics.median(figures[name] for figures in rounds), 4) for name in rounds[0]}
