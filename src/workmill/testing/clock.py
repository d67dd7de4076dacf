"""A clock that stands still until it is moved."""

from __future__ import annotations

import threading

from workmill.domain.limits import microseconds

START = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""


class MovableClock:
    """The store's clock under a test's control: microseconds since the epoch, the same until `advance`."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._lock = threading.Lock()

    def __call__(self) -> int:
        return self._now

    def advance(self, seconds: float) -> int:
        """Move the clock (back, when negative) and return the new time."""
        with self._lock:
            self._now += microseconds(seconds)
            return self._now
