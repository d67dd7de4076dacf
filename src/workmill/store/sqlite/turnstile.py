"""A fair turn for writers: SQLite's own wait is a lottery that a busy writer wins, so two locks in a row make a queue of it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import finalize

from workmill import clock
from workmill.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

try:
    import fcntl
except ImportError:  # Windows: between processes, SQLite's own wait has to do
    fcntl = None  # type: ignore[assignment]

FIRST_PAUSE: Final = 0.000_1
LONGEST_PAUSE: Final = 0.002
COURTESY: Final = 1.0
"""Seconds after which a process goes on without a file lock: whoever has it may have been stopped with it."""


class FileLock:
    """A lock between processes, taken by polling: with a gate before it, whoever polls is next all the same.

    It is a courtesy, not a guard: where the system has no such locks, or nobody gives it up, its caller goes on without it.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        self.close = finalize(self, os.close, self._file)

    def acquire(self, patience: float, on_contention: Callable[[], None]) -> None:
        """Wait for the lock, at most `patience` seconds."""
        if self.try_acquire():
            return
        on_contention()
        pause, until = FIRST_PAUSE, clock.monotonic() + patience
        while clock.monotonic() < until:
            clock.sleep(pause)
            if self.try_acquire():
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def try_acquire(self) -> bool:
        """Take the lock if it is free; False when another has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # no locks on this file system
            return True
        return True

    def release(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)


class Turnstile:
    """Pass the gate, wait for the turn, open the gate: whoever has just had a turn must queue behind the one who waits.

    First among the threads of this process, then among the processes that use the file.
    """

    def __init__(self, path: str | None, patience: float, on_contention: Callable[[], None]) -> None:
        self._patience = patience
        self._on_contention = on_contention
        self._gate, self._turn = threading.Lock(), threading.Lock()
        self._files = [FileLock(path + "-gate"), FileLock(path + "-turn")] if path is not None and fcntl is not None else []

    def __enter__(self) -> None:
        self.enter(self._patience)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.leave()

    def enter(self, patience: float) -> None:
        """Wait for the turn.

        Raises:
            StoreUnavailable: other threads of this process have had it for `patience` seconds.

        """
        if not self._gate.acquire(timeout=patience):
            raise StoreUnavailable(f"others of this process have waited for their turn to write for {patience:g} s")
        try:
            held = self._turn.acquire(timeout=patience)
        finally:
            self._gate.release()
        if not held:
            raise StoreUnavailable(f"a write of this process has gone on, or waited for another program that writes, for {patience:g} s")
        if self._files:
            self._queue_up(patience)

    def leave(self) -> None:
        """Give the turn to the next."""
        if self._files:
            self._files[1].release()
        self._turn.release()

    def _queue_up(self, patience: float) -> None:
        gate, turn = self._files
        try:
            gate.acquire(min(patience, COURTESY), self._on_contention)
            turn.acquire(min(patience, COURTESY), self._on_contention)
        except BaseException:  # a signal's handler may raise while this waits: nobody else must wait for what it held
            self.leave()
            raise
        finally:
            gate.release()

    def close(self) -> None:
        """Close the files, which ends this turn's hold on them. Called by whoever has the turn, or before anybody had it."""
        for file in self._files:
            file.close()
        self._files = []
