"""Who wants to hear of changes: told at once after a commit of this process, and by a watcher of those of others."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSE_SECONDS: Final = 0.5
log = logging.getLogger(__name__)


class Watcher(Protocol):
    """A thread that hears of other processes' commits."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Take no further turn; does not wait."""

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come."""

    def close(self) -> None:
        """Let go of what the system lent, once the thread has ended."""

    def forget(self) -> None:
        """Let go of it in the child of a fork, which has no thread, without an effect on the parent."""


class Changes:
    """Tells the listeners. Watchers, made by `watches` with what they shall call, live while somebody listens."""

    def __init__(self, *watches: Callable[[Callable[[], None]], Watcher]) -> None:
        self._watches = watches
        self._watchers: list[Watcher] = []
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked child must: the threads and those who listen are its parent's."""
        self._lock = threading.Lock()
        self._listeners: tuple[tuple[Callable[[], None]], ...] = ()
        for watcher in self._watchers:
            watcher.forget()
        self._watchers.clear()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        listener = (wake,)
        with self._lock:
            if not self._listeners:
                for watch in self._watches:
                    self._watchers.append(watch(self.tell))
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
        """Nobody listens any more; wait for the thread to end, but not for ever: what it waits for may hang."""
        with self._lock:
            self._listeners = ()
            for watcher in self._watchers:
                watcher.stop()
                if watcher.join(CLOSE_SECONDS):
                    watcher.close()
            self._watchers.clear()

    def _unsubscribe(self, listener: tuple[Callable[[], None]]) -> None:
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not listener)
            for watcher in [watcher for watcher in self._watchers if watcher.join(0)]:
                watcher.close()
                self._watchers.remove(watcher)
            if not self._listeners:
                for watcher in self._watchers:
                    watcher.stop()  # not joined: it may be this very thread
