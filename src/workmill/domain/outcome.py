"""How a run ends, as values: three outcomes, and the verdict a store gives on each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

from workmill.domain.states import State


class Fence(NamedTuple):
    """The token of one run. With the worker's id it must match every write to a running job."""

    id: str
    lease: int


class FailureKind(StrEnum):
    """What went wrong in an attempt that is charged."""

    ERROR = "error"
    TIMEOUT = "timeout"


class ReleaseReason(StrEnum):
    """Why a run was given back; no attempt is charged."""

    SHUTDOWN = "shutdown"
    SNOOZE = "snooze"
    UNKNOWN_TYPE = "unknown_type"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    EXPIRED = "expired"
    UNANSWERED = "unanswered"
    """The store's own: the answer to its claim never reached the worker."""
    UNSTARTED = "unstarted"
    """It found no slot for a while: another worker may have one."""


class ErrorReport(NamedTuple):
    """An error made storable: class name, message and traceback as text, escaped and truncated."""

    type: str
    message: str
    traceback: str = ""


class Succeeded(NamedTuple):
    """The handler returned. `result` is JSON text or None; `waited` and `ran` are microseconds since claim and start."""

    fence: Fence
    result: str | None
    waited: int
    ran: int


class Failed(NamedTuple):
    """The handler raised or timed out. `retry_in` (seconds) wins over the backoff; `final` means no further attempt."""

    fence: Fence
    kind: FailureKind
    error: ErrorReport
    waited: int
    ran: int
    retry_in: float | None = None
    final: bool = False


class Released(NamedTuple):
    """The run is given back, not charged: due again after `delay` seconds. `detail` is a handler's own words."""

    fence: Fence
    reason: ReleaseReason
    delay: float = 0.0
    detail: str = ""
    waited: int = 0
    ran: int = 0


Outcome = Succeeded | Failed | Released


class Accepted(NamedTuple):
    """The outcome was recorded (or is a repeat of the one on record); the job is now in `state`."""

    fence: Fence
    state: State


class LeaseLost(NamedTuple):
    """The run was no longer this worker's: nothing of the outcome took effect."""

    fence: Fence


Verdict = Accepted | LeaseLost

WORKER_LOST: Final = "worker_lost"
"""The class of error of a job that its workers' deaths ended."""

AttemptKind = Literal["error", "timeout", "worker_lost", "released", "succeeded", "running"]
