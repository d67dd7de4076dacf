"""Figures are samples, or medians of them; nothing is interpolated and no outlier is lost."""

import random

import pytest

from workmill.bench.samples import Spread, curve, medians, quantile, spread


def test_a_quantile_is_one_of_the_samples() -> None:
    samples = sorted([5.0, 1.0, 9.0])

    assert [quantile(samples, fraction) for fraction in (0.01, 0.5, 0.95, 1.0)] == [1.0, 5.0, 9.0, 9.0]


@pytest.mark.parametrize("fraction", [0.5, 0.95, 0.99])
def test_at_least_that_part_of_the_samples_is_not_above_a_quantile(fraction: float, rng: random.Random) -> None:
    samples = sorted(rng.expovariate(1) for _ in range(997))

    found = quantile(samples, fraction)

    assert sum(sample <= found for sample in samples) >= fraction * len(samples)
    assert sum(sample < found for sample in samples) < fraction * len(samples)


def test_a_spread_is_in_milliseconds_and_keeps_the_maximum() -> None:
    assert spread([1_000, 2_000, 3_000, 1_000_000]) == Spread(2.0, 1_000.0, 1_000.0, 1_000.0)


def test_a_curve_ends_with_the_maximum() -> None:
    drawn = curve([float(number) for number in range(1_000, 0, -1)], points=10)

    assert drawn == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_the_median_of_a_ratio_is_not_the_ratio_of_the_medians() -> None:
    rounds = [
        {"here": 1.0, "there": 2.0, "ratio": 0.5},
        {"here": 3.0, "there": 4.0, "ratio": 0.75},
        {"here": 9.0, "there": 3.0, "ratio": 3.0},
    ]

    assert medians(rounds) == {"here": 3.0, "there": 3.0, "ratio": 0.75}
