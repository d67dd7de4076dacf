"""What operators set: queues are paused and limited, workers drained and resized. Each with its line in the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workmill.domain.errors import NotFound
from workmill.domain.limits import check_integer
from workmill.domain.names import check_name
from workmill.domain.payload import check_storable
from workmill.domain.worker import WorkerState
from workmill.store.operations import audit
from workmill.store.session import Operations, repeated

if TYPE_CHECKING:
    from workmill.store.session import Session

MOST_AT_ONCE: Final = 1_000_000


class Settings(Operations):
    """Implements that part of `store.base.Operating`."""

    def pause(self, queue: str, *, actor: str) -> None:
        self._set_paused(queue, actor, "pause", paused=1)

    def resume(self, queue: str, *, actor: str) -> None:
        self._set_paused(queue, actor, "resume", paused=0)

    @repeated
    def limit(self, queue: str, limit: int | None, *, actor: str) -> None:
        audit.check_actor(actor)
        check_name("queue", queue)
        if limit is not None:
            check_integer("limit", limit, 0, MOST_AT_ONCE)
        with self._database.write() as session:
            session.run("set_limit", queue=queue, limit=limit)
            _record(session, actor, "limit", queue, limit=limit)

    def drain(self, worker_id: str, *, actor: str) -> None:
        self._set_worker(worker_id, actor, "drain", "set_worker_state", state=WorkerState.DRAINING)

    def undrain(self, worker_id: str, *, actor: str) -> None:
        self._set_worker(worker_id, actor, "undrain", "set_worker_state", state=WorkerState.RUNNING)

    def set_concurrency(self, worker_id: str, concurrency: int | None, *, actor: str) -> None:
        if concurrency is not None:
            check_integer("concurrency", concurrency, 1, MOST_AT_ONCE)
        self._set_worker(worker_id, actor, "set_concurrency", "set_worker_concurrency", concurrency=concurrency)

    @repeated
    def _set_paused(self, queue: str, actor: str, action: str, *, paused: int) -> None:
        audit.check_actor(actor)
        check_name("queue", queue)
        with self._database.write() as session:
            session.run("set_paused", queue=queue, paused=paused)
            _record(session, actor, action, queue)

    @repeated
    def _set_worker(self, worker_id: str, /, actor: str, action: str, statement: str, **setting: Any) -> None:
        audit.check_actor(actor)
        check_storable("worker_id", worker_id)
        with self._database.write() as session:
            if not session.run(statement, id=worker_id, **setting):
                raise NotFound("worker", worker_id)
            _record(session, actor, action, worker_id, **setting)


def _record(session: Session, actor: str, action: str, target: str, **detail: Any) -> None:
    """The line in the audit; and a wake-up, since jobs may have become claimable."""
    audit.append(session, audit.Line(actor, action, target, 0, detail))
    if session.moves is not None:
        session.moves.look = True
    session.announce()
