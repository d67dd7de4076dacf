"""Deadlines of runs: the executor is told at the deadline, and a handler that does not end then is stuck."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic
from workmill.engine.context import RunningJob, Stop
from workmill.engine.handlers import Kind
from workmill.loops import FOREVER, Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.telemetry import Telemetry

STUCK_AFTER: Final[dict[Kind, float]] = {"thread": 0.25, "loop": 0.25, "isolated": 5.0}
"""Seconds past its deadline that a handler has to end before its outcome goes out without it; an isolated one is killed before."""


class Watchdog(Loop):
    """Looks at the runs that have a deadline, when the next one is due; `give_up` hears of those that are stuck."""

    name = "watchdog"

    def __init__(self, give_up: Callable[[RunningJob], None], telemetry: Telemetry) -> None:
        super().__init__(telemetry)
        self._give_up = give_up
        self._watched: dict[RunningJob, float] = {}
        self._next = FOREVER
        self._starting = threading.Lock()

    def watch(self, run: RunningJob, deadline: float) -> None:
        """Mind this run until it is forgotten. Any thread; most calls cost a comparison."""
        self._watched[run] = deadline
        if deadline < self._next:
            self._next = deadline
            self._ensure_started()
            self.wake()

    def forget(self, run: RunningJob) -> None:
        """The run has ended."""
        self._watched.pop(run, None)

    def run_once(self) -> float:
        """Deal with every deadline that has passed."""
        self._next = FOREVER
        now = monotonic()
        for run, due in self._watched.copy().items():
            if due <= now:
                self._overdue(run, due)
        following = min(self._watched.copy().values(), default=FOREVER)
        self._next = min(self._next, following)
        return max(0.0, self._next - monotonic())

    def _overdue(self, run: RunningJob, due: float) -> None:
        if run.outcome is not None:
            self.forget(run)
        elif due == run.ends_at:
            self._watched[run] = due + STUCK_AFTER[run.handler.kind]
            run.stop(Stop.TIMEOUT)
            run.lane.interrupt(run)
        else:
            self.forget(run)
            self._give_up(run)

    def _ensure_started(self) -> None:
        with self._starting:
            if self._thread is None and not self.stopping:
                self.start()
