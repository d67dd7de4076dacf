"""How jobs come in: inserted in one transaction, answered one by one, many callers' submissions at once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workmill import clock
from workmill.domain.errors import Conflict
from workmill.domain.job import Receipt
from workmill.domain.states import State
from workmill.domain.transitions import Event, ready_state
from workmill.store.group_commit import GroupCommit
from workmill.store.heads import Ready
from workmill.store.operations.deltas import Deltas
from workmill.store.operations.rows import encode_list
from workmill.store.session import KeyBusy, Operations, repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.domain.job import NewJob
    from workmill.store.session import Database, Session

TRIES: Final = 5
BUSY_SECONDS: Final = 1.0
"""How long a submission is tried again while another open transaction holds its unique key."""
BUSY_PAUSE: Final = 0.02
Row = tuple[Any, ...]
"""The columns of `insert_jobs`."""
_receipt = partial(tuple.__new__, Receipt)
"""`Receipt` from the tuple of its fields, in a quarter of the time: it is made for every job."""


class Submitting(Operations):
    """Implements `store.base.Submission`. The switches of the group commit are for measuring what it gains."""

    def __init__(self, database: Database, *, group_commit: bool = True, group_delay: float = 0.0) -> None:
        super().__init__(database)
        self._group: GroupCommit[Sequence[NewJob], list[Receipt]] = GroupCommit(self._write, len, together=group_commit, delay=group_delay)

    def submit(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        return self.submit_soon(jobs).result() if jobs else []

    def submit_soon(self, jobs: Sequence[NewJob]) -> Future[list[Receipt]]:
        """`submit` without waiting: the future has what `submit` returns once that is durable."""
        if all(job.unique_key is None for job in jobs):
            return self._group.put(jobs)
        answer: Future[list[Receipt]] = Future()
        self._try(jobs, answer, clock.monotonic() + BUSY_SECONDS)
        return answer

    def submit_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        if not jobs:
            return []
        with self._database.join(connection) as session:
            return insert(session, jobs, waiting=True)

    def _try(self, jobs: Sequence[NewJob], answer: Future[list[Receipt]], until: float) -> None:
        self._group.put(jobs).add_done_callback(partial(self._settle, jobs, answer, until))

    def _settle(self, jobs: Sequence[NewJob], answer: Future[list[Receipt]], until: float, tried: Future[list[Receipt]]) -> None:
        """The answer, or, while another open transaction holds a key, another try in a moment: alone, so that nobody waits with it."""
        error = tried.exception()
        if error is None:
            answer.set_result(tried.result())
        elif not isinstance(error, KeyBusy):
            answer.set_exception(error)
        elif clock.monotonic() > until:
            answer.set_exception(Conflict("key_busy", str(error)))
        else:
            again = threading.Timer(BUSY_PAUSE, self._try, (jobs, answer, until))
            again.daemon = True
            try:
                again.start()
            except RuntimeError as problem:  # no thread can be started: whoever waits must hear of it
                answer.set_exception(Conflict("key_busy", f"{error} ({problem})"))

    @repeated
    def _write(self, submissions: Sequence[Sequence[NewJob]]) -> list[list[Receipt]]:
        with self._database.write() as session:
            receipts = insert(session, [job for jobs in submissions for job in jobs])
        if len(submissions) == 1:
            return [receipts]
        following = iter(receipts)
        return [[next(following) for _ in jobs] for jobs in submissions]


def insert(session: Session, jobs: Sequence[NewJob], *, waiting: bool = False) -> list[Receipt]:
    """Insert jobs and answer each; one that is there already, by its id or its unique key, is left as it is.

    Raises:
        KeyBusy: another open transaction holds a unique key, and this one is not `waiting` for it.

    """
    _take_keys(session, jobs, waiting=waiting)
    receipts = _insert(session, jobs, TRIES)
    made = Counter([(receipt.queue, receipt.state) for receipt in receipts if receipt.created])
    if made:
        deltas = Deltas()
        for (queue, state), count in made.items():
            deltas.move(queue, None, state, count)
        deltas.append(session)
        session.announce()
    return receipts


def _insert(session: Session, jobs: Sequence[NewJob], tries: int) -> list[Receipt]:
    now = session.now
    rows = [_row(job, now) for job in jobs]
    made = {job_id for (job_id,) in session.each("insert_jobs", rows)}
    if session.moves is not None:
        session.moves.ready += [Ready(row[1], row[0], row[4], row[5]) for row in rows if row[3] is State.QUEUED and row[0] in made]
    new = [_receipt((row[0], row[3], row[1], row[2], True)) for row in rows]
    return new if len(made) == len(rows) else _answer(session, jobs, new, made, tries)


def _take_keys(session: Session, jobs: Sequence[NewJob], *, waiting: bool) -> None:
    keys = sorted({(job.type, job.unique_key) for job in jobs if job.unique_key is not None})
    taken = set(session.each("lock_keys", keys, waiting=waiting))
    for job_type, key in keys:
        if (job_type, key) not in taken:
            raise KeyBusy(f"unique_key: {key!r:.120} of type {job_type} is held in another open transaction")


def _row(job: NewJob, now: int) -> Row:
    (
        job_id, queue, job_type, payload, priority, delay, run_at, expires_in, expires_at, timeout, max_attempts, max_losses, backoff,
        unique_key, tags, meta, webhook, traceparent,
    ) = job  # fmt: skip
    if run_at is None:
        run_at = now + delay if delay else now
    if expires_in is not None:
        expires_at = now + expires_in
    state = ready_state(due=run_at <= now, event=Event.SUBMIT)
    return (
        job_id, queue, job_type, state, priority, run_at, expires_at, now, timeout, max_attempts, max_losses, backoff, unique_key,
        encode_list(tags) if tags else None, meta, webhook, traceparent, payload,
    )  # fmt: skip


def _answer(session: Session, jobs: Sequence[NewJob], new: Sequence[Receipt], made: set[str], tries: int) -> list[Receipt]:
    """The receipts when not all were made. Of a repeated id, the first was."""
    receipts: list[Receipt | None] = []
    for receipt in new:
        receipts.append(receipt if receipt.id in made else None)
        made.discard(receipt.id)
    present = iter(_find(session, [job for job, receipt in zip(jobs, receipts, strict=True) if receipt is None], tries))
    return [receipt or next(present) for receipt in receipts]


def _find(session: Session, jobs: Sequence[NewJob], tries: int) -> list[Receipt]:
    """The jobs that stand in the way. What has stepped out of it since the insert (another's doing) is inserted again."""
    by_id = {row[0]: row for row in session.each("find_by_id", [(job.id,) for job in jobs])}
    keys = {(job.type, job.unique_key) for job in jobs if job.unique_key is not None}
    by_key = {(row[3], row[4]): row[:4] for row in session.each("find_by_key", list(keys))}
    found = [by_id.get(job.id) or by_key.get((job.type, job.unique_key)) for job in jobs]
    missing = [job for job, row in zip(jobs, found, strict=True) if row is None]
    if missing and not tries:
        raise Conflict("key_busy", f"the unique key of job {missing[0].id} comes and goes")
    again = iter(_insert(session, missing, tries - 1) if missing else ())
    return [next(again) if row is None else Receipt(row[0], State(row[1]), row[2], row[3], False) for row in found]


__all__ = ["Submitting", "insert"]
