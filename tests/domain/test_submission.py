"""Every option of a submission is checked at the call; a refusal names the field, and 0 is not None."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmill.clock import from_datetime, to_datetime
from workmill.domain.errors import InvalidInput
from workmill.domain.job import NewJob
from workmill.domain.limits import MAX_ATTEMPTS, MAX_LOSSES, MAX_PRIORITY, MAX_SECONDS, SECOND
from workmill.domain.submission import CHECKS, new_job

YEAR = MAX_SECONDS
NOT_NUMBERS = [True, False, "1", b"1", [], {}, object(), 1j]
NOT_FINITE = [math.nan, math.inf, -math.inf, 10**400, -(10**400), 10**5_000, -(10**5_000)]
REFUSED = {
    "priority": [-101, 101, 0.0, 0.5, 1e300, 2**63, 2**64],
    "delay": [-1, -0.001, -5e-324, YEAR + 1, 1e300],
    "expires_in": [-1, -0.001, YEAR + 1, 1e300],
    "timeout": [0, 0.0, -1, 0.0009, 5e-324, YEAR + 1],
    "max_attempts": [0, -1, 1.0, MAX_ATTEMPTS + 1, 2**63],
    "max_losses": [0, -1, 1.0, MAX_LOSSES + 1, 2**63],
}
KEPT = {
    "priority": [(0, 0), (-MAX_PRIORITY, -MAX_PRIORITY), (MAX_PRIORITY, MAX_PRIORITY)],
    "delay": [(0, 0), (0.0, 0), (-0.0, 0), (5e-324, 1), (0.0000001, 1), (1.5, 1_500_000), (YEAR, round(YEAR) * SECOND)],
    "expires_in": [(0, 0), (0.001, 1_000), (YEAR, round(YEAR) * SECOND)],
    "timeout": [(0.001, 0.001), (30, 30.0), (YEAR, YEAR)],
    "max_attempts": [(1, 1), (MAX_ATTEMPTS, MAX_ATTEMPTS)],
    "max_losses": [(1, 1), (MAX_LOSSES, MAX_LOSSES)],
}


def brief(value: object) -> str | None:
    """The name of an example whose own would raise, or be another's."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"{'-' if value < 0 else ''}{value.bit_length()}-bits"
    return repr(value) if isinstance(value, str | bytes) else None


def submission(**options: Any) -> NewJob:
    return new_job("018f0000-0000-7000-8000-000000000001", "echo", "{}", options)


@pytest.mark.parametrize(
    ("option", "value"), [(name, value) for name in REFUSED for value in [*REFUSED[name], *NOT_NUMBERS, *NOT_FINITE]], ids=brief
)
def test_a_number_out_of_its_range_is_refused_by_name(option: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        submission(**{option: value})

    assert refusal.value.field == option


@pytest.mark.parametrize(("option", "value", "kept"), [(name, *pair) for name in KEPT for pair in KEPT[name]])
def test_a_number_in_its_range_means_what_it_says(option: str, value: float, kept: float) -> None:
    stored = getattr(submission(**{option: value}), option)

    assert stored == kept
    assert type(stored) is type(kept)


def test_what_is_not_set_has_the_documented_default() -> None:
    job = submission(delay=None, priority=None, queue=None)

    assert (job.queue, job.priority, job.delay, job.timeout) == ("default", 0, None, None)
    assert (job.max_attempts, job.max_losses, job.backoff, job.tags) == (5, 3, None, ())


def test_an_option_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match=r"priorty: no such option; .*priority"):
        submission(priorty=1)


@pytest.mark.parametrize(("one", "other"), [("delay", "run_at"), ("expires_in", "expires_at")])
def test_a_duration_and_a_time_exclude_each_other_also_at_zero(one: str, other: str) -> None:
    with pytest.raises(InvalidInput, match=f"{one}: cannot be set together with {other}"):
        submission(**{one: 0, other: datetime(2026, 1, 1, tzinfo=UTC)})


@pytest.mark.parametrize("option", ["run_at", "expires_at"])
@pytest.mark.parametrize("value", [datetime(2026, 1, 1), "2026-01-01T00:00:00Z", 1_767_225_600, True, timedelta(1)])  # noqa: DTZ001
def test_a_naive_time_or_none_at_all_is_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        submission(**{option: value})

    assert refusal.value.field == option


@pytest.mark.parametrize("option", ["run_at", "expires_at"])
@pytest.mark.parametrize(
    "value",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(2262, 4, 12, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
)
def test_a_time_with_an_offset_is_kept_to_the_microsecond(option: str, value: datetime) -> None:
    assert to_datetime(getattr(submission(**{option: value}), option)) == value


@pytest.mark.parametrize(
    "value",
    [
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(1969, 12, 31, tzinfo=UTC),
    ],
)
def test_a_time_that_could_not_be_shown_again_is_refused(value: datetime) -> None:
    with pytest.raises(InvalidInput, match="1970 to 9999"):
        submission(run_at=value)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_times_come_back_exactly(value: datetime) -> None:
    assert to_datetime(from_datetime(value)) == value


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x00b", "\ud800", 1, b"k", ["k"]])
def test_a_unique_key_is_text_that_can_be_stored(key: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        submission(unique_key=key)

    assert refusal.value.field == "unique_key"


@pytest.mark.parametrize("key", ["a", "welcome:42", " ", "🦊" * 200, "x" * 200, "'; DROP TABLE", "%_*"])
def test_a_unique_key_may_be_any_text_of_two_hundred_characters(key: str) -> None:
    assert submission(unique_key=key).unique_key == key


@pytest.mark.parametrize("tags", ["mail", ["a/b"], [""], [1], [None], [["a"]], {"a": 1}, 5, [f"t{n}" for n in range(21)]])
def test_tags_are_at_most_twenty_names(tags: object) -> None:
    with pytest.raises(InvalidInput, match="tag"):
        submission(tags=tags)


def test_a_tag_named_twice_counts_once() -> None:
    assert submission(tags=["b", "a", "b"]).tags == ("b", "a")


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "meta",
    [[], "[]", 1, {"a": object()}, {"a": math.nan}, {("a",): 1}, deep(100), deep(20_000), {"a": "\ud800"}],
    ids=map(str, range(9)),
)
def test_metadata_is_a_json_object(meta: object) -> None:
    with pytest.raises(InvalidInput, match="meta"):
        submission(meta=meta)


def test_metadata_may_be_text_or_a_mapping() -> None:
    assert submission(meta={"a": "é"}).meta == '{"a": "é"}'
    assert submission(meta='{"a":1 }').meta == '{"a":1 }'


GOOD_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "trace",
    [
        "",
        GOOD_TRACE.upper(),
        "01" + GOOD_TRACE[2:],
        GOOD_TRACE + "-x",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        GOOD_TRACE + "\n",
        1,
    ],
)
def test_a_traceparent_is_that_of_w3c(trace: object) -> None:
    with pytest.raises(InvalidInput, match="traceparent"):
        submission(traceparent=trace)


def test_a_good_traceparent_is_kept() -> None:
    assert submission(traceparent=GOOD_TRACE).traceparent == GOOD_TRACE


@pytest.mark.parametrize("option", sorted(CHECKS))
def test_a_value_whose_repr_raises_is_refused_like_any_other(option: str) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(InvalidInput, match=option.removesuffix("s")):
        submission(**{option: Hostile()})


@pytest.mark.parametrize(("type", "payload"), [("a/b", "{}"), ("workmill.webhook", "{}"), ("echo", "{"), ("echo", None)])
def test_type_and_payload_are_checked_too(type: str, payload: Any) -> None:
    with pytest.raises(InvalidInput):
        new_job("018f0000-0000-7000-8000-000000000001", type, payload)
