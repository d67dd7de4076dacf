"""The table decides: for every state and event the store moves a job as `TRANSITIONS` says, or leaves its row byte for byte."""

import sqlite3
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from workmill.domain.limits import SECOND, UNKNOWN_TYPE_SECONDS
from workmill.domain.outcome import Fence
from workmill.domain.states import State
from workmill.domain.transitions import REMOVED, TRANSITIONS, Event
from workmill.domain.worker import Wants
from workmill.store.base import Store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import a_job, claim, failed, join, released, report, succeeded
from workmill.testing.steps import ACTOR, only

Happening = Callable[[Store, str, str], Any]
HAPPENINGS: dict[Event, Happening] = {
    Event.SUBMIT: lambda store, job, _: store.submit([a_job(id=job)]),
    Event.PROMOTE: lambda store, *_: store.promote(),
    Event.CLAIM: lambda store, _, worker: claim(store, worker, 5),
    Event.SUCCEED: lambda store, job, worker: report(store, worker, succeeded(Fence(job, 1))),
    Event.FAIL: lambda store, job, worker: report(store, worker, failed(Fence(job, 1))),
    Event.RELEASE: lambda store, job, worker: report(store, worker, released(Fence(job, 1))),
    Event.LOSE: lambda store, *_: store.rescue(),
    Event.CANCEL: lambda store, job, _: store.cancel(only(job), actor=ACTOR),
    Event.EXPIRE: lambda store, *_: store.expire(),
    Event.BURY: lambda store, *_: store.bury(),
    Event.RESCHEDULE: lambda store, job, _: store.reschedule(only(job), None, actor=ACTOR),
    Event.REVIVE: lambda store, job, _: store.revive(only(job), actor=ACTOR),
    Event.DISCARD: lambda store, job, _: store.discard(only(job), actor=ACTOR),
}
"""What makes each event happen to a job with lease 1 of a worker. (Nothing unblocks or skips a job yet.)"""

ASKED = (State.RUNNING, Event.CANCEL)
"""A running job is asked to stop; its state stays."""
BY_ITS_ROW = {(state, Event.BURY) for state in (State.SCHEDULED, State.RETRYING, State.RUNNING)}
"""Buried only when their rows cannot be moved: see the tests of spoiled rows."""


def circumstances(event: Event, state: State, clock: MovableClock, worker: str) -> dict[str, Any]:
    """What a row must have for the event to concern it."""
    columns: dict[str, Any] = {"worker_id": worker, "lease": 1, "run_at": clock() - SECOND}
    if event is Event.EXPIRE:
        columns["expires_at"] = clock()
    if event is Event.BURY and state is State.QUEUED:
        columns |= {"aside": "unknown_type", "aside_since": clock() - round(UNKNOWN_TYPE_SECONDS) * SECOND}
    return columns


@pytest.mark.parametrize(("state", "event"), list(product(State, HAPPENINGS)))
def test_an_event_moves_a_job_as_the_table_says_or_leaves_its_row(
    state: State,
    event: Event,
    file_store: Store,
    sql: sqlite3.Connection,
    clock: MovableClock,
    plant: Callable[..., str],
) -> None:
    worker = join(file_store)
    job = plant(state, **circumstances(event, state, clock, worker))
    if event is Event.LOSE:
        sql.execute("UPDATE workmill_workers SET state = 'gone'")
    before = sql.execute("SELECT * FROM workmill_jobs").fetchall()

    HAPPENINGS[event](file_store, job, worker)

    after = sql.execute("SELECT * FROM workmill_jobs").fetchall()
    found = State(after[0][3]) if after else REMOVED
    if (state, event) in TRANSITIONS.keys() - BY_ITS_ROW:
        assert after != before
        assert found in TRANSITIONS[state, event]
    elif (state, event) == ASKED:
        assert found is State.RUNNING
        assert file_store.job(job).cancel_requested_at is not None
    else:
        assert after == before
    assert file_store.invariants() == []


def test_every_event_that_can_happen_now_is_made_to_happen() -> None:
    assert set(Event) - HAPPENINGS.keys() == {Event.UNBLOCK, Event.SKIP}


def test_an_exchange_that_wants_nothing_moves_nothing(file_store: Store, everything: Callable[[], Any], plant: Callable[..., str]) -> None:
    worker = join(file_store)
    for state in State:
        plant(state, worker_id=worker)
    before = everything()

    file_store.exchange(worker, (), Wants())

    assert everything() == before
