"""What operators do, from Python: `mill.jobs`, `mill.queues`, `mill.workers`. Every change leaves a line in the audit."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final, TypedDict, Unpack

from workmill.client.handle import Job
from workmill.client.link import Link
from workmill.domain.errors import Conflict, InvalidInput
from workmill.domain.job import Attempt, Bulk, Selection
from workmill.domain.limits import check_integer, check_seconds
from workmill.domain.names import check_name
from workmill.domain.queue import Queue, QueueStats
from workmill.domain.states import LIVE, State
from workmill.domain.submission import check_time
from workmill.domain.worker import Worker

BATCH: Final = 1_000
MAX_LIMIT: Final = 1_000_000
MAX_CONCURRENCY: Final = 10_000
_EXPLAINED: Final = {
    "ended": "has ended",
    "not_revivable": "has not ended, or has succeeded",
    "not_discardable": "has not ended, or has succeeded",
    "not_waiting": "is not waiting for its time",
    "key_taken": "cannot come back: another live job has its unique key",
}


class Filters(TypedDict, total=False):
    """Which jobs are meant: those that match all the filters given. Times must have an offset."""

    state: State | str | Collection[State | str]
    queue: str
    type: str
    tag: str
    unique_key: str
    error_class: str
    worker_id: str
    trace_id: str
    created_after: datetime
    created_before: datetime


class Found(list[Job[Any]]):
    """A page of jobs, newest first; `next` is the cursor to go on with, None when there are no more."""

    next: str | None = None


class Jobs:
    """`mill.jobs`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def get(self, job_id: str) -> Job[Any]:
        """The whole job.

        Raises:
            NotFound: there is none of that id.

        """
        return Job.of(self._link, self._link.store.job(job_id))

    def find(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[Filters]) -> Found:
        """A page of the jobs that match, newest first. A rare filter may find nothing at first and give a `next` to go on with."""
        page = self._link.store.jobs(_selection(filters), limit=check_integer("limit", limit, 1, BATCH), cursor=cursor)
        found = Found(Job.of(self._link, record, whole=False) for record in page.jobs)
        found.next = page.next
        return found

    def history(self, job: str | Job[Any]) -> tuple[Attempt, ...]:
        """The attempts, oldest first; the current or successful one comes last."""
        return self._link.store.history(_id(job)).attempts

    def retry(self, job: str | Job[Any]) -> Job[Any]:
        """Queue a dead, cancelled, expired or skipped job again, with its counters anew.

        Raises:
            NotFound: there is none of that id.
            Conflict: it is in another state, or its unique key has been taken.

        """
        return self._one(job, self._link.store.revive)

    def cancel(self, job: str | Job[Any]) -> Job[Any]:
        """End a waiting job at once; ask a running one to stop.

        Raises:
            NotFound: there is none of that id.
            Conflict: it has ended.

        """
        return self._one(job, self._link.store.cancel)

    def discard(self, job: str | Job[Any]) -> None:
        """Remove a dead, cancelled, expired or skipped job.

        Raises:
            NotFound: there is none of that id.
            Conflict: it is in another state.

        """
        self._must(_id(job), self._link.store.discard)

    def reschedule(self, job: str | Job[Any], run_at: datetime | None = None) -> Job[Any]:
        """Move a scheduled, retrying or queued job to another time; without one, to now.

        Raises:
            NotFound: there is none of that id.
            Conflict: it does not wait for its time.

        """
        moment = None if run_at is None else check_time("run_at", run_at)
        return self._one(job, partial(self._link.store.reschedule, run_at=moment))

    def retry_all(self, **filters: Unpack[Filters]) -> Bulk:
        """`retry` for every job that matches, dead ones when no state is given. Returns how many were changed, and skipped and why."""
        return self._all(self._link.store.revive, _selection(filters, State.DEAD))

    def cancel_all(self, **filters: Unpack[Filters]) -> Bulk:
        """`cancel` for every live job that matches."""
        return self._all(self._link.store.cancel, _selection(filters, *LIVE))

    def discard_all(self, **filters: Unpack[Filters]) -> Bulk:
        """`discard` for every job that matches, dead ones when no state is given."""
        return self._all(self._link.store.discard, _selection(filters, State.DEAD))

    def _one(self, job: str | Job[Any], verb: Callable[..., Bulk]) -> Job[Any]:
        self._must(_id(job), verb)
        return job.refresh() if isinstance(job, Job) else self.get(job)

    def _must(self, job_id: str, verb: Callable[..., Bulk]) -> None:
        bulk = verb(Selection(ids=(job_id,)), actor=self._link.actor, limit=1)
        if bulk.done:
            return
        state = self._link.store.job(job_id).state
        code = next(iter(bulk.skipped), "changed")
        raise Conflict(code, f"job {job_id} is {state}: it {_EXPLAINED.get(code, code)}")

    def _all(self, verb: Callable[..., Bulk], selection: Selection) -> Bulk:
        """Page by page, so that each job is met once and what comes in meanwhile is left alone."""
        done, skipped = 0, Counter[str]()
        for ids in self._pages(selection):
            bulk = verb(Selection(ids=ids), actor=self._link.actor, limit=len(ids))
            done += bulk.done
            skipped.update(bulk.skipped)
        return Bulk(done, dict(skipped))

    def _pages(self, selection: Selection) -> Iterator[tuple[str, ...]]:
        cursor: str | None = None
        while True:
            page = self._link.store.jobs(selection, limit=BATCH, cursor=cursor)
            if page.jobs:
                yield tuple(job.id for job in page.jobs)
            cursor = page.next
            if cursor is None:
                return


class Queues:
    """`mill.queues`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def pause(self, name: str) -> None:
        """No worker takes another job from it until `resume`; what runs goes on. The queue need not exist yet."""
        self._link.store.pause(check_name("queue", name), actor=self._link.actor)

    def resume(self, name: str) -> None:
        """Undo `pause`."""
        self._link.store.resume(check_name("queue", name), actor=self._link.actor)

    def limit(self, name: str, limit: int | None) -> None:
        """Let at most `limit` of its jobs run at once across all workers; None: no limit."""
        checked = None if limit is None else check_integer("limit", limit, 0, MAX_LIMIT)
        self._link.store.limit(check_name("queue", name), checked, actor=self._link.actor)

    def stats(self, window: float = 300.0) -> builtins.list[QueueStats]:
        """What each queue did within the last `window` seconds."""
        return self._link.store.stats(check_seconds("window", window, 1.0))

    def list(self) -> builtins.list[Queue]:
        """Every queue that ever had a job or a setting, by name, with exact counts by state."""
        return self._link.store.queues()


class Workers:
    """`mill.workers`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def drain(self, worker_id: str) -> None:
        """Let it claim nothing, give back what has not started, and stay.

        Raises:
            NotFound: there is no such live worker.

        """
        self._link.store.drain(worker_id, actor=self._link.actor)

    def resume(self, worker_id: str) -> None:
        """Undo `drain`.

        Raises:
            NotFound: there is no such live worker.

        """
        self._link.store.undrain(worker_id, actor=self._link.actor)

    def concurrency(self, worker_id: str, concurrency: int | None) -> None:
        """Change how many jobs it runs at once in its pool for all queues; None: what it was started with.

        Raises:
            NotFound: there is no such live worker.

        """
        checked = None if concurrency is None else check_integer("concurrency", concurrency, 1, MAX_CONCURRENCY)
        self._link.store.set_concurrency(worker_id, checked, actor=self._link.actor)

    def list(self, *, gone: bool = False) -> builtins.list[Worker]:
        """The live workers, by name; with `gone` also those that are away and still named by running jobs."""
        return self._link.store.workers(gone=gone)


def _id(job: str | Job[Any]) -> str:
    return job if isinstance(job, str) else job.id


def _selection(filters: Filters, *states: State) -> Selection:
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    if unknown := given.keys() - Filters.__annotations__.keys():
        raise InvalidInput(min(unknown), f"no such filter; there are {', '.join(Filters.__annotations__)}")
    chosen = given.pop("state", states)
    if "state" in filters and chosen is not states and not chosen:
        raise InvalidInput("state", "must name a state; leave it out to mean them all")
    for name in ("created_after", "created_before"):
        if name in given:
            given[name] = check_time(name, given[name])
    return Selection(states=_states(chosen), **given)


def _states(chosen: str | Collection[str]) -> tuple[State, ...]:
    try:
        return tuple(State(name) for name in ([chosen] if isinstance(chosen, str) else chosen))
    except ValueError:
        raise InvalidInput("state", f"must be of {', '.join(State)} (got {chosen!r:.120})") from None
