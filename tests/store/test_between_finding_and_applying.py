"""Upkeep and operators find jobs in one snapshot and change them in a later transaction: what has changed in between is left alone."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.job import Bulk, Selection
from workmill.domain.limits import SECOND, UNKNOWN_TYPE_SECONDS
from workmill.domain.outcome import ReleaseReason
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.operations import operating
from workmill.store.operations.upkeep import Keeping
from workmill.testing.clock import MovableClock
from workmill.testing.factories import LEASE, claim_one, join, released, report, submit
from workmill.testing.steps import ACTOR, a_dead_job, beat, only, pass_time, settle

Between = Callable[[Callable[[], Any]], None]


@pytest.fixture
def other(path: Path, clock: MovableClock) -> Iterator[Store]:
    """Another process, so to speak."""
    with closing(open_store(f"sqlite:///{path}", clock)) as store:
        yield store


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """`between(happening)`: it happens once, after the next jobs have been found and before they are changed."""

    def arrange(happening: Callable[[], Any]) -> None:
        waiting = [happening]

        def after(find: Callable[..., Any]) -> Callable[..., Any]:
            def found(*arguments: Any, **options: Any) -> Any:
                answer = find(*arguments, **options)
                if waiting:
                    waiting.pop()()
                return answer

            return found

        monkeypatch.setattr(Keeping, "_find", after(Keeping._find))
        monkeypatch.setattr(operating, "find", after(operating.find))

    return arrange


def test_a_job_that_was_moved_to_a_later_time_is_not_promoted(
    file_store: Store, other: Store, clock: MovableClock, between: Between
) -> None:
    receipt = submit(file_store, delay=1)
    clock.advance(1)
    between(lambda: other.reschedule(only(receipt.id), clock() + 60 * SECOND, actor=ACTOR))

    assert file_store.promote() == 0
    assert file_store.job(receipt.id).state is State.SCHEDULED
    settle(file_store)


def test_a_worker_that_beats_in_time_is_not_lost(file_store: Store, other: Store, clock: MovableClock, between: Between) -> None:
    submit(file_store)
    worker = join(file_store)
    run = claim_one(file_store, worker)
    pass_time(file_store, clock, int(LEASE) + 2)
    between(lambda: beat(other, clock, worker, [run]))

    assert file_store.rescue() == 0
    assert file_store.job(run.id).state is State.RUNNING
    assert beat(file_store, clock, worker, [run]).lost == ()


def test_a_job_that_was_revived_is_not_pruned(file_store: Store, other: Store, clock: MovableClock, between: Between) -> None:
    dead = a_dead_job(file_store)
    clock.advance(1)
    between(lambda: other.revive(only(dead.id), actor=ACTOR))

    assert file_store.prune(None, 0) == 0
    assert file_store.job(dead.id).state is State.QUEUED
    settle(file_store)


def test_a_job_that_found_its_worker_is_not_buried(file_store: Store, other: Store, clock: MovableClock, between: Between) -> None:
    submit(file_store)
    ignorant = join(file_store)
    report(file_store, ignorant, released(claim_one(file_store, ignorant), ReleaseReason.UNKNOWN_TYPE))
    clock.advance(UNKNOWN_TYPE_SECONDS)
    between(lambda: claim_one(other, join(other, types=["noop"])))

    assert file_store.bury() == 0
    assert file_store.counts() == {("default", State.RUNNING): 1}


def test_a_job_that_has_started_does_not_expire(file_store: Store, other: Store, clock: MovableClock, between: Between) -> None:
    receipt = submit(file_store, expires_in=0)
    between(lambda: (clock.advance(-1), claim_one(other, join(other))))

    assert file_store.expire() == 0
    assert file_store.job(receipt.id).state is State.RUNNING


def test_a_filter_means_the_state_a_job_is_in_when_it_is_changed(file_store: Store, other: Store, between: Between) -> None:
    receipt = submit(file_store)
    between(lambda: claim_one(other, join(other)))

    assert file_store.cancel(Selection(states=(State.QUEUED,)), actor=ACTOR) == Bulk(0)
    assert file_store.job(receipt.id).cancel_requested_at is None
    assert file_store.audit() == []


def test_a_job_that_is_gone_when_it_is_changed_is_not_found(file_store: Store, other: Store, between: Between) -> None:
    dead = a_dead_job(file_store)
    between(lambda: other.discard(only(dead.id), actor=ACTOR))

    assert file_store.revive(only(dead.id), actor=ACTOR) == Bulk(0, {"not_found": 1})
    settle(file_store)
