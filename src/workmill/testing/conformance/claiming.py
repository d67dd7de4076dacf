"""Which jobs a worker gets: in order, in time, within limits, never twice."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from workmill.clock import to_datetime
from workmill.domain.job import Claimed
from workmill.domain.limits import SECOND
from workmill.domain.outcome import ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Wants
from workmill.testing.factories import a_job, claim, claim_one, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, crash, settle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock


def ids(runs: Iterable[Claimed]) -> list[str]:
    """The ids of some runs, in order."""
    return [run.id for run in runs]


class Ordering:
    """Within a queue: higher priority first, then what is due longest, then by id.

    `STEP`: by how many microseconds times must differ to be told apart.
    """

    STEP: ClassVar[int] = 1

    def test_one_claimer_takes_everything_in_order(self, store: Store, clock: MovableClock) -> None:
        rng = random.Random(7)
        jobs = [a_job(priority=rng.randrange(-2, 3), run_at=to_datetime(clock() - rng.randrange(5) * self.STEP)) for _ in range(300)]
        store.submit(jobs)
        worker = join(store)

        taken = [job_id for _ in range(30) for job_id in ids(claim(store, worker, 10))]

        assert taken == [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.run_at or 0, job.id))]

    def test_jobs_of_one_level_come_in_the_order_of_their_submission(self, store: Store, clock: MovableClock) -> None:
        submitted = []
        for _ in range(50):
            submitted.append(submit(store).id)
            clock.advance(0.000_001)

        assert ids(claim(store, join(store), 50)) == submitted

    def test_a_retry_stands_where_it_became_due(self, store: Store, clock: MovableClock) -> None:
        retried, worker = submit(store), join(store)
        report(store, worker, released(claim_one(store, worker), ReleaseReason.SNOOZE, 5.0))
        clock.advance(4)
        before = submit(store)
        clock.advance(2)
        after = submit(store)
        store.promote()

        assert ids(claim(store, worker, 3)) == [before.id, retried.id, after.id]

    def test_queues_come_one_by_one(self, store: Store) -> None:
        store.submit([a_job(queue=queue, priority=priority) for priority in (0, 5) for queue in ("b", "a")])

        runs = store.exchange(join(store), (), Wants(queues={"b": 10, "a": 10})).claimed

        assert [(run.queue, store.job(run.id).priority) for run in runs] == [("b", 5), ("b", 0), ("a", 5), ("a", 0)]

    def test_all_queues_together_are_one_order(self, store: Store, clock: MovableClock) -> None:
        rng = random.Random(11)
        jobs = [
            a_job(queue=f"q{rng.randrange(7)}", priority=rng.randrange(3), run_at=to_datetime(clock() - rng.randrange(50) * self.STEP))
            for _ in range(400)
        ]
        store.submit(jobs)
        worker = join(store)

        taken = [job_id for _ in range(41) for job_id in ids(claim(store, worker, 10, None))]

        assert taken == [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.run_at or 0, job.id))]
        settle(store)

    def test_a_deep_queue_hides_no_other(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 1_500, queue="deep")
        clock.advance(1)
        urgent, late = submit(store, queue="other", priority=1), submit(store, queue="other")

        taken = ids(claim(store, join(store), 1_502, None))

        assert (taken[0], taken[-1], len(taken)) == (urgent.id, late.id, 1_502)

    def test_more_queues_than_are_wanted_are_one_order_too(self, store: Store, clock: MovableClock) -> None:
        jobs = [a_job(queue=f"q{index}", run_at=to_datetime(clock() - index * self.STEP)) for index in range(120)]
        store.submit(jobs)

        assert ids(claim(store, join(store), 7, None)) == [job.id for job in jobs[:-8:-1]]


class Claiming:
    """A claim is a new run, of a job that is due, under a new lease."""

    def test_a_run_says_all_that_a_worker_needs(self, store: Store, clock: MovableClock) -> None:
        trace = f"00-{'a' * 32}-{'b' * 16}-01"
        options: dict[str, Any] = {"queue": "q", "timeout": 2.5, "max_attempts": 3, "expires_in": 9, "traceparent": trace}
        receipt = submit(store, "t", "[1]", **options)
        clock.advance(4)

        run = claim_one(store, join(store), "q")

        assert run == Claimed(receipt.id, 1, "q", "t", "[1]", 1, 3, 2.5, 5 * SECOND, trace, 0)

    def test_the_job_says_who_runs_it(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        clock.advance(1)

        job = store.job(claim_one(store, worker).id)

        assert (job.state, job.worker_id, job.attempt, job.lease) == (State.RUNNING, worker, 1, 1)
        assert job.claimed_at == to_datetime(clock())
        assert store.counts() == {("default", State.RUNNING): 1}

    def test_no_more_than_wanted(self, store: Store) -> None:
        submit_many(store, 5)
        worker = join(store)

        assert [len(claim(store, worker, wanted)) for wanted in (0, 2, -1, 100)] == [0, 2, 0, 3]

    def test_nothing_wanted_nothing_claimed(self, store: Store) -> None:
        submit(store)

        assert store.exchange(join(store), (), Wants()).claimed == ()

    def test_an_unknown_queue_has_nothing(self, store: Store) -> None:
        submit(store)

        assert claim(store, join(store), 5, "unknown") == []

    def test_each_run_of_a_job_has_a_higher_lease(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        leases = []
        for _ in range(3):
            run = claim_one(store, worker)
            leases.append(run.lease)
            report(store, worker, released(run))

        assert leases == [1, 2, 3]

    def test_nothing_before_its_time(self, store: Store, clock: MovableClock) -> None:
        submit(store, delay=10)
        worker = join(store)
        store.promote()
        assert claim(store, worker) == []

        clock.advance(10)
        store.promote()

        assert len(claim(store, worker)) == 1

    def test_nothing_past_its_deadline_and_a_claim_that_met_such_ends_it(self, store: Store, clock: MovableClock) -> None:
        overdue, live = submit(store, expires_in=5), submit(store)
        clock.advance(5)

        assert ids(claim(store, join(store), 10)) == [live.id]

        assert store.job(overdue.id).state is State.EXPIRED
        settle(store)

    def test_a_claim_looks_past_a_thousand_that_are_overdue(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 990, expires_in=5, priority=9)
        live = submit(store)
        clock.advance(6)

        assert ids(claim(store, join(store), 10)) == [live.id]

    def test_however_many_are_overdue_those_behind_them_are_reached(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2_500, expires_in=5, priority=9)
        live = submit(store)
        clock.advance(6)
        worker = join(store)

        taken = [job_id for _ in range(4) for job_id in ids(claim(store, worker, 10, None))]

        assert taken == [live.id]
        assert store.counts()["default", State.EXPIRED] == 2_500

    def test_who_runs_a_suspect_gets_no_other_until_its_outcome_is_in(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 3)
        crash(store, clock, held=3)
        store.promote()
        worker = join(store)

        (suspect,) = claim(store, worker, 10)
        assert (suspect.suspect, claim(store, worker, 10), claim(store, worker, 10, None)) == (1, [], [])

        report(store, worker, succeeded(suspect))
        assert not store.job(suspect.id).suspect
        (second,) = claim(store, worker, 10)

        report(store, worker, released(second))
        assert not store.job(second.id).suspect
        assert [run.suspect for run in claim(store, worker, 10)] == [0, 1]

    def test_all_queues_leave_out_those_that_are_ours(self, store: Store) -> None:
        own = a_job()._replace(queue="workmill.webhooks", priority=100)
        other = a_job()
        store.submit([own, other])
        worker = join(store)

        assert ids(claim(store, worker, 10, None)) == [other.id]
        assert ids(claim(store, worker, 10, "workmill.webhooks")) == [own.id]

    def test_a_draining_worker_claims_nothing_and_may_still_report(self, store: Store) -> None:
        submit_many(store, 2)
        worker = join(store)
        run = claim_one(store, worker)
        store.drain(worker, actor=ACTOR)

        exchange = store.exchange(worker, [succeeded(run)], Wants(anywhere=1))
        assert (len(exchange.verdicts), exchange.claimed, exchange.known) == (1, (), True)

        store.undrain(worker, actor=ACTOR)
        assert len(claim(store, worker)) == 1

    def test_workers_that_claim_at_once_never_share_a_job(self, store: Store) -> None:
        submit_many(store, 600)
        taken: list[str] = []
        barrier = threading.Barrier(4)

        def run() -> None:
            worker = join(store)
            barrier.wait()
            while runs := claim(store, worker, 7, None):
                taken.extend(ids(runs))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(taken) == len(set(taken)) == 600


class Restricting:
    """A paused queue gives nothing, a limited one what its limit leaves, and neither holds up the others."""

    def test_nothing_is_claimed_from_a_paused_queue(self, store: Store) -> None:
        store.submit([a_job(queue="a"), a_job(queue="b")])
        worker = join(store)
        store.pause("a", actor=ACTOR)

        named = store.exchange(worker, (), Wants(queues={"a": 5}))
        assert (named.claimed, named.paused) == ((), frozenset({"a"}))
        assert [run.queue for run in claim(store, worker, 5, None)] == ["b"]

        store.resume("a", actor=ACTOR)
        assert len(claim(store, worker, 5, "a")) == 1

    def test_a_limit_holds_over_all_workers(self, store: Store) -> None:
        submit_many(store, 10)
        store.limit("default", 3, actor=ACTOR)
        one, other = join(store), join(store, "other")

        first = claim(store, one, 2)
        second = claim(store, other, 5, None)
        assert (len(first), len(second), claim(store, one, 5)) == (2, 1, [])

        report(store, one, succeeded(first[0]))
        assert len(claim(store, other, 5)) == 1

    def test_a_limit_counts_what_is_finished_in_the_same_exchange(self, store: Store) -> None:
        submit_many(store, 3)
        store.limit("default", 1, actor=ACTOR)
        worker = join(store)
        run = claim_one(store, worker)

        exchange = store.exchange(worker, [succeeded(run)], Wants(queues={"default": 5}))

        assert len(exchange.claimed) == 1

    def test_a_limit_below_what_runs_gives_nothing_and_takes_nothing(self, store: Store) -> None:
        submit_many(store, 5)
        worker = join(store)
        claim(store, worker, 3)
        store.limit("default", 1, actor=ACTOR)

        assert claim(store, worker, 5, None) == []
        assert store.counts()["default", State.RUNNING] == 3

    def test_a_limit_of_zero_gives_nothing(self, store: Store) -> None:
        submit(store)
        store.limit("default", 0, actor=ACTOR)

        assert claim(store, join(store), 5, None) == []

    def test_the_places_of_a_killed_worker_are_free_again_after_its_rescue(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 4)
        store.limit("default", 2, actor=ACTOR)
        crash(store, clock, held=2)

        assert len(claim(store, join(store), 5)) == 2

    def test_a_limit_holds_for_what_was_set_aside_too(self, store: Store) -> None:
        submit_many(store, 3, type="rare")
        worker = join(store)
        report(store, worker, *[released(run, ReleaseReason.UNKNOWN_TYPE) for run in claim(store, worker, 3)])
        store.limit("default", 2, actor=ACTOR)

        assert len(claim(store, join(store, types=["rare"]), 5)) == 2

    def test_the_order_of_all_queues_holds_around_a_limited_one(self, store: Store) -> None:
        store.submit([a_job(queue="limited", priority=9) for _ in range(5)] + [a_job(queue="open") for _ in range(5)])
        store.limit("limited", 2, actor=ACTOR)

        runs = claim(store, join(store), 4, None)

        assert [run.queue for run in runs] == ["limited", "limited", "open", "open"]
