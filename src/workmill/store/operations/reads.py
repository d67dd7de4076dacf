"""Reads: each call is one snapshot on a connection of its own. Implements `store.base.Reading`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from workmill.clock import to_datetime
from workmill.domain.errors import NotFound
from workmill.domain.job import Attempt, History, Job, Page, Selection
from workmill.domain.limits import SECOND, check_integer, check_seconds
from workmill.domain.names import RESERVED
from workmill.domain.payload import check_storable
from workmill.domain.queue import AuditEntry, Queue, QueueStats
from workmill.domain.states import State
from workmill.domain.submission import LATEST
from workmill.domain.worker import Worker, WorkerState
from workmill.store.heads import Ready
from workmill.store.operations import audit, stats
from workmill.store.operations.rows import JobRow, moment
from workmill.store.operations.selection import check_selection, counts, find
from workmill.store.session import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workmill.store.session import Session

MOST_ON_A_PAGE: Final = 1_000
MOST_ASIDE: Final = 10_000
"""Jobs set aside are counted as far as this; all other counts are maintained."""
LONGEST_WINDOW: Final = stats.HOURS_KEPT / SECOND
VIOLATIONS_SHOWN: Final = 100
UNREADABLE: Final = "unreadable_row"
TIMES: Final[dict[str, Any]] = {"created_at": 0, "run_at": 0} | dict.fromkeys(
    ("expires_at", "claimed_at", "started_at", "finished_at", "cancel_requested_at")
)
"""The times of a row, and what is shown instead of one that is none."""


class Reads(Operations):
    """What everybody may look at."""

    def job(self, job_id: str) -> Job:
        check_storable("id", job_id)
        with self._database.read() as session:
            row = session.row("read_job", id=job_id)
        if row is None:
            raise NotFound("job", job_id)
        return _job(row)

    def jobs(self, selection: Selection, *, limit: int = 50, cursor: str | None = None) -> Page:
        check_selection(selection)
        check_integer("limit", limit, 1, MOST_ON_A_PAGE)
        with self._database.read() as session:
            ids, following = find(session, selection, limit, cursor)
            rows = session.each("read_jobs", [(job_id,) for job_id in ids])
        jobs = map(_job, rows)
        return Page(tuple(sorted(jobs, key=lambda job: job.id, reverse=True)), following)

    def endings(self, ids: Sequence[str]) -> dict[str, State]:
        for job_id in ids:
            check_storable("ids", job_id)
        with self._database.read() as session:
            return {job_id: State(state) for job_id, state in session.each("read_endings", [(job_id,) for job_id in ids])}

    def history(self, job_id: str) -> History:
        check_storable("id", job_id)
        with self._database.read() as session:
            run = session.row("read_run", id=job_id)
            rows = session.rows("read_attempts", id=job_id)
        if run is None:
            raise NotFound("job", job_id)
        return History((*map(_attempt, rows), *_latest_run(*run[:-1])), run[-1])

    def counts(self) -> dict[tuple[str, State], int]:
        with self._database.read() as session:
            return counts(session)

    def queues(self) -> list[Queue]:
        with self._database.read() as session:
            return _queues(session)

    def stats(self, window_seconds: float) -> list[QueueStats]:
        check_seconds("window", window_seconds, 1.0, LONGEST_WINDOW)
        with self._database.read() as session:
            return stats.window(session, window_seconds)

    def heads(self, queues: Sequence[str], *, room: int, past: int = 0) -> list[Ready]:
        with self._database.read() as session:
            rows = sorted(session.each("list_claimable", [(queue,) for queue in queues], room=room, past=past))
        return [Ready(queue, job_id, -rank, run_at) for queue, rank, run_at, job_id in rows]

    def aside(self, queue: str, *, limit: int) -> int:
        with self._database.read() as session:
            ((_, jobs),) = session.each("count_aside", [(queue,)], limit=limit)
        return int(jobs)

    def workers(self, *, gone: bool = False) -> list[Worker]:
        with self._database.read() as session:
            return [_worker(*row) for row in session.rows("read_workers", gone=int(gone))]

    def audit(self, *, limit: int = 100) -> list[AuditEntry]:
        check_integer("limit", limit, 1, MOST_ON_A_PAGE)
        with self._database.read() as session:
            return audit.latest(session, limit)

    def invariants(self) -> list[str]:
        with self._database.read() as session:
            found = session.rows("violated_counts")
            found += session.rows("violated_jobs", limit=VIOLATIONS_SHOWN)
            found += session.rows("violated_relations", limit=VIOLATIONS_SHOWN)
        return [violation for (violation,) in found]

    def describe(self) -> Mapping[str, Any]:
        with self._database.read() as session:
            return dict(session.rows("describe"))


def _job(row: tuple[Any, ...]) -> Job:
    """The job of a row; of an odd row what can be shown, marked by its error."""
    read = JobRow(*row)
    try:
        return read.job()
    except (TypeError, ValueError, OverflowError) as problem:
        hidden: dict[str, Any] = {name: instead for name, instead in TIMES.items() if not _is_time(getattr(read, name))}
        return read._replace(tags=None, progress=None, error_class=UNREADABLE, error=str(problem), **hidden).job()


def _is_time(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= LATEST


def _queues(session: Session) -> list[Queue]:
    by_queue: dict[str, dict[State, int]] = defaultdict(dict)
    for queue, state, jobs in session.rows("read_counts"):
        by_queue[queue][State(state)] = jobs
    settings = {name: (bool(paused), limit) for name, paused, limit in session.rows("read_settings")}
    names = sorted(by_queue.keys() | settings.keys())
    queued = [(name,) for name in names if by_queue[name].get(State.QUEUED)]
    aside = dict(session.each("count_aside", queued, limit=MOST_ASIDE))
    oldest = dict(session.each("oldest_waiting", queued))
    served = [json.loads(row[6]) for row in session.rows("read_workers", gone=0)]
    return [
        Queue(
            name=name,
            paused=settings.get(name, (False, None))[0],
            limit=settings.get(name, (False, None))[1],
            counts={state: jobs for state, jobs in by_queue[name].items() if jobs},
            aside=aside.get(name, 0),
            oldest_waiting=moment(oldest.get(name)),
            workers=sum(name in queues or (not queues and not name.startswith(RESERVED)) for queues in served),
        )
        for name in names
    ]


def _attempt(row: tuple[Any, ...]) -> Attempt:
    number, lease, kind, worker_id, worker, started, ended, error_class, message, traceback, following = row
    return Attempt(
        number=number,
        lease=lease,
        kind=kind,
        worker_id=worker_id,
        worker=worker,
        started_at=moment(started),
        ended_at=moment(ended),
        error_class=error_class,
        message=message,
        traceback=traceback,
        next_run_at=moment(following),
    )


def _latest_run(state: str, *run: Any) -> list[Attempt]:
    """The run that the job's own row tells of: the one that runs, or the one that succeeded."""
    attempt, lease, *where_and_when = run
    return [_attempt((attempt, lease, state, *where_and_when, None, None, None, None))] if state in {State.RUNNING, State.SUCCEEDED} else []


def _worker(*row: Any) -> Worker:
    id, name, host, pid, version, state, queues, concurrency, running, lease, joined_at, seen_at = row
    return Worker(
        id=id,
        name=name,
        host=host,
        pid=pid,
        version=version,
        state=WorkerState(state),
        queues=json.loads(queues),
        concurrency=concurrency,
        running=running,
        lease_seconds=lease / SECOND,
        joined_at=to_datetime(joined_at),
        seen_at=to_datetime(seen_at),
    )
