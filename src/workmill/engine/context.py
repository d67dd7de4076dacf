"""The run that a handler is in: `current_job()`, and the object behind it, which is also how the engine knows a run."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from workmill.clock import monotonic
from workmill.domain.errors import JobCancelled
from workmill.domain.job import Progress
from workmill.domain.limits import ERROR_MESSAGE_CHARACTERS, SECOND, check_number
from workmill.domain.outcome import Fence
from workmill.engine.reports import storable

if TYPE_CHECKING:
    from workmill.domain.job import Claimed
    from workmill.domain.outcome import Outcome
    from workmill.engine.handlers import Handler
    from workmill.engine.pools import Lane


class Stop(StrEnum):
    """Why a run should end before its handler returns."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LOST = "lost"


class RunningJob:
    """One run of a job. Handlers use the public part; the attributes under `Engine` are the engine's.

    In a child process an instance is made from the same `Claimed` and has no lane; `said` and `stopping` travel by its executor.
    """

    # Class attributes are the defaults of what most runs never set: making a run costs five stores.
    started: float = 0.0
    ends_at: float | None = None
    stopping: Stop | None = None
    said: Progress | None = None
    heard: Progress | None = None
    outcome: Outcome | None = None
    overdue: Outcome | None = None
    reported: bool = False
    thread: int | None = None
    lane: Lane
    logs: ClassVar = logging.getLogger("workmill.job")

    def __init__(self, claimed: Claimed, handler: Handler, claimed_at: float, start_by: float) -> None:
        self.claimed = claimed
        self.handler = handler
        self.claimed_at = claimed_at
        self.start_by = start_by

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claimed.id

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.claimed.queue

    @property
    def type(self) -> str:
        """Its type, the name of the handler."""
        return self.claimed.type

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.claimed.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts there may be."""
        return self.claimed.max_attempts

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context that the job was submitted with."""
        return self.claimed.traceparent

    @property
    def deadline(self) -> float | None:
        """Seconds left of the timeout, by a clock that never jumps; 0 when it is over, None when there is none."""
        return None if self.ends_at is None else max(0.0, self.ends_at - monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the run should end now: its job was cancelled, timed out or lost, or its worker is shutting down."""
        return self.stopping is not None or (self.ends_at is not None and monotonic() >= self.ends_at)

    def check(self) -> None:
        """Return at once while the run may go on.

        Raises:
            JobCancelled: it should end; let it pass.

        """
        if self.cancelled:
            raise JobCancelled(self.stopping or Stop.TIMEOUT)

    def progress(self, fraction: float | None = None, message: str | None = None) -> None:
        """Say how far the run has come (0 to 1, a short text, or both); shown with the next heartbeat, the latest wins."""
        if fraction is not None:
            fraction = float(check_number("fraction", fraction, 0.0, 1.0))
        self.said = Progress(fraction=fraction, message=message and storable(message, ERROR_MESSAGE_CHARACTERS))

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """The logger `workmill.job`; each of its lines carries the id of this job, its queue, type, attempt and trace."""
        return logging.LoggerAdapter(self.logs, {"job": self.claimed})

    # Engine

    @property
    def fence(self) -> Fence:
        """The token of this run."""
        return Fence(self.claimed.id, self.claimed.lease)

    def begin(self, now: float) -> None:
        """The handler starts now, and its timeout begins."""
        self.started = now
        if self.claimed.timeout is not None:
            self.ends_at = now + self.claimed.timeout

    def stop(self, reason: Stop) -> bool:
        """Ask the run to end, or not to start; the first reason stays, save that a lost run is lost. Whether this was news."""
        if self.stopping is not None and (reason is not Stop.LOST or self.stopping is Stop.LOST):
            return False
        self.stopping = reason
        self.start_by = float("-inf")
        return True

    def times(self, now: float) -> tuple[int, int]:
        """Microseconds from the claim to the start, and from the start to `now`."""
        return int((self.started - self.claimed_at) * SECOND), int((now - self.started) * SECOND)


current: ContextVar[RunningJob] = ContextVar("workmill_job")


def current_job() -> RunningJob:
    """The job whose handler is running in this thread, task or child process.

    Raises:
        LookupError: not inside a handler.

    """
    try:
        return current.get()
    except LookupError:
        raise LookupError("current_job() works inside a running handler only") from None
