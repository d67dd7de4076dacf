"""Wake-ups: at once after a commit of this process, and soon after one of another, seen by `PRAGMA data_version`."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workmill import clock
from workmill.loops import Loop
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

ACTIVE_SECONDS: Final = 0.005
IDLE_SECONDS: Final = 0.035
ACTIVE_FOR: Final = 0.1
"""How long after a sign of change to look often: a busy store is answered sooner, and an idle one is not kept awake by its upkeep."""
LOOK_SECONDS: Final = 1.0
"""How often to look though the log's file shows no sign: a commit may become visible long after it was written."""
log = logging.getLogger(__name__)


class Watcher(Loop):
    """Looks whether others have committed. While all is quiet it only glances at the log's file, which costs a quarter of a look."""

    name = "changes"

    def __init__(self, path: str, version: Callable[[], object], on_change: Callable[[], None]) -> None:
        super().__init__(Telemetry())
        self._log = Path(f"{path}-wal")
        self._version = version
        self._on_change = on_change
        self._seen: object = None
        self._glanced: object = None
        self._look_at = self._active_until = self._watch_until = 0.0

    def run_once(self) -> float:
        now = clock.monotonic()
        glance = self._glance()
        if glance == self._glanced and self._watch_until <= now < self._look_at:
            return IDLE_SECONDS
        version = self._version()
        if (version, glance) != (self._seen, self._glanced):
            self._active_until, self._watch_until = now + ACTIVE_FOR, now + LOOK_SECONDS
        changed, self._seen, self._glanced, self._look_at = version != self._seen, version, glance, now + LOOK_SECONDS
        if changed:
            self._on_change()
        return ACTIVE_SECONDS if now < self._active_until else IDLE_SECONDS

    def _glance(self) -> object:
        """A value that is another one once somebody has written to the log a moment (the clock of files ticks coarsely) after this one."""
        try:
            status = self._log.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


class Changes:
    """Who wants to hear of changes. The thread that looks for other processes' lives while somebody listens.

    `version` tells one state of the file at `path` from another; without a path no other process has it.
    """

    def __init__(self, path: str | None, version: Callable[[], object]) -> None:
        self._path = path
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
            if not self._listeners and self._path is not None:
                self._watchers.append(Watcher(self._path, self._version, self.tell))
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
