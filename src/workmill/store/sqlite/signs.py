"""Signs that somebody has written to a file: told by the kernel where it tells (inotify, on Linux), seen by glances elsewhere."""

from __future__ import annotations

import ctypes
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from weakref import finalize

from workmill import clock
from workmill.loops import Bell

GLANCE_SECONDS: Final = 0.035
READABLE: Final = 4096
"""Bytes of news read at once; what is the same as the news before it is not repeated, so there are never many."""
# <sys/inotify.h>
IN_MODIFY: Final = 0x2
IN_IGNORED: Final = 0x8000
NEWS: Final = ctypes.sizeof(ctypes.c_uint32) * 4
"""Bytes of one piece of news about a watched file: watch, mask, cookie, length of a name (none)."""


class Signs(Protocol):
    """What a watcher waits for."""

    def wait(self, seconds: float) -> bool:
        """Wait for a write after the last wait, or for `interrupt`, so long at most; whether there was a write."""

    def interrupt(self) -> None:
        """End the wait that is going on, or the next. Any thread."""

    def close(self) -> None:
        """Let go of what the system lent."""


def signs_of(path: str) -> Signs:
    """The best that this system has: where the kernel tells nothing, or nothing more, there are glances."""
    if sys.platform == "linux":
        with suppress(OSError):
            return Told(path)
    return Glances(path)


class Told:
    """The kernel tells of writes by this machine's processes; a sleeping process is left asleep until then."""

    def __init__(self, path: str) -> None:
        self._path = os.fsencode(path)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._news = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._news < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._interrupted = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        for file in (self._news, self._interrupted):
            self._poll.register(file, select.POLLIN)
        self._watching = False
        self._close = finalize(self, _close_both, self._news, self._interrupted)
        self._close.atexit = False  # the thread that waits may still do so

    def wait(self, seconds: float) -> bool:
        if not self._watching:
            self._watching = self._libc.inotify_add_watch(self._news, self._path, IN_MODIFY) >= 0
            if self._watching:  # what was written before nobody has told
                return True
        ready = [file for file, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._interrupted in ready:
            os.eventfd_read(self._interrupted)
        return self._news in ready and self._read()

    def interrupt(self) -> None:
        os.eventfd_write(self._interrupted, 1)

    def close(self) -> None:
        self._close()

    def _read(self) -> bool:
        """Take in the news; a file that is gone is looked for again."""
        news = os.read(self._news, READABLE)
        masks = [int.from_bytes(news[at + 4 : at + 8], sys.byteorder) for at in range(0, len(news), NEWS)]
        self._watching = not any(mask & IN_IGNORED for mask in masks)
        return True


def _close_both(news: int, interrupted: int) -> None:
    os.close(news)
    os.close(interrupted)


class Glances:
    """A look at the file's times and size every now and then, which costs a quarter of a look into the database."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._bell = Bell()
        self._seen: object = None

    def wait(self, seconds: float) -> bool:
        until = clock.monotonic() + seconds
        while not self._changed():
            left = until - clock.monotonic()
            if left <= 0 or self._bell.wait(min(GLANCE_SECONDS, left)):
                return False
        return True

    def interrupt(self) -> None:
        self._bell.ring()

    def close(self) -> None:
        """Nothing was lent."""

    def _changed(self) -> bool:
        """Whether somebody has written a moment (the clock of files ticks coarsely) after the last glance."""
        try:
            status = self._path.stat()
        except OSError:
            glance = None
        else:
            glance = status.st_mtime_ns, status.st_size, status.st_ino
        changed, self._seen = glance != self._seen, glance
        return changed


__all__ = ["GLANCE_SECONDS", "Glances", "Signs", "Told", "signs_of"]
