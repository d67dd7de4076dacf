"""How much a pool claims beyond its slots: what it gets through in a moment, at the pace it has been measured to have."""

from __future__ import annotations

from math import exp
from typing import Final

HORIZON: Final = 0.05
"""Seconds of work that may wait in a worker."""
MOST: Final = 1_000
"""No exchange claims more for a pool, and no more are held for the sake of pace."""
WINDOW: Final = 0.5
"""Seconds over which the pace is averaged."""


class Pace:
    """Jobs a second, averaged over the time in which there was work. Jobs and seconds are averaged apart: rates would lie high."""

    def __init__(self) -> None:
        self._jobs = 0.0
        self._seconds = 0.0
        self._since = 0.0

    def resume(self, now: float) -> None:
        """Work has come to a pool that had none: the time until now does not count."""
        self._since = now

    def note(self, jobs: int, now: float) -> None:
        """So many jobs have ended since the last note."""
        elapsed = now - self._since
        self._since = now
        keep = exp(-elapsed / WINDOW)
        self._jobs = self._jobs * keep + jobs
        self._seconds = self._seconds * keep + elapsed

    def ahead(self, now: float, exchange_seconds: float) -> int:
        """How many jobs may wait beyond the slots; what ends while an exchange is under way comes on top.

        The time since the last note counts: jobs that do not end make a pool slow before the first of them has ended.
        """
        elapsed = now - self._since
        keep = exp(-elapsed / WINDOW)
        seconds = self._seconds * keep + elapsed
        return int((HORIZON + exchange_seconds) * self._jobs * keep / seconds) if seconds > 0.0 else 0
