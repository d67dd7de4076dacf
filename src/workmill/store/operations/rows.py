"""Between rows and domain objects. The fields of each tuple here are the columns of its statements, in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from workmill.clock import to_datetime
from workmill.domain.job import Job, Progress
from workmill.domain.outcome import ErrorReport
from workmill.domain.states import State

if TYPE_CHECKING:
    from datetime import datetime


class JobRow(NamedTuple):
    """A job as it is read. Lists select NULL for `payload`, `result`; `traceback` is that of its latest recorded attempt, or NULL."""

    id: str
    queue: str
    type: str
    state: str
    priority: int
    run_at: int
    attempt: int
    lease: int
    losses: int
    snoozes: int
    suspect: int
    aside: str | None
    worker_id: str | None
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    cancel_requested_at: int | None
    expires_at: int | None
    created_at: int
    timeout: float | None
    max_attempts: int
    max_losses: int
    backoff: str | None
    unique_key: str | None
    tags: str | None
    meta: str | None
    webhook: str | None
    traceparent: str | None
    workflow_id: str | None
    node: str | None
    waiting_on: int
    progress: str | None
    error_class: str | None
    error: str | None
    traceback: str | None
    result: str | None
    payload: str | None

    def job(self) -> Job:
        """The job that everybody reads."""
        return Job(
            id=self.id,
            queue=self.queue,
            type=self.type,
            state=State(self.state),
            priority=self.priority,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            losses=self.losses,
            max_losses=self.max_losses,
            lease=self.lease,
            created_at=to_datetime(self.created_at),
            run_at=to_datetime(self.run_at),
            payload=self.payload,
            result=self.result,
            error=self.report(),
            expires_at=moment(self.expires_at),
            timeout=self.timeout,
            backoff=self.backoff,
            unique_key=self.unique_key,
            tags=tuple(json.loads(self.tags)) if self.tags else (),
            meta=self.meta,
            webhook=self.webhook,
            traceparent=self.traceparent,
            workflow_id=self.workflow_id,
            node=self.node,
            waiting_on=self.waiting_on,
            aside=self.aside,
            suspect=bool(self.suspect),
            snoozes=self.snoozes,
            worker_id=self.worker_id,
            progress=decode_progress(self.progress),
            claimed_at=moment(self.claimed_at),
            started_at=moment(self.started_at),
            finished_at=moment(self.finished_at),
            cancel_requested_at=moment(self.cancel_requested_at),
        )

    def report(self) -> ErrorReport | None:
        """The latest error: its class and message are columns of the job, its traceback is in the history."""
        return None if self.error_class is None else ErrorReport(self.error_class, self.error or "", self.traceback or "")


def moment(microseconds: int | None) -> datetime | None:
    """A time, or None."""
    return None if microseconds is None else to_datetime(microseconds)


def encode_progress(progress: Progress) -> str:
    """The text a store keeps; escaped, since nobody has checked what a handler says."""
    return json.dumps({"fraction": progress.fraction, "message": progress.message})


def decode_progress(text: str | None) -> Progress | None:
    """The inverse of `encode_progress`."""
    return None if text is None else Progress(**json.loads(text))


def encode_list(values: tuple[Any, ...]) -> str | None:
    """A JSON array as text, None when it is empty."""
    return json.dumps(values, ensure_ascii=False) if values else None
