"""When a failed run is tried again: exponential with jitter, or a list of delays. All delays are finite and clamped."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from workmill.domain.errors import InvalidInput
from workmill.domain.limits import (
    DEFAULT_ATTEMPTS,
    MAX_ATTEMPTS,
    MAX_SECONDS,
    SECOND,
    check_integer,
    check_number,
    check_seconds,
    microseconds,
)

MAX_DELAYS: Final = 100
LOSS_BASE: Final = 5 * SECOND
LOSS_CAP: Final = 3_600 * SECOND
LOSS_JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Exponential:
    """`base × factor^(n-1)` seconds after the n-th failure, at most `cap`, spread by ± `jitter` (a fraction)."""

    base: float = 2.0
    factor: float = 2.0
    cap: float = 3_600.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        check_seconds("backoff.base", self.base)
        check_seconds("backoff.cap", self.cap)
        check_number("backoff.factor", self.factor, 1.0, 1_000.0)
        check_number("backoff.jitter", self.jitter, 0.0, 1.0)

    def delay(self, failures: int, spread: float = 0.0) -> float:
        """Seconds to wait after the `failures`-th failure (from 1); `spread` in [-1, 1] picks the jitter.

        Finite for every `failures`; without jitter monotone; never over `cap`.
        """
        if not self.base:
            return 0.0
        try:
            exact = self.base * float(self.factor) ** (max(1, failures) - 1)
        except OverflowError:
            exact = math.inf
        return max(0.0, min(self.cap, min(exact, self.cap) * (1 + self.jitter * spread)))

    def to_builtins(self) -> dict[str, float]:
        """The object of the HTTP API."""
        return {"base": self.base, "factor": self.factor, "cap": self.cap, "jitter": self.jitter}


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds after the first, second, … failure; the last value repeats. No jitter."""

    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.seconds) <= MAX_DELAYS:
            raise InvalidInput("backoff", f"must hold 1 to {MAX_DELAYS} delays")
        for index, value in enumerate(self.seconds):
            check_seconds(f"backoff[{index}]", value)

    def delay(self, failures: int, spread: float = 0.0) -> float:
        """Seconds to wait after the `failures`-th failure (from 1)."""
        del spread
        return float(self.seconds[min(max(1, failures), len(self.seconds)) - 1])

    def to_builtins(self) -> list[float]:
        """The list of the HTTP API."""
        return list(self.seconds)


Backoff = Exponential | Delays
DEFAULT_BACKOFF: Final = Exponential()


def exponential(base: float = 2.0, factor: float = 2.0, cap: float = 3_600.0, jitter: float = 0.2) -> Exponential:
    """Exponential backoff in seconds: see `Exponential`."""
    return Exponential(base, factor, cap, jitter)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and when a job is tried: `Retry(max_attempts=5, backoff=exponential(…) or [1, 5, 60], give_up_on=(ValueError,))`.

    `give_up_on` are exception classes after which the job is dead at once.
    """

    max_attempts: int = DEFAULT_ATTEMPTS
    backoff: Backoff | list[float] | tuple[float, ...] = DEFAULT_BACKOFF
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        check_integer("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS)
        object.__setattr__(self, "backoff", parse_backoff(self.backoff))
        if not all(map(_is_exception_class, self.give_up_on)):
            raise InvalidInput("give_up_on", "must be a tuple of exception classes")


def _is_exception_class(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def parse_backoff(value: Any) -> Backoff:
    """A backoff from itself, a list of seconds, or the object of the HTTP API."""
    match value:
        case Exponential() | Delays():
            return value
        case list() | tuple():
            return Delays(tuple(value))
        case dict() if set(value) <= {"base", "factor", "cap", "jitter"}:
            return Exponential(**value)
    raise InvalidInput("backoff", "must be a list of seconds or an object of base, factor, cap and jitter")


def encode_backoff(backoff: Backoff) -> str | None:
    """The text a store keeps; None for the default, so that the usual row stays small."""
    return None if backoff == DEFAULT_BACKOFF else json.dumps(backoff.to_builtins())


def decode_backoff(text: str | None) -> Backoff:
    """The inverse of `encode_backoff`."""
    return DEFAULT_BACKOFF if text is None else parse_backoff(json.loads(text))


def retry_delay(backoff: Backoff, failures: int, spread: float, asked: float | None = None) -> int:
    """Microseconds to the next attempt; `asked` (seconds, from `RetryIn`; NaN asks nothing) wins, clamped to a year."""
    seconds = backoff.delay(failures, spread) if asked is None or math.isnan(asked) else min(max(asked, 0.0), MAX_SECONDS)
    return microseconds(seconds)


def loss_delay(losses: int, spread: float) -> int:
    """Microseconds a lost job waits: none after its first loss, then 5 s × 2^(losses - 2) ± 20 %, at most an hour."""
    if losses <= 1:
        return 0
    exact = LOSS_BASE << min(losses - 2, 20)
    return min(LOSS_CAP, round(exact * (1 + LOSS_JITTER * spread)))
