"""Durations on a fixed logarithmic scale: eight buckets an octave, so a quantile is within 7 %; the maximum is kept exact.

A histogram is a sparse mapping of bucket to count; merging is addition, so deltas can be appended and folded in any order.
"""

from collections.abc import Iterable, Mapping
from math import ceil

Histogram = dict[int, int]
_STEPS = 8


def bucket(microseconds: int) -> int:
    """The bucket of a duration: exact below 16 µs, then the top three bits after the leading one."""
    value = max(0, microseconds)
    if value < _STEPS:
        return value
    shift = value.bit_length() - 4
    return shift * _STEPS + (value >> shift)


def tally(durations: Iterable[int]) -> Histogram:
    """The histogram of some durations in microseconds: `bucket` of each, in one loop, since it runs for every job."""
    histogram: Histogram = {}
    for duration in durations:
        index = duration
        if duration >= _STEPS:
            shift = duration.bit_length() - 4
            index = shift * _STEPS + (duration >> shift)
        elif duration < 0:
            index = 0
        histogram[index] = histogram.get(index, 0) + 1
    return histogram


def upper_bound(index: int) -> int:
    """The largest duration in microseconds that falls into the bucket."""
    if index < 2 * _STEPS:
        return index
    shift, top = index // _STEPS - 1, index % _STEPS + _STEPS
    return ((top + 1) << shift) - 1


def middle(index: int) -> int:
    """The duration in microseconds that stands for the bucket: at most 1/16 away from any that fell into it."""
    return (upper_bound(index - 1) + 1 + upper_bound(index)) // 2 if index else 0


def merge(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    """The sum of several."""
    total: Histogram = {}
    for histogram in histograms:
        for index, count in histogram.items():
            total[index] = total.get(index, 0) + count
    return total


def quantile(histogram: Mapping[int, int], fraction: float, maximum: int) -> int | None:
    """The duration in microseconds below which `fraction` of the samples lie; None without samples; never over `maximum`."""
    total = sum(histogram.values())
    if not total:
        return None
    rank = max(1, ceil(fraction * total))
    seen = 0
    for index in sorted(histogram):
        seen += histogram[index]
        if seen >= rank:
            return min(middle(index), maximum)
    return maximum
