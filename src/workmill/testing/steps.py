"""What happens in tests: time passes, workers fall silent, jobs end. Over the Protocols only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.domain.worker import Held
from workmill.testing.factories import LEASE, claim, claim_one, failed, join, report, submit, succeeded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workmill.domain.job import Claimed, Job
    from workmill.domain.worker import Orders
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

ACTOR = "test"


def only(*ids: str) -> Selection:
    """The selection of some ids."""
    return Selection(ids=ids)


def pass_time(store: Store, clock: MovableClock, seconds: int) -> None:
    """Let time pass with a turn of upkeep each second, as it does where anything runs; what the turns would do is left to the test."""
    for _ in range(seconds):
        clock.advance(1)
        store.win_turn(1)


def beat(store: Store, clock: MovableClock, worker: str, held: Iterable[Claimed] = ()) -> Orders:
    """A heartbeat that lists what the worker holds; the clock serves as its rising number."""
    return store.heartbeat(worker, [Held(run.fence) for run in held], clock())


def fall_silent(store: Store, clock: MovableClock) -> int:
    """Every worker stops beating, and its jobs are taken back."""
    pass_time(store, clock, int(LEASE) + 2)
    return store.rescue()


def crash(store: Store, clock: MovableClock, *, held: int, queue: str | None = "default") -> list[Claimed]:
    """A new worker claims so many jobs and dies; returns what it held."""
    worker = join(store, "doomed")
    runs = claim(store, worker, held, queue)
    fall_silent(store, clock)
    return runs


def a_dead_job(store: Store, **options: Any) -> Job:
    """A job that failed for good."""
    receipt = submit(store, max_attempts=1, **options)
    worker = join(store)
    report(store, worker, failed(claim_one(store, worker, options.get("queue", "default"))))
    store.leave(worker)
    return store.job(receipt.id)


def a_succeeded_job(store: Store, **options: Any) -> Job:
    """A job that ran and returned."""
    receipt = submit(store, **options)
    worker = join(store)
    report(store, worker, succeeded(claim_one(store, worker, options.get("queue", "default"))))
    store.leave(worker)
    return store.job(receipt.id)


def a_cancelled_job(store: Store, **options: Any) -> Job:
    """A job that was cancelled before it ran."""
    receipt = submit(store, **options)
    store.cancel(only(receipt.id), actor=ACTOR)
    return store.job(receipt.id)


def an_expired_job(store: Store, **options: Any) -> Job:
    """A job that did not start before its deadline."""
    receipt = submit(store, expires_in=0, **options)
    store.expire()
    return store.job(receipt.id)


def states(store: Store, ids: Iterable[str]) -> list[State]:
    """The states of some jobs, in order."""
    return [store.job(job_id).state for job_id in ids]


def settle(store: Store) -> None:
    """Fold everything, and hold the store to its invariants."""
    while store.fold():
        pass
    assert store.invariants() == []
