"""The one place that reads a clock or sleeps. Wall time is for the store only; watchdogs use the monotonic clock."""

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wall() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1_000


def monotonic() -> float:
    """Seconds on a clock that never jumps."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Block this thread."""
    time.sleep(seconds)


def to_datetime(microseconds: int) -> datetime:
    """Microseconds since the epoch as an aware UTC time, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def from_datetime(value: datetime) -> int:
    """An aware time as microseconds since the epoch, exactly."""
    return (value - _EPOCH) // timedelta(microseconds=1)
