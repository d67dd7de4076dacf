"""Worker processes: they join, beat, and leave. One row a worker carries the lease of all that it holds."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from workmill.domain.errors import NotFound, StoreError
from workmill.domain.limits import SECOND, microseconds
from workmill.domain.outcome import Fence, Released, ReleaseReason
from workmill.domain.worker import Orders, WorkerState
from workmill.ids import new_id
from workmill.store.operations.claims import read_rules
from workmill.store.operations.deltas import Deltas
from workmill.store.operations.outcomes import Recorder
from workmill.store.operations.rows import encode_progress
from workmill.store.operations.upkeep import LONGEST_TICK
from workmill.store.session import Operations, repeated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workmill.domain.worker import Held, Hello
    from workmill.store.session import Session


class Worker(NamedTuple):
    """A worker that is not gone: the columns of `read_worker`."""

    state: str
    types: str | None
    lease: int
    concurrency: int | None


class HeldRun(NamedTuple):
    """A run of a worker: the columns of `held_runs`."""

    id: str
    lease: int
    claimed_at: int
    cancelling: int

    @property
    def fence(self) -> Fence:
        return Fence(self.id, self.lease)


class Beating(Operations):
    """Implements `join`, `heartbeat` and `leave` of `store.base.Work`."""

    def join(self, hello: Hello) -> str:
        worker_id = new_id()
        with self._database.write() as session:
            session.run(
                "add_worker",
                worker=worker_id,
                name=hello.name,
                host=hello.host,
                pid=hello.pid,
                version=hello.version,
                queues=json.dumps(dict(hello.queues)),
                types=None if hello.types is None else json.dumps(hello.types),
                concurrency=hello.concurrency,
                lease=microseconds(hello.lease_seconds),
                most=LONGEST_TICK,
            )
        return worker_id

    def heartbeat(self, worker_id: str, held: Sequence[Held], seq: int) -> Orders:
        renewed = self._renew(worker_id, seq)
        with self._database.read() as session:
            worker = find(session, worker_id)
            if worker is None:
                raise NotFound("worker", worker_id)
            runs = held_runs(session, worker_id)
            paused = read_rules(session).paused
            unlisted = never_answered(session, worker, runs, {each.fence for each in held}) if renewed else []
        with suppress(StoreError):
            self._follow(worker_id, held, unlisted)
        running = {run.fence: run.cancelling for run in runs}
        return Orders(
            lease_seconds=worker.lease / SECOND,
            state=WorkerState(worker.state),
            concurrency=worker.concurrency,
            cancel=tuple(each.fence for each in held if running.get(each.fence)),
            lost=tuple(each.fence for each in held if each.fence not in running),
            paused=paused,
        )

    @repeated
    def _renew(self, worker_id: str, seq: int) -> bool:
        """A transaction of its own, so that nothing of what follows can cost the lease."""
        with self._database.write() as session:
            return renew(session, worker_id, seq)

    @repeated
    def leave(self, worker_id: str) -> int:
        with self._database.write() as session:
            if not session.run("end_worker", worker=worker_id):  # first, so that no claim is under way any more
                return 0
            return give_back(session, worker_id, held_runs(session, worker_id), ReleaseReason.SHUTDOWN, "its worker left")

    @repeated
    def _follow(self, worker_id: str, held: Sequence[Held], unlisted: Sequence[HeldRun]) -> None:
        """Progress and what goes back, when there is any; to lose it costs nothing."""
        progress = [(*each.fence, encode_progress(each.progress)) for each in held if each.progress is not None]
        if not progress and not unlisted:
            return
        with self._database.write() as session:
            session.each("store_progress", progress, worker=worker_id)
            give_back(session, worker_id, unlisted, ReleaseReason.UNANSWERED)


def find(session: Session, worker_id: str) -> Worker | None:
    """The worker, unless it is gone."""
    row = session.row("read_worker", worker=worker_id)
    return None if row is None else Worker._make(row)


def hold(session: Session, worker_id: str) -> Worker | None:
    """The worker, unless it is gone, held for this transaction: nobody ends it beside what is written for it."""
    row = session.row("lock_worker", worker=worker_id)
    return None if row is None else Worker._make(row)


def renew(session: Session, worker_id: str, seq: int) -> bool:
    """Renew the worker's lease; False when it is gone, or has beaten with this `seq` or a higher one before."""
    return session.run("renew_worker", worker=worker_id, seq=seq, most=LONGEST_TICK) > 0


def held_runs(session: Session, worker_id: str) -> list[HeldRun]:
    """All that runs under the worker's name."""
    return [HeldRun._make(row) for row in session.rows("held_runs", worker=worker_id)]


def never_answered(session: Session, worker: Worker, runs: Iterable[HeldRun], held: set[Fence]) -> list[HeldRun]:
    """The runs that their worker does not know of, though they were claimed over a lease ago."""
    return [run for run in runs if run.claimed_at < session.now - worker.lease and run.fence not in held]


def give_back(session: Session, worker_id: str, runs: Sequence[HeldRun], reason: ReleaseReason, detail: str = "") -> int:
    """Release runs, uncharged, and count what has moved."""
    if not runs:
        return 0
    deltas = Deltas()
    Recorder(session, worker_id, deltas, lambda: 0.0).record([Released(run.fence, reason, detail=detail) for run in runs])
    deltas.append(session)
    session.announce()
    return len(runs)
