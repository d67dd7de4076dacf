"""Upkeep: turns and the lease clock; what becomes due, expires, or is known to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workmill.domain.errors import InvalidInput
from workmill.domain.limits import UNKNOWN_TYPE_SECONDS
from workmill.domain.outcome import Accepted, ReleaseReason
from workmill.domain.states import State
from workmill.testing.factories import LEASE, claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import (
    beat,
    crash,
    pass_time,
    settle,
    states,
)

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

DAY = 86_400


class Turning:
    """Who may do upkeep, and how the lease clock moves."""

    def test_a_turn_is_won_once_in_an_interval(self, store: Store) -> None:
        assert [store.win_turn(1), store.win_turn(1), store.win_turn(1)] == [True, False, False]

    def test_a_turn_is_won_again_when_the_interval_has_passed(self, store: Store, clock: MovableClock) -> None:
        store.win_turn(1)
        clock.advance(1)

        assert store.win_turn(1)

    def test_a_clock_that_steps_back_stops_no_upkeep(self, store: Store, clock: MovableClock) -> None:
        store.win_turn(1)
        clock.advance(-3_600)

        assert store.win_turn(1)
        assert not store.win_turn(1)

    def test_a_silent_worker_is_lost_within_its_lease_and_two_seconds(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        claim_one(store, join(store))

        pass_time(store, clock, int(LEASE) - 1)
        assert store.rescue() == 0
        pass_time(store, clock, 3)
        assert store.rescue() == 1

    def test_a_worker_that_beats_is_never_lost(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)

        for _ in range(20):
            pass_time(store, clock, 5)
            beat(store, clock, worker, [run])

        assert store.rescue() == 0
        assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]

    @pytest.mark.parametrize("step", [3_600, -3_600, 10 * 365 * DAY, -30 * DAY])
    def test_a_step_of_the_clock_costs_no_worker_its_jobs(self, store: Store, clock: MovableClock, step: int) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        pass_time(store, clock, 5)

        clock.advance(step)
        pass_time(store, clock, 5)

        assert store.rescue() == 0
        assert beat(store, clock, worker, [run]).lost == ()

    def test_a_clock_that_steps_back_prolongs_no_lease(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        claim_one(store, join(store))
        pass_time(store, clock, 5)

        clock.advance(-3_600)
        pass_time(store, clock, int(LEASE))

        assert store.rescue() == 1

    def test_a_store_that_was_away_for_three_leases_costs_no_worker_its_jobs(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)

        clock.advance(3 * LEASE)
        store.win_turn(1)

        assert store.rescue() == 0
        assert beat(store, clock, worker, [run]).lost == ()
        assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]

    def test_an_interval_is_a_number_of_seconds(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="interval"):
            store.win_turn(float("nan"))


class Promoting:
    """What waits for its time is queued when it has come."""

    def test_a_job_is_queued_at_its_time_and_not_before(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, delay=10)

        clock.advance(9.999_999)
        assert (store.promote(), store.job(receipt.id).state) == (0, State.SCHEDULED)
        clock.advance(0.000_001)
        assert (store.promote(), store.job(receipt.id).state) == (1, State.QUEUED)

    def test_a_failed_job_is_queued_when_its_backoff_is_over(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, backoff=[30])
        worker = join(store)
        report(store, worker, failed(claim_one(store, worker)))

        clock.advance(29)
        assert (store.promote(), store.job(receipt.id).state) == (0, State.RETRYING)
        clock.advance(1)
        assert (store.promote(), store.job(receipt.id).state) == (1, State.QUEUED)

    def test_a_delay_of_three_leases_is_one_run_whoever_waits(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, delay=3 * LEASE)
        workers = [join(store, name) for name in ("a", "b", "c")]
        runs = []

        for _ in range(4 * int(LEASE)):
            pass_time(store, clock, 1)
            store.rescue()
            store.promote()
            runs += [(worker, run) for worker in workers for run in claim(store, worker)]
            for worker in workers:
                beat(store, clock, worker, [run for holder, run in runs if holder == worker])

        assert [run.id for _, run in runs] == [receipt.id]

    def test_what_is_due_longest_comes_first_and_a_batch_has_a_limit(self, store: Store, clock: MovableClock) -> None:
        receipts = [submit(store, delay=delay) for delay in (3, 1, 2)]
        clock.advance(5)

        assert store.promote(limit=2) == 2
        assert states(store, [receipt.id for receipt in receipts]) == [State.SCHEDULED, State.QUEUED, State.QUEUED]
        assert store.promote(limit=2) == 1
        settle(store)

    def test_a_promoted_job_keeps_its_priority_and_is_ordered_by_its_due_time(self, store: Store, clock: MovableClock) -> None:
        first, second = submit(store, delay=2), submit(store, delay=1)
        high = submit(store, delay=3, priority=1)
        clock.advance(5)

        store.promote()

        assert [run.id for run in claim(store, join(store), 3)] == [high.id, second.id, first.id]


class Expiring:
    """A deadline is for starting."""

    def test_a_job_that_did_not_start_in_time_expires(self, store: Store, clock: MovableClock) -> None:
        queued, scheduled = submit(store, expires_in=10), submit(store, expires_in=10, delay=100)
        clock.advance(9.999_999)
        assert store.expire() == 0

        clock.advance(0.000_001)

        assert store.expire() == 2
        assert states(store, [queued.id, scheduled.id]) == [State.EXPIRED, State.EXPIRED]
        assert store.job(queued.id).finished_at is not None
        settle(store)

    def test_what_was_set_aside_expires_too(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, expires_in=100)
        crash(store, clock, held=1)
        store.promote()
        clock.advance(100)

        assert store.expire() == 1
        assert (store.job(receipt.id).state, store.job(receipt.id).aside) == (State.EXPIRED, None)

    def test_a_job_that_runs_does_not_expire(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, expires_in=10)
        claim_one(store, join(store))

        clock.advance(100)

        assert store.expire() == 0
        assert store.job(receipt.id).state is State.RUNNING

    def test_a_batch_has_a_limit(self, store: Store) -> None:
        submit_many(store, 3, expires_in=0)

        assert [store.expire(limit=2), store.expire(limit=2), store.expire(limit=2)] == [2, 1, 0]


class Burying:
    """What nobody knows waits a day for a worker that does."""

    def test_a_job_of_an_unknown_type_is_buried_after_a_day(self, store: Store, clock: MovableClock) -> None:
        receipt = self._set_aside(store)
        clock.advance(UNKNOWN_TYPE_SECONDS - 1)
        assert store.bury() == 0

        clock.advance(1)

        assert store.bury() == 1
        job = store.job(receipt)
        assert (job.state, job.attempt, job.aside) == (State.DEAD, 0, None)
        assert job.error is not None
        assert job.error.type == "unknown_type"
        settle(store)

    def test_a_job_whose_type_a_live_worker_knows_is_not_buried(self, store: Store, clock: MovableClock) -> None:
        receipt = self._set_aside(store)
        join(store, types=["other", "noop"])

        clock.advance(2 * UNKNOWN_TYPE_SECONDS)

        assert store.bury() == 0
        assert store.job(receipt).state is State.QUEUED

    def test_a_day_counts_from_when_the_last_that_knew_it_was_there(self, store: Store, clock: MovableClock) -> None:
        self._set_aside(store)
        knowing = join(store, types=["noop"])
        clock.advance(UNKNOWN_TYPE_SECONDS)
        store.leave(knowing)

        clock.advance(UNKNOWN_TYPE_SECONDS - 1)
        assert store.bury() == 0
        clock.advance(1)
        assert store.bury() == 1

    def test_a_worker_that_takes_any_type_knows_none(self, store: Store, clock: MovableClock) -> None:
        self._set_aside(store)
        join(store)

        clock.advance(UNKNOWN_TYPE_SECONDS)

        assert store.bury() == 1

    def test_jobs_wait_for_the_one_worker_in_fifty_that_knows_them(self, store: Store, clock: MovableClock) -> None:
        ids = [self._set_aside(store) for _ in range(5)]
        strangers = [join(store, f"w{number}", types=["other"]) for number in range(49)]

        for _ in range(20):
            clock.advance(60)
            store.bury()
            for stranger in strangers:
                assert claim(store, stranger, 10) == []
        knowing = join(store, types=["noop"])
        runs = claim(store, knowing, 10)
        report(store, knowing, *map(succeeded, runs))

        assert states(store, ids) == [State.SUCCEEDED] * 5

    def test_a_suspect_is_never_buried_for_its_type(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        crash(store, clock, held=1)
        store.promote()

        clock.advance(10 * UNKNOWN_TYPE_SECONDS)

        assert store.bury() == 0

    def _set_aside(self, store: Store) -> str:
        receipt = submit(store)
        worker = join(store, "ignorant")
        report(store, worker, released(claim_one(store, worker), ReleaseReason.UNKNOWN_TYPE))
        store.leave(worker)
        assert store.job(receipt.id).aside == "unknown_type"
        return receipt.id
