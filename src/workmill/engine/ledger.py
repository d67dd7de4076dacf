"""What a worker holds: which runs are its own, which have ended and wait for the store's word, which slots are lost.

Only the exchange thread writes here. Others read `holding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workmill.domain.limits import SECOND
from workmill.domain.outcome import Fence, Outcome, Released, ReleaseReason, Verdict
from workmill.engine.context import RunningJob, Stop
from workmill.engine.pools import Pool, by_pool
from workmill.telemetry import WARNING

if TYPE_CHECKING:
    from workmill.engine.tidings import Tidings
    from workmill.engine.watchdog import Watchdog


class Ledger:
    """`ending` and `outcomes`, side by side, and `strays`, of types unknown here, go to the store with the next exchange.

    `unstarted` came back without having begun.
    """

    def __init__(self, watchdog: Watchdog, tidings: Tidings) -> None:
        self.ending: list[RunningJob] = []
        self.outcomes: list[Outcome] = []
        self.strays: list[Released] = []
        self.unstarted: list[RunningJob] = []
        self.held: set[RunningJob] = set()
        self.stuck: set[RunningJob] = set()
        self._watchdog = watchdog
        self._tidings = tidings

    def holding(self) -> list[RunningJob]:
        """Every run that is this worker's: running, waiting for a slot, or ended and not committed. Any thread."""
        return [run for run in self.held.copy() if run.stopping is not Stop.LOST]

    def fences(self) -> list[Fence]:
        """The tokens of everything that is this worker's."""
        return [run.fence for run in self.holding()] + [stray.fence for stray in self.strays]

    def take(self, arrived: Iterable[RunningJob]) -> None:
        """Take in runs that executors and watchdog delivered. Every instruction in this loop is paid by every job."""
        ending, outcomes = self.ending, self.outcomes
        for run in arrived:
            outcome = run.outcome
            if outcome is not None and run.stopping is None and not run.reported:
                run.reported = True
                if run.ends_at is not None:
                    self._watchdog.forget(run)
                ending.append(run)
                outcomes.append(outcome)
            else:
                self._take_odd(run, outcome)

    def settle(self, verdicts: Sequence[Verdict]) -> dict[Pool, int]:
        """The store has committed what is in `outcomes`: slots are free, save those of stuck handlers. How many in each pool."""
        runs, outcomes, self.ending, self.outcomes = self.ending, self.outcomes, [], []
        self.held.difference_update(runs)
        for run in runs:
            run.lane.out -= 1
        for run in self.stuck.intersection(runs):
            run.lane.out += 1
        self._tidings.tell(runs, outcomes, verdicts)
        return by_pool(runs)

    def freeing(self) -> list[RunningJob]:
        """The runs whose slots the next exchange frees."""
        return [run for run in self.ending if run not in self.stuck] if self.stuck else self.ending

    def release(self, run: RunningJob, reason: ReleaseReason, now: float) -> None:
        """Give back a run that has not begun."""
        run.lane.out += 1
        run.outcome = Released(run.fence, reason, detail="not started", waited=int((now - run.claimed_at) * SECOND))
        self._report(run, run.outcome)

    def drop(self, run: RunningJob) -> None:
        """A run is over that is not ours any more."""
        self.held.discard(run)
        self._tidings.refused(run)

    def forsake(self) -> None:
        """The store does not know this worker any more: all that it held is lost, what runs is told to stop."""
        self.ending, self.outcomes, self.strays, ended = [], [], [], self.ending
        for run in self.held.copy():
            if run.stop(Stop.LOST) and run.started and run.outcome is None:
                run.lane.interrupt(run)
        for run in ended:
            if run not in self.stuck:
                run.lane.out -= 1
            self.drop(run)

    def _take_odd(self, run: RunningJob, outcome: Outcome | None) -> None:
        """A run that came back unstarted, that was told to stop, or that is or was stuck."""
        if run.reported:
            self._take_late(run)
        elif run.stopping is Stop.LOST and run.started:
            self._take_lost(run, outcome)
        elif outcome is not None:
            self._report(run, outcome)
        elif run.overdue is not None:
            self.stuck.add(run)
            self._tidings.telemetry.emit("job.stuck", WARNING, run.claimed)
            self._report(run, run.overdue)
        else:
            run.lane.out -= 1
            self.unstarted.append(run)

    def _report(self, run: RunningJob, outcome: Outcome) -> None:
        run.reported = True
        self._watchdog.forget(run)
        self.ending.append(run)
        self.outcomes.append(outcome)

    def _take_late(self, run: RunningJob) -> None:
        """A handler that was stuck has returned: its slot is free again, what it says is not heard."""
        if run in self.stuck and run.outcome is not None:
            self.stuck.discard(run)
            self._tidings.telemetry.emit("job.unstuck", WARNING, run.claimed)
            if run not in self.held:
                run.lane.out -= 1

    def _take_lost(self, run: RunningJob, outcome: Outcome | None) -> None:
        """The handler of a run that is somebody else's by now has returned, or is stuck (then its slot stays lost)."""
        if outcome is not None:
            self._watchdog.forget(run)
            run.lane.out -= 1
            self.drop(run)
