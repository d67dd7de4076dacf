"""The JSON of the read commands. Names are those of the HTTP API; durations are seconds, times ISO 8601 with an offset."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from workmill.cli.wording import command_of, iso, say_stored
from workmill.domain.retry import decode_backoff

if TYPE_CHECKING:
    from datetime import datetime

    from workmill.domain.job import Attempt, Bulk, History, Job, Receipt
    from workmill.domain.outcome import ErrorReport
    from workmill.domain.queue import AuditEntry, Distribution, Queue, QueueStats
    from workmill.domain.worker import Worker


def say_json(value: Any) -> None:
    """Print one JSON value. Stored JSON inside it keeps its numbers, keys and their order; nothing in it can steer a terminal."""
    say_stored(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def raw(text: str | None) -> msgspec.Raw | None:
    """Stored JSON text as it is."""
    return None if text is None else msgspec.Raw(text.encode())


def job_shape(job: Job) -> dict[str, Any]:
    """A job of a list: everything but payload and result."""
    return {
        "id": job.id,
        "queue": job.queue,
        "type": job.type,
        "state": job.state,
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "losses": job.losses,
        "max_losses": job.max_losses,
        "lease": job.lease,
        "snoozes": job.snoozes,
        "aside": job.aside,
        "suspect": job.suspect,
        "worker_id": job.worker_id,
        "created_at": iso(job.created_at),
        "run_at": iso(job.run_at),
        "expires_at": _iso(job.expires_at),
        "claimed_at": _iso(job.claimed_at),
        "started_at": _iso(job.started_at),
        "finished_at": _iso(job.finished_at),
        "cancel_requested_at": _iso(job.cancel_requested_at),
        "timeout": job.timeout,
        "backoff": decode_backoff(job.backoff).to_builtins(),
        "unique_key": job.unique_key,
        "tags": job.tags,
        "meta": raw(job.meta),
        "traceparent": job.traceparent,
        "progress": None if job.progress is None else {"fraction": job.progress.fraction, "message": job.progress.message},
        "error": _error_shape(job.error),
    }


def whole_job_shape(job: Job, history: History) -> dict[str, Any]:
    """One job with payload, result and attempts."""
    return {
        **job_shape(job),
        "payload": raw(job.payload),
        "result": raw(job.result),
        "attempts": [attempt_shape(attempt) for attempt in history.attempts],
        "omitted": history.omitted,
    }


def attempt_shape(attempt: Attempt) -> dict[str, Any]:
    """One run of a job."""
    return {
        "number": attempt.number,
        "lease": attempt.lease,
        "worker": attempt.worker,
        "worker_id": attempt.worker_id,
        "started_at": _iso(attempt.started_at),
        "ended_at": _iso(attempt.ended_at),
        "kind": attempt.kind,
        "class": attempt.error_class,
        "message": attempt.message,
        "traceback": attempt.traceback,
        "next_run_at": _iso(attempt.next_run_at),
    }


def receipt_shape(receipt: Receipt) -> dict[str, Any]:
    """The answer to a submission."""
    return {
        "id": receipt.id,
        "state": receipt.state,
        "queue": receipt.queue,
        "type": receipt.type,
        "created": receipt.created,
    }


def bulk_shape(action: str, bulk: Bulk, *, dry_run: bool = False) -> dict[str, Any]:
    """What an action did or, in a dry run, would look at."""
    return {"action": action, "dry_run": dry_run, "done": bulk.done, "skipped": bulk.skipped}


def queue_shape(queue: Queue, stats: QueueStats | None) -> dict[str, Any]:
    """A queue, its counts and its figures."""
    return {
        "name": queue.name,
        "paused": queue.paused,
        "concurrency_limit": queue.limit,
        "counts": dict(queue.counts),
        "aside": queue.aside,
        "oldest_waiting": _iso(queue.oldest_waiting),
        "workers": queue.workers,
        "stats": None if stats is None else stats_shape(stats),
    }


def stats_shape(stats: QueueStats) -> dict[str, Any]:
    """A queue's figures in a window, durations in seconds."""
    return {
        "window": stats.window_seconds,
        "succeeded": stats.succeeded,
        "failed": stats.failed,
        "dead": stats.dead,
        "per_second": stats.per_second,
        "error_rate": stats.error_rate,
        "wait": _distribution_shape(stats.wait),
        "run": _distribution_shape(stats.run),
    }


def worker_shape(worker: Worker) -> dict[str, Any]:
    """A worker process."""
    return {**asdict(worker), "queues": dict(worker.queues), "joined_at": iso(worker.joined_at), "seen_at": iso(worker.seen_at)}


def audit_shape(entry: AuditEntry) -> dict[str, Any]:
    """One line of the audit, with the action by the name of its command."""
    return {**asdict(entry), "at": iso(entry.at), "action": command_of(entry.action), "detail": raw(entry.detail)}


def _distribution_shape(distribution: Distribution) -> dict[str, Any]:
    return asdict(distribution)


def _error_shape(error: ErrorReport | None) -> dict[str, Any] | None:
    return None if error is None else {"class": error.type, "message": error.message, "traceback": error.traceback}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
