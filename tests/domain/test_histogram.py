"""Durations on the logarithmic scale: every one has a bucket, quantiles are close, maxima exact, merging is addition."""

from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from workmill.domain.histogram import bucket, merge, middle, quantile, upper_bound

durations = st.integers(0, 10**18)
samples = st.lists(durations, min_size=1, max_size=50)


def histogram(values: list[int]) -> dict[int, int]:
    return dict(Counter(map(bucket, values)))


@given(durations)
def test_a_duration_lies_in_its_bucket(value: int) -> None:
    index = bucket(value)

    assert value <= upper_bound(index)
    assert index == 0 or upper_bound(index - 1) < value


@given(st.integers(0, 500))
def test_buckets_follow_one_another(index: int) -> None:
    assert bucket(upper_bound(index)) == index
    assert bucket(upper_bound(index) + 1) == index + 1


@given(st.integers(-(10**18), 0))
def test_a_negative_duration_counts_as_none(value: int) -> None:
    assert bucket(value) == 0


@given(durations)
def test_the_middle_of_a_bucket_is_within_seven_percent(value: int) -> None:
    assert abs(middle(bucket(value)) - value) <= 0.07 * value


@given(samples, st.floats(0, 1))
def test_a_quantile_is_within_seven_percent(values: list[int], fraction: float) -> None:
    exact = sorted(values)[max(1, ceil(fraction * len(values))) - 1]

    found = quantile(histogram(values), fraction, max(values))

    assert found is not None
    assert abs(found - exact) <= 0.07 * exact


@given(samples, st.floats(0, 1))
def test_no_quantile_is_above_the_maximum(values: list[int], fraction: float) -> None:
    found = quantile(histogram(values), fraction, max(values))

    assert found is not None
    assert found <= max(values)


@given(samples, samples, samples)
def test_histograms_can_be_merged_in_any_order(one: list[int], two: list[int], three: list[int]) -> None:
    parts = [histogram(one), histogram(two), histogram(three)]

    assert merge(parts) == merge(reversed(parts)) == merge([merge(parts[:2]), parts[2]]) == histogram(one + two + three)


def test_without_samples_there_is_no_quantile() -> None:
    assert quantile({}, 0.5, 0) is None
    assert merge([]) == {}
