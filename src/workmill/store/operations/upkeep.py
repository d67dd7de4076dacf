"""What keeps a store in order. Each step finds its rows in a snapshot, so that an idle turn writes little, and applies in one transaction.

A row whose data stops a batch is found by halving the batch; it is buried with the reason, and the others go on.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from workmill.domain.limits import SECOND, UNKNOWN_TYPE_SECONDS, check_seconds, microseconds
from workmill.domain.states import FINAL, WAITING, State
from workmill.domain.transitions import Event, sources
from workmill.store.base import UPKEEP_BATCH
from workmill.store.operations import losses, stats
from workmill.store.operations.deltas import Deltas
from workmill.store.operations.operating import Row, leave, lock, queue, remove
from workmill.store.operations.outcomes import UNKNOWN_TYPE
from workmill.store.session import BadData, Operations, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.store.session import Session

LONGEST_TICK: Final = 2 * SECOND
"""The most that one turn moves the lease clock."""
GONE_WORKER: Final = 2 * 86_400 * SECOND
"""How long the row of a worker that is gone is kept for the history that names it."""
LONGEST_RETENTION: Final = 1_000 * 366 * 86_400.0
"""Seconds; what stays longer stays for ever."""
FOLDED_AT_ONCE: Final = 200
"""Deltas in one transaction of `fold`. It comes by each second, and on a database with one writer a job waits as long as it takes."""
UNMOVABLE: Final = "unmovable"
PROMOTABLE: Final = sources(Event.PROMOTE)


class Keeping(Operations):
    """Implements `store.base.Upkeep`."""

    def win_turn(self, interval: float) -> bool:
        step = microseconds(check_seconds("interval", interval))
        with self._database.write() as session:
            return session.row("win_turn", interval=step, most=LONGEST_TICK) is not None

    def promote(self, limit: int = UPKEEP_BATCH) -> int:
        return self._apply(self._find("due_jobs", limit), _promote)

    def rescue(self, limit: int = UPKEEP_BATCH) -> int:
        lapsed = self._find("lapsed_workers", limit)
        if lapsed:
            self._end_workers(lapsed)
        return self._apply(self._find("lost_jobs", limit), losses.take_back)

    @repeated
    def _end_workers(self, lapsed: Sequence[str]) -> None:
        with self._database.write() as session:
            session.each("end_workers", [(worker_id,) for worker_id in lapsed])

    def expire(self, limit: int = UPKEEP_BATCH) -> int:
        return self._apply(self._find("overdue_jobs", limit), _expire)

    def bury(self, limit: int = UPKEEP_BATCH) -> int:
        return self._apply(self._find("unknown_jobs", limit, age=microseconds(UNKNOWN_TYPE_SECONDS)), _bury_unknown)

    def prune(self, retain: float | None, retain_dead: float | None, limit: int = UPKEEP_BATCH) -> int:
        ids = self._ended("finished_jobs", "retain", retain, limit)
        ids += self._ended("died_jobs", "retain_dead", retain_dead, limit - len(ids))
        self._forget_workers(limit)
        return self._apply(ids, _prune)

    def fold(self, limit: int = 10 * UPKEEP_BATCH) -> int:
        folded = 0
        while folded < limit and self._is_behind():
            more = self._fold(min(limit - folded, FOLDED_AT_ONCE))
            if not more:  # it rolled up, or forgot
                break
            folded += more
        return folded

    @repeated
    def _fold(self, limit: int) -> int:
        with self._database.write() as session:
            return stats.fold(session, limit)

    def _is_behind(self) -> bool:
        with self._database.read() as session:
            return stats.anything_to_fold(session)

    def _find(self, name: str, limit: int, *, age: int = 0) -> list[str]:
        """Up to `limit` ids that a statement finds; it may ask for what is from before `cutoff`, so long ago."""
        with self._database.read() as session:
            return [row[0] for row in session.rows(name, limit=limit, cutoff=session.now - age)]

    def _ended(self, name: str, field: str, retain: float | None, limit: int) -> list[str]:
        if retain is None:
            return []
        return self._find(name, limit, age=microseconds(check_seconds(field, retain, high=LONGEST_RETENTION)))

    def _forget_workers(self, limit: int) -> None:
        forgotten = self._find("forgotten_workers", limit, age=GONE_WORKER)
        if forgotten:
            with self._database.write() as session:
                session.each("forget_workers", [(worker_id,) for worker_id in forgotten])

    def _apply(self, ids: Sequence[str], step: Callable[[Session, Sequence[str]], int]) -> int:
        if not ids:
            return 0
        try:
            return self._take(ids, step)
        except BadData as error:
            return self._go_around(ids, step, error)

    @repeated
    def _take(self, ids: Sequence[str], step: Callable[[Session, Sequence[str]], int]) -> int:
        with self._database.write() as session:
            return step(session, ids)

    def _go_around(self, ids: Sequence[str], step: Callable[[Session, Sequence[str]], int], error: BadData) -> int:
        """The same step for both halves; for a single row, its burial."""
        if len(ids) > 1:
            middle = len(ids) // 2
            return self._apply(ids[:middle], step) + self._apply(ids[middle:], step)
        with suppress(BadData), self._database.write() as session:
            _bury(UNMOVABLE, str(error), session, ids)
        return 0


def _promote(session: Session, ids: Sequence[str]) -> int:
    rows = [row for row in lock(session, ids) if row.state in PROMOTABLE and row.run_at <= session.now]
    queue(session, rows, lambda row: row.suspect)
    return _move(session, "promote_jobs", rows, State.QUEUED)


def _expire(session: Session, ids: Sequence[str]) -> int:
    rows = [row for row in lock(session, ids) if row.state in WAITING and row.expires_at is not None and row.expires_at <= session.now]
    leave(session, rows)
    return _move(session, "expire_jobs", rows, State.EXPIRED)


def _move(session: Session, statement: str, rows: Sequence[Row], state: State) -> int:
    session.each(statement, [(row.id,) for row in rows])
    return _count(session, rows, state)


def _count(session: Session, rows: Sequence[Row], state: State | None) -> int:
    deltas = Deltas()
    for row in rows:
        deltas.move(row.queue, row.state, state)
        if state is State.DEAD:
            deltas.figures(row.queue, row.type).dead += 1
    deltas.append(session)
    if rows and state is not None:
        session.announce()
    return len(rows)


def _bury_unknown(session: Session, ids: Sequence[str]) -> int:
    unknown = [row.id for row in lock(session, ids) if row.aside == UNKNOWN_TYPE]
    return _bury(UNKNOWN_TYPE, "no worker has known this type for 24 hours", session, unknown)


def _bury(error_class: str, reason: str, session: Session, ids: Sequence[str]) -> int:
    buriable = sources(Event.BURY)
    rows = [row for row in lock(session, ids) if row.state in buriable]
    leave(session, rows)
    session.each("bury_jobs", [(row.id, row.lease, error_class, reason) for row in rows])
    return _count(session, rows, State.DEAD)


def _prune(session: Session, ids: Sequence[str]) -> int:
    rows = [row for row in lock(session, ids) if row.state in FINAL]
    remove(session, rows)
    return _count(session, rows, None)
