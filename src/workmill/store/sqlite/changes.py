"""Wake-ups: at once after a commit of this process, and soon after one of another, seen by `PRAGMA data_version`."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from workmill import clock
from workmill.loops import Loop
from workmill.store.sqlite.signs import Glances, signs_of
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_LOOK: Final = 0.003
"""Seconds to the next look after a sign, and the least between two: the log is written before the commit can be seen."""
LAST_LOOK: Final = 0.1
"""Each further look comes after twice the time, up to this."""
LOOK_SECONDS: Final = 1.0
"""How often to look without a sign: a commit may become visible long after it was written."""
DEAF_AFTER: Final = 3
"""Changes in a row without a sign after which the kernel is not trusted to tell (a file system may not)."""
log = logging.getLogger(__name__)


class Watcher(Loop):
    """Looks whether others have committed: a few times after each sign of a write, and hardly while all is quiet."""

    name = "changes"

    def __init__(self, path: str, version: Callable[[], object], on_change: Callable[[], None]) -> None:
        super().__init__(Telemetry())
        self._log = f"{path}-wal"
        self.signs = signs_of(self._log)
        self._version = version
        self._on_change = on_change
        self._seen: object = None
        self._heard = True
        self._unheard = 0
        self._pause = 0.0

    def run_once(self) -> float:
        version = self._version()
        changed, self._seen = version != self._seen, version
        self._mistrust(changed=changed)
        if changed:
            self._on_change()
        self._pause = FIRST_LOOK if self._heard else self._pause * 2
        if self._pause > LAST_LOOK:
            self._pause = LOOK_SECONDS
        return self._pause

    def rest(self, seconds: float) -> None:
        until = clock.monotonic() + FIRST_LOOK
        self._heard = self.signs.wait(seconds)
        early = until - clock.monotonic()
        if self._heard and early > 0:
            self.bell.wait(early)

    def wake(self) -> None:
        super().wake()
        self.signs.interrupt()

    def _mistrust(self, *, changed: bool) -> None:
        """Glance from now on when change after change was found by looking alone."""
        if self._heard:
            self._unheard = 0
        elif changed and self._pause >= LOOK_SECONDS:
            self._unheard += 1
            if self._unheard == DEAF_AFTER:
                self.signs = Glances(self._log)


class Changes:
    """Who wants to hear of changes. The thread that looks for other processes' lives while somebody listens.

    `version` tells one state of the file at `path` from another; without a path no other process has it.
    """

    def __init__(self, path: str | None, version: Callable[[], object]) -> None:
        self._path = path
        self._version = version
        self._watchers: list[Watcher] = []
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked child must: the threads and those who listen are its parent's."""
        self._lock = threading.Lock()
        self._listeners: tuple[tuple[Callable[[], None]], ...] = ()
        for watcher in self._watchers:
            watcher.signs.close()
        self._watchers.clear()

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
                watcher.signs.close()
            self._watchers.clear()

    def _unsubscribe(self, listener: tuple[Callable[[], None]]) -> None:
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not listener)
            self._watchers = [watcher for watcher in self._watchers if not watcher.join(0)]
            if not self._listeners:
                for watcher in self._watchers:
                    watcher.stop()  # not joined: it may be this very thread
