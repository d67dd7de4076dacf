"""What became of the runs: counted, told as events, and the dead ones to the application's `on_dead`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from workmill.domain.outcome import Accepted, ErrorReport, Failed, Outcome, Released, Succeeded, Verdict
from workmill.domain.states import State
from workmill.engine.context import RunningJob
from workmill.engine.handlers import Hooks
from workmill.loops import FOREVER, Loop
from workmill.telemetry import ERROR, INFO, WARNING, Telemetry

MILLISECOND: Final = 1_000


@dataclass(slots=True)
class Tally:
    """How runs of this worker have ended, as far as the store has it on record; `lost` are those it refused."""

    succeeded: int = 0
    failed: int = 0
    released: int = 0
    lost: int = 0


class Tidings(Loop):
    """The loop is the thread of `on_dead`; it is started when there is such a hook."""

    name = "on-dead"

    def __init__(self, hooks: Hooks, telemetry: Telemetry) -> None:
        super().__init__(telemetry)
        self.tally = Tally()
        self._hooks = hooks
        self._dead: SimpleQueue[tuple[RunningJob, ErrorReport]] = SimpleQueue()

    def tell(self, runs: Sequence[RunningJob], outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> None:
        """The store has judged these outcomes. Nearly all succeeded, and nearly nobody listens: that way is short."""
        quiet, succeeded = not self.telemetry.hears(INFO), 0
        for run, outcome, verdict in zip(runs, outcomes, verdicts, strict=True):
            if quiet and verdict.__class__ is Accepted and verdict.state is State.SUCCEEDED:
                succeeded += 1
            else:
                self._tell(run, outcome, verdict)
        self.tally.succeeded += succeeded

    def refused(self, run: RunningJob) -> None:
        """An outcome came to nothing: the run was no longer this worker's."""
        self.tally.lost += 1
        self.telemetry.emit("job.refused", WARNING, run.claimed)

    def run_once(self) -> float:
        """Call `on_dead` for every job that has died since."""
        try:
            while True:
                self._mourn(*self._dead.get_nowait())
        except Empty:
            return FOREVER

    def _tell(self, run: RunningJob, outcome: Outcome, verdict: Verdict) -> None:
        if not isinstance(verdict, Accepted):
            self.refused(run)
            return
        ms = outcome.ran / MILLISECOND
        match outcome:
            case Succeeded():
                self.tally.succeeded += 1
                self.telemetry.emit("job.succeeded", INFO, run.claimed, ms=ms)
            case Failed():
                self.tally.failed += 1
                self._tell_failure(run, outcome, verdict.state, ms)
            case Released():
                self.tally.released += 1
                name = "job.cancelled" if verdict.state is State.CANCELLED else "job.released"
                self.telemetry.emit(name, INFO, run.claimed, ms=ms, reason=outcome.reason.value, state=verdict.state.value)

    def _tell_failure(self, run: RunningJob, outcome: Failed, state: State, ms: float) -> None:
        error = {"kind": outcome.kind.value, "error": outcome.error.type, "message": outcome.error.message}
        self.telemetry.emit("job.failed", WARNING, run.claimed, ms=ms, state=state.value, **error)
        if state is not State.DEAD:
            return
        self.telemetry.emit("job.dead", ERROR, run.claimed, error=outcome.error.type)
        if self._hooks.on_dead:
            self._dead.put((run, outcome.error))
            self.wake()

    def _mourn(self, run: RunningJob, error: ErrorReport) -> None:
        for hook in self._hooks.on_dead:
            try:
                hook(run, error)
            except Exception as failure:  # noqa: BLE001 - a hook may raise anything, and the others are called
                self.telemetry.emit("hook.failed", ERROR, run.claimed, hook="on_dead", error=repr(failure))
