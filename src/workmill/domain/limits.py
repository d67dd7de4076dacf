"""The limits of everything a caller can set, and the checks that name the field and the rule."""

import math
from typing import Final

from workmill.domain.errors import InvalidInput, shown

PAYLOAD_BYTES: Final = 1 << 20
PAYLOAD_DEPTH: Final = 64
ERROR_MESSAGE_CHARACTERS: Final = 4_000
TRACEBACK_CHARACTERS: Final = 32_000
MAX_PRIORITY: Final = 100
MAX_ATTEMPTS: Final = 10_000
MAX_LOSSES: Final = 1_000
MAX_SNOOZES: Final = 1_000
MAX_SECONDS: Final = 366 * 86_400.0
"""No delay, timeout or deadline from now is longer than a year (and a day)."""
MAX_TAGS: Final = 20
META_BYTES: Final = 16 << 10
UNIQUE_KEY_CHARACTERS: Final = 200
HISTORY_ROWS: Final = 1_000
DEFAULT_ATTEMPTS: Final = 5
DEFAULT_LOSSES: Final = 3
DEFAULT_LEASE_SECONDS: Final = 15.0
MIN_LEASE_SECONDS: Final = 0.5
MAX_LEASE_SECONDS: Final = 3_600.0
UNKNOWN_TYPE_SECONDS: Final = 86_400.0
"""How long a job waits aside for a worker that knows its type before upkeep buries it."""
SECOND: Final = 1_000_000
"""Microseconds in a second: times and durations inside Workmill are whole microseconds."""


def check_integer(field: str, value: object, low: int, high: int) -> int:
    """Return `value` when it is a whole number (no bool) from `low` to `high`."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"must be a whole number from {low} to {high} (got {shown(value)})")
    return value


def check_seconds(field: str, value: object, low: float = 0.0, high: float = MAX_SECONDS) -> float:
    """Return `value` as float when it is a number (no bool, no NaN) of seconds from `low` to `high`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidInput(field, f"must be a number of seconds (got {shown(value)})")
    if not low <= value <= high:
        raise InvalidInput(field, f"must be from {low:g} to {high:g} seconds (got {shown(value)})")
    return float(value)


def check_number(field: str, value: object, low: float, high: float) -> float:
    """Return `value` when it is a number (no bool, no NaN) from `low` to `high`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"must be a number from {low:g} to {high:g} (got {shown(value)})")
    return value


def microseconds(seconds: float) -> int:
    """Seconds as whole microseconds, rounded up so that no positive duration becomes zero."""
    return math.ceil(seconds * SECOND)
