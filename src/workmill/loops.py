"""The life of a loop, written once: a thread that takes a turn, waits until the next is due or somebody wakes it, and ends when told."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from queue import Empty, SimpleQueue
from typing import Final

from workmill.clock import sleep
from workmill.telemetry import ERROR, Telemetry

FOREVER: Final = threading.TIMEOUT_MAX
AFTER_AN_ERROR: Final = 1.0
"""Seconds to the next turn after one that raised: a loop outlives every bad turn."""
TELL_INTERVAL: Final = 0.01
"""Seconds between two times that a process tells others. The last of a burst is never dropped, only late by so much."""


class Bell:
    """What a waiting thread listens to. Ringing is safe everywhere, in signal handlers too, and is remembered until somebody waits."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """End the wait that is going on, or the next."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it rang."""
        try:
            self._rings.get(timeout=min(seconds, FOREVER))
        except Empty:
            return False
        return True


class Loop(ABC):
    """A named thread that repeats `run_once`. Tests call `run_once` themselves and start nothing."""

    name: str

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.bell = Bell()
        self.stopping = False
        self._thread: threading.Thread | None = None

    @abstractmethod
    def run_once(self) -> float:
        """Take one turn; returns the seconds to the next when nobody wakes the loop before."""

    def start(self) -> None:
        """Start the thread. A loop runs once in its life."""
        self._thread = threading.Thread(target=self._repeat, name=f"workmill-{self.name}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None  # to be joined, a thread must have begun
            raise

    def wake(self) -> None:
        """Take the next turn at once. Any thread, any signal handler."""
        self.bell.ring()

    def stop(self) -> None:
        """Take no further turn; does not wait for the one under way (see `join`)."""
        self.stopping = True
        self.wake()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread to end; whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def rest(self, seconds: float) -> None:
        """Wait for the next turn."""
        self.bell.wait(seconds)

    def _repeat(self) -> None:
        while not self.stopping:
            self.rest(self._turn())

    def _turn(self) -> float:
        try:
            return self.run_once()
        except Exception as error:  # noqa: BLE001 - whatever a turn raises, the next one must come
            self.telemetry.emit("loop.failed", ERROR, loop=self.name, error=repr(error))
            return AFTER_AN_ERROR


class Teller(Loop):
    """A thread that tells others that something has changed: soon and not too often. What is lost they find by polling."""

    def __init__(self) -> None:
        super().__init__(Telemetry())
        self._due = False

    @abstractmethod
    def send(self) -> None:
        """Tell them now."""

    def tell(self) -> None:
        """Have it told; returns at once."""
        self._due = True
        self.wake()

    def run_once(self) -> float:
        if self._due:
            self._due = False
            self.send()
            sleep(TELL_INTERVAL)
        return FOREVER
