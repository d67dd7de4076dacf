"""Hears of other processes' commits soon after they are made: seen by `PRAGMA data_version`."""

from __future__ import annotations

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

    def close(self) -> None:
        self.signs.close()

    def forget(self) -> None:
        self.signs.close()

    def _mistrust(self, *, changed: bool) -> None:
        """Glance from now on when change after change was found by looking alone."""
        if self._heard:
            self._unheard = 0
        elif changed and self._pause >= LOOK_SECONDS:
            self._unheard += 1
            if self._unheard == DEAF_AFTER:
                self.signs = Glances(self._log)
