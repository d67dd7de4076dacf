"""Whether this worker may start handlers: while its lease is renewed, and it is not draining."""

from __future__ import annotations

import threading
from enum import Flag
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.telemetry import Telemetry

SHUT: Final = float("-inf")


class Closed(Flag):
    """Who has closed the gate; it is open when nobody has."""

    BY_HAND = 1
    BY_ORDER = 2
    STOPPING = 4


class Gate:
    """`until` is all that a start looks at: the time up to which the last renewal counts, or never while draining.

    Counted from the moment the renewal was *sent*, so that this worker stops starting before anybody else may think it dead. `changed`
    is called when it closes and when it opens.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self.until = SHUT
        self.closed = Closed(0)
        self.changed: Callable[[], None] = lambda: None
        self._renewed_until = SHUT
        self._telemetry = telemetry
        self._lock = threading.RLock()  # a signal handler may close the gate while its thread is opening it

    def shut(self, now: float) -> bool:
        """Whether nothing may start."""
        return now > self.until

    def cut_off(self, now: float) -> bool:
        """Whether the last renewal counts no longer."""
        return now > self._renewed_until

    def renew(self, until: float) -> None:
        """The lease is ours until then."""
        with self._lock:
            self._set(self.closed, until)

    def close(self, by: Closed) -> None:
        """Start nothing, and claim nothing, until all who closed have opened again."""
        with self._lock:
            before = self.closed
            self._set(before | by, self._renewed_until)
        if not before:
            self._telemetry.emit("worker.draining", by=str(by.name))
            self.changed()

    def open(self, by: Closed) -> None:
        """Take one's closing back."""
        with self._lock:
            before = self.closed
            self._set(before & ~by, self._renewed_until)
        if before and not self.closed:
            self._telemetry.emit("worker.resumed")
            self.changed()

    def _set(self, closed: Closed, renewed_until: float) -> None:
        self.closed, self._renewed_until = closed, renewed_until
        self.until = SHUT if closed else renewed_until
