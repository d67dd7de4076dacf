"""A job as it is submitted, as a worker holds it, and as everybody reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from workmill.domain.limits import DEFAULT_ATTEMPTS, DEFAULT_LOSSES
from workmill.domain.outcome import ErrorReport, Fence

if TYPE_CHECKING:
    from workmill.domain.states import State


class NewJob(NamedTuple):
    """A submission whose every field has been checked. Built by `workmill.domain.submission.new_job`, nowhere else.

    Times: `delay` counts in microseconds from the store's clock; `run_at` and `expires_at` are microseconds since the
    epoch; `timeout` is seconds for one run. At most one of `delay` and `run_at`, of `expires_in` and `expires_at` is set.
    """

    id: str
    queue: str
    type: str
    payload: str
    priority: int = 0
    delay: int | None = None
    run_at: int | None = None
    expires_in: int | None = None
    expires_at: int | None = None
    timeout: float | None = None
    max_attempts: int = DEFAULT_ATTEMPTS
    max_losses: int = DEFAULT_LOSSES
    backoff: str | None = None
    unique_key: str | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    webhook: str | None = None
    traceparent: str | None = None


class Receipt(NamedTuple):
    """The answer to one submission: the job that was made, or the live one that already held the unique key."""

    id: str
    state: State
    queue: str
    type: str
    created: bool


class Claimed(NamedTuple):
    """One run, as handed to a worker. The fields in the order the claim statement returns them."""

    id: str
    lease: int
    queue: str
    type: str
    payload: str
    attempt: int
    max_attempts: int
    timeout: float | None
    expires_in: int | None
    """Microseconds from the claim to the deadline for starting, or None."""
    traceparent: str | None
    suspect: int

    @property
    def fence(self) -> Fence:
        """The token that every write of this run must carry."""
        return Fence(self.id, self.lease)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a running job has come, as its handler said."""

    fraction: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything about a job, read from the store in one snapshot. `payload`, `result`, `meta` are exact JSON text.

    In lists `payload` and `result` are None: they are loaded for a single job only.
    """

    id: str
    queue: str
    type: str
    state: State
    priority: int
    attempt: int
    max_attempts: int
    losses: int
    max_losses: int
    lease: int
    created_at: datetime
    run_at: datetime
    payload: str | None = None
    result: str | None = None
    error: ErrorReport | None = None
    expires_at: datetime | None = None
    timeout: float | None = None
    backoff: str | None = None
    unique_key: str | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    webhook: str | None = None
    traceparent: str | None = None
    workflow_id: str | None = None
    node: str | None = None
    waiting_on: int = 0
    aside: str | None = None
    suspect: bool = False
    snoozes: int = 0
    worker_id: str | None = None
    progress: Progress | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel_requested_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a job: history for those that did not succeed, made from the job's own row for the current or successful one."""

    number: int
    lease: int
    kind: str
    worker_id: str | None = None
    worker: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error_class: str | None = None
    message: str | None = None
    traceback: str | None = None
    next_run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The attempts of a job, oldest first; `omitted` older ones were dropped beyond 1,000."""

    attempts: tuple[Attempt, ...]
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which jobs an operator means: ids, or everything that matches all the filters that are set (no filter: every job).

    Jobs in queues named `workmill.*` match only when their queue or their ids are named.
    """

    ids: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    queue: str | None = None
    type: str | None = None
    tag: str | None = None
    unique_key: str | None = None
    error_class: str | None = None
    worker_id: str | None = None
    trace_id: str | None = None
    created_after: int | None = None
    created_before: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of jobs, newest first. `next` is the cursor to go on with; when the time was up it is set with few or no jobs."""

    jobs: tuple[Job, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Bulk:
    """What an action did: how many jobs it changed, and how many it left and why (reason → count)."""

    done: int
    skipped: dict[str, int] = field(default_factory=dict)
    next: str | None = None
