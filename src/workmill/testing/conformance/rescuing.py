"""Upkeep: what becomes of the jobs of a worker that was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workmill.domain.errors import NotFound
from workmill.domain.job import Selection
from workmill.domain.outcome import WORKER_LOST, Accepted, LeaseLost
from workmill.domain.states import State
from workmill.domain.worker import Wants
from workmill.testing.factories import LEASE, claim, claim_one, failed, join, report, submit, submit_many, succeeded
from workmill.testing.steps import (
    beat,
    crash,
    fall_silent,
    only,
    pass_time,
    settle,
    states,
)

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock


class Rescuing:
    """What a dead worker held runs elsewhere: the loss is counted apart from failures, and a killer ends without its neighbours."""

    def test_a_lost_run_goes_on_elsewhere_uncharged(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store)
        crash(store, clock, held=1)

        job = store.job(receipt.id)
        assert (job.state, job.attempt, job.losses, job.suspect) == (State.RETRYING, 0, 1, True)
        assert store.promote() == 1
        run = claim_one(store, join(store, "other"))
        assert (run.id, run.attempt) == (receipt.id, 1)
        settle(store)

    def test_a_rescued_job_cannot_be_completed_by_its_first_worker(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        first = claim_one(store, worker)
        fall_silent(store, clock)
        store.promote()
        other = join(store)
        second = claim_one(store, other)

        assert report(store, worker, succeeded(first, '"late"')) == [LeaseLost(first.fence)]
        assert report(store, other, succeeded(second, '"in time"')) == [Accepted(second.fence, State.SUCCEEDED)]
        assert store.job(first.id).result == '"in time"'

    def test_a_worker_that_was_lost_is_gone(self, store: Store, clock: MovableClock) -> None:
        worker = join(store)

        fall_silent(store, clock)

        assert store.workers() == []
        assert not store.exchange(worker, (), Wants()).known
        with pytest.raises(NotFound):
            beat(store, clock, worker)

    def test_the_jobs_of_a_worker_of_the_same_name_are_left_alone(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2)
        dead, alive = join(store, "same"), join(store, "same")
        claim_one(store, dead)
        run = claim_one(store, alive)
        pass_time(store, clock, 10)
        beat(store, clock, alive, [run])

        pass_time(store, clock, 10)

        assert store.rescue() == 1
        assert store.job(run.id).state is State.RUNNING

    def test_all_are_charged_when_none_was_suspect(self, store: Store, clock: MovableClock) -> None:
        receipts = submit_many(store, 3)

        crash(store, clock, held=3)

        assert [store.job(receipt.id).losses for receipt in receipts] == [1, 1, 1]

    def test_only_the_suspect_is_charged_when_one_was_held(self, store: Store, clock: MovableClock) -> None:
        suspect = submit(store)
        crash(store, clock, held=1)
        store.promote()
        neighbours = submit_many(store, 3)

        held = crash(store, clock, held=4)

        assert len(held) == 4
        assert store.job(suspect.id).losses == 2
        assert [store.job(receipt.id).losses for receipt in neighbours] == [0, 0, 0]
        assert all(store.job(run.id).suspect for run in held)
        settle(store)

    def test_who_is_charged_does_not_depend_on_the_size_of_a_batch(self, store: Store, clock: MovableClock) -> None:
        suspect = submit(store)
        crash(store, clock, held=1)
        store.promote()
        submit_many(store, 5)
        claim(store, join(store), 6)
        pass_time(store, clock, int(LEASE) + 2)

        batches = [store.rescue(limit=2) for _ in range(4)]

        assert batches == [2, 2, 2, 0]
        assert {job.id: job.losses for job in store.jobs(Selection()).jobs if job.losses} == {suspect.id: 2}

    def test_a_job_that_kills_its_workers_ends_dead(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, max_losses=3)

        for _ in range(3):
            crash(store, clock, held=1)
            clock.advance(60)
            store.promote()

        job = store.job(receipt.id)
        assert (job.state, job.losses, job.attempt) == (State.DEAD, 3, 0)
        assert job.error is not None
        assert job.error.type == WORKER_LOST
        assert [attempt.kind for attempt in store.history(receipt.id).attempts] == ["worker_lost"] * 3
        settle(store)

    def test_the_first_loss_waits_not_at_all_and_later_ones_longer(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, max_losses=4)
        waits = []

        for _ in range(3):
            crash(store, clock, held=1)
            waits.append((store.job(receipt.id).run_at - store.history(receipt.id).attempts[-1].ended_at).total_seconds())  # type: ignore[operator]
            clock.advance(60)
            store.promote()

        assert waits[0] == 0
        assert 4 <= waits[1] <= 6
        assert 8 <= waits[2] <= 12

    def test_work_that_must_not_run_twice_ends_with_its_worker_whoever_else_is_suspect(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        crash(store, clock, held=1)
        store.promote()
        once = submit(store, max_losses=1)

        crash(store, clock, held=2)

        assert store.job(once.id).state is State.DEAD

    def test_any_reported_outcome_clears_the_suspicion(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, backoff=[0])
        crash(store, clock, held=1)
        store.promote()
        worker = join(store)

        report(store, worker, failed(claim_one(store, worker)))

        job = store.job(receipt.id)
        assert (job.suspect, job.aside, job.losses) == (False, None, 1)

    def test_four_killers_among_neighbours_die_alone(self, store: Store, clock: MovableClock) -> None:
        killers = {submit(store, priority=1).id for _ in range(4)}
        innocent = {receipt.id for receipt in submit_many(store, 12)}

        for number in range(200):
            worker = join(store, f"w{number}")
            runs = claim(store, worker, 5)
            if killers & {run.id for run in runs}:
                fall_silent(store, clock)
            else:
                report(store, worker, *map(succeeded, runs))
                store.leave(worker)
            clock.advance(5)
            store.promote()

        assert states(store, killers) == [State.DEAD] * 4
        assert states(store, innocent) == [State.SUCCEEDED] * 12
        settle(store)

    @pytest.mark.parametrize("losses", [1, 3])
    def test_a_cancelled_run_that_is_lost_is_cancelled(self, store: Store, clock: MovableClock, losses: int) -> None:
        receipt = submit(store, max_losses=losses)
        claim_one(store, join(store))
        store.cancel(only(receipt.id), actor="me")

        fall_silent(store, clock)

        assert store.job(receipt.id).state is State.CANCELLED
        assert [attempt.kind for attempt in store.history(receipt.id).attempts] == ["worker_lost"]
        settle(store)

    def test_suspects_stand_aside_and_a_worker_holds_one_at_most(self, store: Store, clock: MovableClock) -> None:
        suspects = submit_many(store, 3)
        crash(store, clock, held=3)
        store.promote()
        others = submit_many(store, 3)

        held = [run.id for run in claim(store, join(store), 6)]

        assert len(set(held) & {receipt.id for receipt in suspects}) == 1
        assert {receipt.id for receipt in others} <= set(held)
        assert [job.aside for job in store.jobs(only(*(receipt.id for receipt in suspects))).jobs].count("suspect") == 2
