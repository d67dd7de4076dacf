"""Delays are finite, clamped and monotone, however often a job has failed and whatever its policy says."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmill.domain.errors import InvalidInput
from workmill.domain.limits import MAX_SECONDS, SECOND
from workmill.domain.retry import (
    DEFAULT_BACKOFF,
    LOSS_CAP,
    Delays,
    Exponential,
    Retry,
    decode_backoff,
    encode_backoff,
    exponential,
    loss_delay,
    parse_backoff,
    retry_delay,
)

TINY = 5e-324


def brief(value: object) -> str | None:
    """The name of an example whose own would raise, or be another's."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"{'-' if value < 0 else ''}{value.bit_length()}-bits"
    return repr(value) if isinstance(value, str | bytes) else None


EXTREMES = [
    Exponential(),
    Exponential(base=TINY, factor=1_000, cap=MAX_SECONDS),
    Exponential(base=TINY, factor=1.0000001, cap=TINY),
    Exponential(base=MAX_SECONDS, factor=1_000, cap=MAX_SECONDS),
    Exponential(base=0, factor=2, cap=10),
    Exponential(base=10, factor=2, cap=0),
    Exponential(base=10, factor=1, cap=5),
    Exponential(base=1, factor=1 + 1e-15, cap=3),
    Exponential(base=2, factor=2, cap=3_600, jitter=1),
]
seconds = st.floats(0, MAX_SECONDS) | st.integers(0, int(MAX_SECONDS))
policies = st.builds(Exponential, seconds, st.floats(1, 1_000), seconds, st.floats(0, 1)) | st.builds(
    Delays, st.lists(seconds, min_size=1, max_size=5).map(tuple)
)
spreads = st.floats(-1, 1)


@pytest.mark.parametrize("policy", EXTREMES, ids=str)
def test_a_delay_is_finite_clamped_and_monotone_for_ten_thousand_failures(policy: Exponential) -> None:
    delays = [policy.delay(failures) for failures in range(1, 10_001)]

    assert all(math.isfinite(delay) and 0 <= delay <= policy.cap for delay in delays)
    assert delays == sorted(delays)


@given(policies, st.integers(1, 10_000), spreads)
def test_jitter_never_leaves_the_clamp(policy: Exponential | Delays, failures: int, spread: float) -> None:
    delay = retry_delay(policy, failures, spread)

    assert isinstance(delay, int)
    assert 0 <= delay <= MAX_SECONDS * SECOND
    assert delay <= math.ceil(getattr(policy, "cap", MAX_SECONDS) * SECOND)


@given(
    st.builds(Exponential, st.floats(0.001, 100), st.floats(1, 10), st.just(3_600.0), st.floats(0, 1)),
    st.integers(1, 50),
    spreads,
)
def test_jitter_spreads_by_its_fraction(policy: Exponential, failures: int, spread: float) -> None:
    exact = policy.delay(failures)

    assert abs(policy.delay(failures, spread) - exact) <= exact * policy.jitter * 1.000001


def test_the_default_doubles_from_two_seconds_to_an_hour() -> None:
    assert [DEFAULT_BACKOFF.delay(failures) for failures in (1, 2, 3, 4, 12, 10_000)] == [2, 4, 8, 16, 3_600, 3_600]


def test_the_last_of_a_list_of_delays_repeats() -> None:
    policy = parse_backoff([1, 5, 60])

    assert [policy.delay(failures) for failures in (1, 2, 3, 4, 10_000)] == [1, 5, 60, 60, 60]


@pytest.mark.parametrize(
    ("asked", "delay"),
    [
        (0.0, 0),
        (-1.0, 0),
        (-math.inf, 0),
        (1.5, 1_500_000),
        (TINY, 1),
        (1e300, round(MAX_SECONDS * SECOND)),
        (math.inf, round(MAX_SECONDS * SECOND)),
    ],
)
def test_what_a_handler_asks_for_wins_and_is_clamped(asked: float, delay: int) -> None:
    assert retry_delay(DEFAULT_BACKOFF, 1, 0, asked) == delay


def test_a_handler_that_asks_for_no_number_gets_the_backoff() -> None:
    assert retry_delay(DEFAULT_BACKOFF, 1, 0, math.nan) == 2 * SECOND


def test_zero_is_not_none() -> None:
    assert retry_delay(parse_backoff([0]), 1, 0) == 0
    assert retry_delay(parse_backoff([60]), 1, 0, 0.0) == 0


@given(st.integers(0, 10_000), spreads)
def test_the_wait_after_a_loss_is_clamped(losses: int, spread: float) -> None:
    assert 0 <= loss_delay(losses, spread) <= LOSS_CAP


def test_the_first_loss_waits_not_at_all_and_later_ones_double() -> None:
    assert [loss_delay(losses, 0) // SECOND for losses in (0, 1, 2, 3, 4, 10_000)] == [0, 0, 5, 10, 20, 3_600]


@given(policies)
def test_a_policy_comes_back_from_its_stored_text(policy: Exponential | Delays) -> None:
    assert decode_backoff(encode_backoff(policy)) == policy


@given(policies)
def test_a_policy_comes_back_from_the_shape_of_the_api(policy: Exponential | Delays) -> None:
    assert parse_backoff(json.loads(json.dumps(policy.to_builtins()))) == policy


def test_the_default_takes_no_room() -> None:
    assert encode_backoff(exponential()) is None


@pytest.mark.parametrize("value", [-1, -0.001, math.nan, math.inf, -math.inf, MAX_SECONDS + 1, 10**5_000, "2", None, True, [1]], ids=brief)
@pytest.mark.parametrize("name", ["base", "cap", "factor", "jitter"])
def test_a_number_that_cannot_be_used_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_backoff({name: value})

    assert refusal.value.field == f"backoff.{name}"


@pytest.mark.parametrize(
    "value",
    [[], [1] * 101, [1, -1], [1, math.nan], [math.inf], [10**5_000], ["1"], [None], [True]],
    ids=map(str, range(9)),
)
def test_a_list_that_cannot_be_used_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="backoff"):
        parse_backoff(value)


@pytest.mark.parametrize("value", ["fast", 3, {"base": 1, "speed": 2}, {1: 2}, object(), None])
def test_a_backoff_of_another_shape_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="backoff"):
        parse_backoff(value)


@pytest.mark.parametrize("value", [0, -1, 10_001, 1.0, True, "5", 10**5_000], ids=brief)
def test_attempts_are_counted_from_one_to_ten_thousand(value: object) -> None:
    with pytest.raises(InvalidInput, match="max_attempts"):
        Retry(max_attempts=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [(1,), ("ValueError",), (int,), (ValueError("x"),)])
def test_only_classes_of_exceptions_can_be_given_up_on(value: object) -> None:
    with pytest.raises(InvalidInput, match="give_up_on"):
        Retry(give_up_on=value)  # type: ignore[arg-type]
