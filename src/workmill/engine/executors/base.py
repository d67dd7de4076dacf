"""What runs handlers: the Protocol of an executor, what it stands on, and how the end of a handler becomes an outcome.

The life of a run: the exchange thread hands it over (`Executor.start`); the executor takes runs in order and, as soon as fewer than its
concurrency run, asks `Floor.admit`; then it sets `context.current`, enters `Floor.within`, calls `run.handler.call(run.claimed.payload)`,
sets `run.outcome` to what `returned` or `raised` makes of the end, and hands the run back by `Floor.deliver`, exactly once.
A run that was not admitted has been handed back already and is the executor's no longer.
"""

from __future__ import annotations

import os
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from workmill.clock import monotonic
from workmill.domain.errors import ArgumentsMismatch, Fail, InvalidInput, JobCancelled, RetryIn, Snooze
from workmill.domain.limits import SECOND, check_seconds
from workmill.domain.outcome import ErrorReport, Failed, FailureKind, Fence, Outcome, Released, ReleaseReason, Succeeded
from workmill.engine.context import RunningJob, Stop
from workmill.engine.reports import message, report
from workmill.telemetry import DEBUG, Telemetry

if TYPE_CHECKING:
    from workmill.engine.gate import Gate
    from workmill.engine.handlers import Hooks
    from workmill.engine.watchdog import Watchdog


class Executor(Protocol):
    """One way of running handlers, for one pool. Made at the first job of its kind, with the pool's concurrency."""

    def start(self, runs: Sequence[RunningJob]) -> None:
        """Take runs over, in order. Called by the exchange thread alone; does not wait."""

    def recall(self) -> list[RunningJob]:
        """Hand over, in order, what was taken and has not been admitted. Called by the exchange thread alone."""

    def interrupt(self, run: RunningJob) -> None:
        """`run.stopping` has been set: end its handler, as far as that is possible. Any thread; runs that have ended too.

        A `TIMEOUT` comes at the deadline; an executor that can end a handler by force does so then, and shortly after
        any other reason.
        """

    def resize(self, concurrency: int) -> None:
        """Run at most so many at once from now on; what runs goes on. Any thread."""

    def close(self) -> None:
        """Release threads and processes, within a second. Whatever still runs is abandoned: it has been given back."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What an executor stands on; one for a worker."""

    deliver: Callable[[RunningJob], None]
    gate: Gate
    watchdog: Watchdog
    hooks: Hooks
    telemetry: Telemetry

    def admit(self, run: RunningJob) -> bool:
        """Look once more whether the run may start: yes begins it, with its timeout; no hands it back."""
        now = monotonic()
        if now > self.gate.until or now > run.start_by:
            self.deliver(run)
            return False
        run.begin(now)
        if run.ends_at is not None:
            self.watchdog.watch(run, run.ends_at)
        if self.telemetry.hears(DEBUG):
            self.telemetry.emit("job.started", DEBUG, run.claimed)
        return True

    def within(self, run: RunningJob) -> ExitStack:
        """The application's middleware, outermost first, entered."""
        with ExitStack() as stack:
            for around in self.hooks.middleware:
                stack.enter_context(around(run))
            return stack.pop_all()


ExecutorFactory = Callable[[Floor, int], Executor]
"""Makes an executor from what it stands on and its concurrency."""


def returned(run: RunningJob, result: str | None, now: float) -> Outcome:
    """The outcome of a handler that returned. One that comes after its deadline is a timeout, whoever noticed first."""
    claimed, started = run.claimed, run.started
    waited, ran = int((started - run.claimed_at) * SECOND), int((now - started) * SECOND)
    if run.ends_at is not None and now > run.ends_at:
        return timed_out(run, waited, ran)
    return Succeeded(Fence(claimed.id, claimed.lease), result, waited, ran)


def raised(run: RunningJob, error: BaseException, now: float) -> Outcome:
    """The outcome of a handler that raised. Afterwards the error holds no frames."""
    waited, ran = run.times(now)
    try:
        return _judged(run, error, now, waited, ran)
    except BaseException:  # noqa: BLE001 - an error may raise when it is looked at; its run must end all the same
        told = ErrorReport(type.__getattribute__(type(error), "__name__"), "<it raises when it is looked at>", "")
        return Failed(run.fence, FailureKind.ERROR, told, waited, ran)


def _judged(run: RunningJob, error: BaseException, now: float, waited: int, ran: int) -> Outcome:
    told = report(error)
    reason = run.stopping or (Stop.TIMEOUT if run.ends_at is not None and now > run.ends_at else None)
    match error:
        case JobCancelled() | CancelledError() if reason is Stop.TIMEOUT:
            return timed_out(run, waited, ran, told.traceback)
        case JobCancelled() | CancelledError() if reason is not None:
            given_back = ReleaseReason.CANCELLED if reason is Stop.CANCELLED else ReleaseReason.SHUTDOWN
            return Released(run.fence, given_back, waited=waited, ran=ran)
        case Snooze() if _is_delay(error.seconds):
            return Released(run.fence, ReleaseReason.SNOOZE, error.seconds, message(error), waited, ran)
    kind = FailureKind.TIMEOUT if reason is Stop.TIMEOUT else FailureKind.ERROR
    retry_in = error.seconds if isinstance(error, RetryIn) and _is_delay(error.seconds) else None
    return Failed(run.fence, kind, told, waited, ran, retry_in, _is_final(run, error))


_here = [object()]


def here() -> object:
    """This process; another object in one that was forked from it. To ask for the pid instead is a system call for each job."""
    return _here[0]


def end_if_forked(home: object) -> None:
    """End a process that a handler has forked and let come back here: the runs that wait are the worker's, `home`'s, to run."""
    if _here[0] is not home:
        os._exit(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _here.__setitem__(0, object()))


def timed_out(run: RunningJob, waited: int, ran: int, traceback: str = "") -> Failed:
    """The outcome of a run that was over its timeout, told as a `TimeoutError`."""
    told = ErrorReport("TimeoutError", f"ran longer than its timeout of {run.claimed.timeout:g} s", traceback)
    final = issubclass(TimeoutError, run.handler.give_up_on)
    return Failed(run.fence, FailureKind.TIMEOUT, told, waited, ran, final=final)


def _is_final(run: RunningJob, error: BaseException) -> bool:
    if isinstance(error, ArgumentsMismatch):
        return error.final
    return isinstance(error, (Fail, *run.handler.give_up_on))


def _is_delay(seconds: object) -> bool:
    """A signal with a delay that cannot be is an error of the handler like any other."""
    try:
        check_seconds("seconds", seconds)
    except InvalidInput:
        return False
    return True
