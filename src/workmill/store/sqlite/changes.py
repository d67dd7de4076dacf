"""Wake-ups: at once after a commit of this process, and soon after one of another, seen by `PRAGMA data_version`."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from workmill import clock
from workmill.loops import Loop
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

ACTIVE_SECONDS: Final = 0.005
IDLE_SECONDS: Final = 0.035
ACTIVE_FOR: Final = 1.0
"""How long after a change to look often: a busy store is answered sooner, and an idle process sleeps."""
log = logging.getLogger(__name__)


class Watcher(Loop):
    """Looks whether the file has changed since the last look."""

    name = "changes"

    def __init__(self, version: Callable[[], object], on_change: Callable[[], None]) -> None:
        super().__init__(Telemetry())
        self._version = version
        self._on_change = on_change
        self._seen: object = None
        self._active_until = 0.0

    def run_once(self) -> float:
        version = self._version()
        now = clock.monotonic()
        if version != self._seen:
            self._seen = version
            self._active_until = now + ACTIVE_FOR
            self._on_change()
        return ACTIVE_SECONDS if now < self._active_until else IDLE_SECONDS


class Changes:
    """Who wants to hear of changes. The thread that looks for other processes' lives while somebody listens.

    `version` tells one state of the file from another; None: no other process has it.
    """

    def __init__(self, version: Callable[[], object] | None) -> None:
        self._version = version
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked child must: the threads and those who listen are its parent's."""
        self._lock = threading.Lock()
        self._listeners: tuple[tuple[Callable[[], None]], ...] = ()
        self._watchers: list[Watcher] = []

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        listener = (wake,)
        with self._lock:
            if not self._listeners and self._version is not None:
                self._watchers.append(Watcher(self._version, self.tell))
                self._watchers[-1].start()
            self._listeners = (*self._listeners, listener)
        return lambda: self._unsubscribe(listener)

    def tell(self) -> None:
        """Wake everybody; what a listener raises is its own affair."""
        for (wake,) in self._listeners:
            try:
                wake()
            except Exception:
                log.exception("a listener failed")

    def close(self) -> None:
        """Nobody listens any more; wait for the thread to end."""
        with self._lock:
            self._listeners = ()
            for watcher in self._watchers:
                watcher.stop()
                watcher.join()
            self._watchers.clear()

    def _unsubscribe(self, listener: tuple[Callable[[], None]]) -> None:
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not listener)
            self._watchers = [watcher for watcher in self._watchers if not watcher.join(0)]
            if not self._listeners:
                for watcher in self._watchers:
                    watcher.stop()  # not joined: it may be this very thread
