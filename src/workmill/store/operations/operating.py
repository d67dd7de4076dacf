"""The operators' verbs over jobs: found in a snapshot, decided in Python, applied in one transaction with their audit line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from workmill import clock
from workmill.domain.job import Bulk, Selection
from workmill.domain.limits import check_integer
from workmill.domain.states import FINAL, LIVE, REVIVABLE, WAITING, State
from workmill.domain.submission import check_moment
from workmill.domain.transitions import Event, ready_state, sources
from workmill.store.heads import Ready
from workmill.store.operations import audit
from workmill.store.operations.deltas import Deltas
from workmill.store.operations.selection import check_selection, count, find
from workmill.store.session import Operations, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from workmill.store.session import Session

MOST_JOBS = 10_000
BUSY_SECONDS = 1.0
"""How long a verb comes again for jobs that other transactions hold; then it skips them as `busy`."""
BUSY_PAUSE = 0.02
RESCHEDULABLE = sources(Event.RESCHEDULE)


class Row(NamedTuple):
    """What is decided on: the columns of `lock_jobs`."""

    id: str
    queue: str
    type: str
    state: State
    lease: int
    run_at: int
    expires_at: int | None
    unique_key: str | None
    aside: str | None
    suspect: int
    cancel_requested_at: int | None
    priority: int


class Done(NamedTuple):
    """What a verb did with some rows: those it changed, the state they are in now (None: removed), and why it left the others."""

    rows: Sequence[Row]
    state: Callable[[Row], State | None]
    skipped: Iterable[str]


class Verb(NamedTuple):
    """An action on jobs: its name, the states it is meant for when a selection names none, and how it is decided and applied."""

    action: str
    states: frozenset[State]
    apply: Callable[[Session, Sequence[Row]], Done]


def lock(session: Session, ids: Iterable[str]) -> list[Row]:
    """The rows of those ids that exist, newest first."""
    found = session.each("lock_jobs", [(job_id,) for job_id in ids])
    return sorted((Row(*row)._replace(state=State(row[3])) for row in found), reverse=True)


def leave(session: Session, rows: Iterable[Row]) -> None:
    """None of these can be claimed any more."""
    if session.moves is not None:
        session.moves.left += [(row.queue, row.id) for row in rows if row.state is State.QUEUED]


def queue(session: Session, rows: Sequence[Row], apart: Callable[[Row], object], run_at: int | None = None) -> None:
    """These can be claimed now, at the place of their own time, or of `run_at`; what is set `apart` is for those who look in the store."""
    if session.moves is not None:
        plain = [row for row in rows if not apart(row)]
        session.moves.ready += [Ready(row.queue, row.id, row.priority, row.run_at if run_at is None else run_at) for row in plain]
        session.moves.look |= len(plain) < len(rows)


class Verbs(Operations):
    """Cancel, revive, discard, reschedule: implements that part of `store.base.Operating`."""

    def cancel(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        return self._act(Verb("cancel", LIVE, _cancel), selection, actor=actor, limit=limit, cursor=cursor)

    def revive(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        return self._act(Verb("revive", REVIVABLE, _revive), selection, actor=actor, limit=limit, cursor=cursor)

    def discard(self, selection: Selection, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        return self._act(Verb("discard", REVIVABLE, _discard), selection, actor=actor, limit=limit, cursor=cursor)

    def reschedule(self, selection: Selection, run_at: int | None, *, actor: str, limit: int = 1_000, cursor: str | None = None) -> Bulk:
        if run_at is not None:
            check_moment("run_at", run_at)
        verb = Verb("reschedule", RESCHEDULABLE, partial(_reschedule, run_at))
        return self._act(verb, selection, actor=actor, limit=limit, cursor=cursor)

    def count(self, selection: Selection, *, limit: int = 100_000) -> int:
        check_selection(selection)
        check_integer("limit", limit, 1, 2**31)
        with self._database.read() as session:
            return count(session, selection, limit)

    def _act(self, verb: Verb, selection: Selection, *, actor: str, limit: int, cursor: str | None) -> Bulk:
        audit.check_actor(actor)
        check_selection(selection)
        check_integer("limit", limit, 1, MOST_JOBS)
        meant = selection if selection.ids or selection.states else replace(selection, states=tuple(sorted(verb.states)))
        with self._database.read() as session:
            ids, following = find(session, meant, limit, cursor)
        acted, skipped, until = 0, Counter[str](), clock.monotonic() + BUSY_SECONDS
        while ids:
            count, why, passed_over = self._act_on(ids, verb, meant, selection, actor)
            acted, skipped = acted + count, skipped + why
            ids = self._present(passed_over)
            if meant.ids and len(passed_over) > len(ids):
                skipped["not_found"] += len(passed_over) - len(ids)
            if ids and clock.monotonic() > until:
                skipped["busy"] += len(ids)
                break
            if ids:
                clock.sleep(BUSY_PAUSE)
        return Bulk(acted, dict(skipped), following)

    @repeated
    def _act_on(
        self, ids: Sequence[str], verb: Verb, meant: Selection, selection: Selection, actor: str
    ) -> tuple[int, Counter[str], list[str]]:
        """One transaction: how many rows were changed, why others were not, and the ids that were not to be had."""
        with self._database.write() as session:
            locked = lock(session, ids)
            done = verb.apply(session, [row for row in locked if meant.ids or row.state in meant.states])
            skipped = Counter(done.skipped)
            if done.rows:
                _count(session, done)
                detail = {"skipped": skipped, "ids": [row.id for row in done.rows] if verb.action == "discard" else []}
                line = audit.Line(actor, verb.action, audit.target_of(selection), len(done.rows), detail)
                audit.append(session, line)
                session.announce()
        return len(done.rows), skipped, list(set(ids) - {row.id for row in locked})

    def _present(self, ids: Sequence[str]) -> list[str]:
        """Those that some other transaction only held, as against those that are no job's."""
        if not ids:
            return []
        with self._database.read() as session:
            return [row[0] for row in session.each("find_by_id", [(job_id,) for job_id in ids])]


def _count(session: Session, done: Done) -> None:
    deltas = Deltas()
    for row in done.rows:
        deltas.move(row.queue, row.state, done.state(row))
    deltas.append(session)


def _cancel(session: Session, rows: Sequence[Row]) -> Done:
    waiting = [row for row in rows if row.state in WAITING]
    running = [row for row in rows if row.state is State.RUNNING and row.cancel_requested_at is None]
    session.each("cancel_jobs", [(row.id,) for row in waiting])
    leave(session, waiting)
    session.each("request_cancels", [(row.id, row.lease) for row in running])
    skipped = ["ended" for row in rows if row.state in FINAL]
    skipped += ["cancel_requested" for row in rows if row.state is State.RUNNING and row.cancel_requested_at is not None]
    return Done([*waiting, *running], lambda row: State.RUNNING if row.state is State.RUNNING else State.CANCELLED, skipped)


def _revive(session: Session, rows: Sequence[Row]) -> Done:
    ended = [row for row in rows if row.state in REVIVABLE]
    free = _with_free_keys(session, ended)
    session.each("revive_jobs", [(row.id,) for row in free])
    queue(session, free, lambda _: False, session.now)
    skipped = ["not_revivable"] * (len(rows) - len(ended)) + ["key_taken"] * (len(ended) - len(free))
    return Done(free, lambda _: State.QUEUED, skipped)


def _with_free_keys(session: Session, rows: Sequence[Row]) -> list[Row]:
    """Those without a unique key, or whose key no live job and none before them in `rows` holds."""
    keys = sorted({(row.type, row.unique_key) for row in rows if row.unique_key is not None})
    held = set(session.each("lock_keys", keys, waiting=False))
    taken = set(session.each("taken_keys", keys)) | (set(keys) - held)
    free = []
    for row in rows:
        key = (row.type, row.unique_key)
        if row.unique_key is None or key not in taken:
            taken.add(key)
            free.append(row)
    return free


def _discard(session: Session, rows: Sequence[Row]) -> Done:
    ended = [row for row in rows if row.state in REVIVABLE]
    remove(session, ended)
    return Done(ended, lambda _: None, ["not_discardable"] * (len(rows) - len(ended)))


def remove(session: Session, rows: Sequence[Row]) -> None:
    """Delete ended jobs and their history."""
    ids = [(row.id,) for row in rows]
    session.each("delete_attempts", ids)
    session.each("delete_jobs", ids)


def _reschedule(run_at: int | None, session: Session, rows: Sequence[Row]) -> Done:
    due = session.now if run_at is None else run_at
    state = ready_state(due=due <= session.now, event=Event.RESCHEDULE)
    waiting = [row for row in rows if row.state in RESCHEDULABLE]
    session.each("reschedule_jobs", [(row.id, state, due, _aside(row, state)) for row in waiting])
    leave(session, waiting)
    if state is State.QUEUED:
        queue(session, waiting, lambda row: _aside(row, state), due)
    return Done(waiting, lambda _: state, ["not_waiting"] * (len(rows) - len(waiting)))


def _aside(row: Row, state: State) -> str | None:
    if state is not State.QUEUED:
        return None
    return "suspect" if row.suspect else row.aside
