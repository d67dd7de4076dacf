"""Worker processes: one row carries the lease of all they hold, and only a list of everything held renews it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workmill.domain.errors import NotFound
from workmill.domain.job import Progress
from workmill.domain.outcome import Accepted, Fence, LeaseLost
from workmill.domain.states import State
from workmill.domain.worker import Held, Wants, WorkerState
from workmill.ids import new_id
from workmill.testing.factories import LEASE, claim, claim_one, failed, join, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, beat, fall_silent, only, pass_time, settle, states

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock


class Joining:
    """A worker is a process; its id is new each time."""

    def test_a_worker_is_known_as_it_introduced_itself(self, store: Store) -> None:
        hello: dict[str, Any] = {
            "host": "h",
            "pid": 42,
            "version": "9",
            "queues": {"mail": 3},
            "concurrency": 4,
            "lease": 20.0,
            "types": ["a"],
        }

        worker_id = join(store, "name", **hello)

        (worker,) = store.workers()
        assert (worker.id, worker.name, worker.host, worker.pid, worker.version) == (worker_id, "name", "h", 42, "9")
        assert (worker.queues, worker.concurrency, worker.lease_seconds) == ({"mail": 3}, 4, 20.0)
        assert (worker.state, worker.running) == (WorkerState.RUNNING, 0)

    def test_a_worker_that_comes_back_under_its_name_is_another(self, store: Store) -> None:
        submit(store)
        first = join(store, "same", pid=1)
        run = claim_one(store, first)

        second = join(store, "same", pid=1)

        assert first != second
        assert report(store, second, succeeded(run)) == [LeaseLost(run.fence)]
        assert report(store, first, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]


class Beating:
    """A beat renews, orders and takes back."""

    def test_a_beat_renews_whatever_is_held(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        for _ in range(10):
            pass_time(store, clock, int(LEASE) - 1)
            assert beat(store, clock, worker, [run]).lease_seconds == LEASE

        assert store.rescue() == 0
        assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]

    @pytest.mark.parametrize("late", [0, 4, 5])
    def test_a_beat_that_is_not_newer_renews_nothing_and_is_answered(self, store: Store, clock: MovableClock, late: int) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.heartbeat(worker, [Held(run.fence)], 5)
        pass_time(store, clock, int(LEASE) - 1)

        assert store.heartbeat(worker, [Held(run.fence)], late).lost == ()

        pass_time(store, clock, 3)
        assert store.rescue() == 1

    def test_a_stranger_and_a_worker_that_is_gone_are_told(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        claim_one(store, worker)
        fall_silent(store, clock)
        for unknown in (worker, new_id()):
            with pytest.raises(NotFound):
                store.heartbeat(unknown, [], 9)

    def test_an_exchange_with_a_list_renews_and_one_without_does_not(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2)
        lister, other = join(store), join(store, "other")
        listed, lost = claim_one(store, lister), claim_one(store, other)
        pass_time(store, clock, int(LEASE) - 1)

        store.exchange(lister, (), Wants(), [listed.fence], 1)
        store.exchange(other, (), Wants())

        pass_time(store, clock, 3)
        store.rescue()
        assert states(store, [listed.id, lost.id]) == [State.RUNNING, State.RETRYING]

    def test_a_cancel_is_ordered_by_the_run_that_is_held(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2)
        worker = join(store)
        one, two = claim(store, worker, 2)
        store.cancel(only(two.id), actor=ACTOR)

        assert beat(store, clock, worker, [one, two]).cancel == (two.fence,)
        assert beat(store, clock, worker, [one]).cancel == ()

    def test_lost_names_runs_and_not_jobs(self, store: Store, clock: MovableClock) -> None:
        submit(store, backoff=[0])
        worker = join(store)
        first = claim_one(store, worker)
        report(store, worker, failed(first))
        second = claim_one(store, worker)

        orders = beat(store, clock, worker, [first, second])

        assert orders.lost == (first.fence,)
        assert store.job(second.id).state is State.RUNNING

    def test_a_run_that_never_was_is_lost(self, store: Store) -> None:
        nowhere = Fence(new_id(), 1)

        assert store.heartbeat(join(store), [Held(nowhere)], 1).lost == (nowhere,)

    def test_orders_say_what_operators_have_set(self, store: Store, clock: MovableClock) -> None:
        worker = join(store, concurrency=4)
        clock.advance(1)
        assert beat(store, clock, worker).concurrency is None
        store.drain(worker, actor=ACTOR)
        store.set_concurrency(worker, 2, actor=ACTOR)
        store.pause("mail", actor=ACTOR)

        orders = beat(store, clock, worker)

        assert (orders.state, orders.concurrency, orders.paused) == (WorkerState.DRAINING, 2, frozenset({"mail"}))

    def test_progress_is_stored_and_shown(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)

        store.heartbeat(worker, [Held(run.fence, Progress(fraction=0.5, message="half é"))], 1)

        assert store.job(run.id).progress == Progress(fraction=0.5, message="half é")

    def test_a_run_begins_without_the_progress_of_the_one_before(self, store: Store) -> None:
        submit(store, backoff=[0])
        worker = join(store)
        run = claim_one(store, worker)
        store.heartbeat(worker, [Held(run.fence, Progress(fraction=0.5))], 1)
        report(store, worker, failed(run))

        assert store.job(claim_one(store, worker).id).progress is None

    def test_progress_that_cannot_be_stored_costs_nothing_else(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        pass_time(store, clock, int(LEASE) - 1)

        orders = store.heartbeat(worker, [Held(run.fence, Progress(message="\ud800"))], 1)

        assert orders.lost == ()
        pass_time(store, clock, 3)
        assert store.rescue() == 0


class TakingBack:
    """A claim whose answer never arrived is noticed: its runs are in no list."""

    def test_what_is_in_no_list_goes_back_uncharged_after_a_lease(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2, max_attempts=1)
        worker = join(store)
        known, unanswered = claim(store, worker, 2)
        pass_time(store, clock, int(LEASE) - 5)
        beat(store, clock, worker, [known])
        assert store.job(unanswered.id).state is State.RUNNING

        pass_time(store, clock, 6)
        beat(store, clock, worker, [known])

        job = store.job(unanswered.id)
        assert (job.state, job.attempt, store.job(known.id).state) == (State.QUEUED, 0, State.RUNNING)
        assert [attempt.error_class for attempt in store.history(job.id).attempts] == ["unanswered"]
        assert claim_one(store, join(store, "other")).id == job.id
        assert report(store, worker, succeeded(unanswered)) == [LeaseLost(unanswered.fence)]
        settle(store)

    def test_an_exchange_with_a_list_takes_back_too(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        claim_one(store, worker)
        pass_time(store, clock, 5)
        beat(store, clock, worker, claim(store, worker))
        clock.advance(LEASE)

        store.exchange(worker, (), Wants(), [], clock())

        assert claim_one(store, worker).lease == 2
        settle(store)

    def test_a_late_beat_takes_nothing_back(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        for seq in (5, 6):
            pass_time(store, clock, int(LEASE) - 1)
            store.heartbeat(worker, [Held(run.fence)], seq)

        for late in (4, 6, 1):
            store.heartbeat(worker, [], late)

        assert store.job(run.id).state is State.RUNNING

    def test_a_beat_that_crossed_a_claim_takes_nothing_back(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        pass_time(store, clock, int(LEASE) - 1)
        run = claim_one(store, worker)

        orders = store.heartbeat(worker, [], 1)

        assert (orders.lost, store.job(run.id).state) == ((), State.RUNNING)

    def test_what_goes_back_was_cancelled_when_it_was_to_be(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.cancel(only(run.id), actor=ACTOR)
        pass_time(store, clock, 10)
        store.heartbeat(worker, [Held(run.fence)], 1)
        clock.advance(LEASE)

        store.heartbeat(worker, [], 2)

        assert store.job(run.id).state is State.CANCELLED
        settle(store)


class Leaving:
    """A worker that leaves gives everything back."""

    def test_whatever_is_held_goes_back_uncharged(self, store: Store) -> None:
        submit_many(store, 3, max_attempts=1)
        worker = join(store)
        runs = claim(store, worker, 3)

        assert store.leave(worker) == 3

        jobs = [store.job(run.id) for run in runs]
        assert [(job.state, job.attempt, job.losses) for job in jobs] == [(State.QUEUED, 0, 0)] * 3
        assert store.workers() == []
        assert len(claim(store, join(store, "other"), 5)) == 3
        settle(store)

    def test_who_has_left_is_gone(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.leave(worker)

        exchange = store.exchange(worker, [succeeded(run)], Wants(anywhere=1))

        assert (exchange.known, exchange.verdicts, exchange.claimed) == (False, (LeaseLost(run.fence),), ())
        with pytest.raises(NotFound):
            store.heartbeat(worker, [], 1)

    def test_to_leave_twice_or_as_a_stranger_is_nothing(self, store: Store) -> None:
        worker = join(store)
        store.leave(worker)

        assert [store.leave(worker), store.leave(new_id())] == [0, 0]

    def test_a_worker_that_has_been_given_up_cannot_give_back(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        claim_one(store, worker)
        fall_silent(store, clock)

        assert store.leave(worker) == 0
