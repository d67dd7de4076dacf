"""The operators' verbs over jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from workmill.clock import to_datetime
from workmill.domain.errors import InvalidInput, NotFound
from workmill.domain.job import Bulk, Selection
from workmill.domain.outcome import Accepted, LeaseLost, ReleaseReason
from workmill.domain.states import State
from workmill.ids import new_id
from workmill.testing.factories import claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import (
    ACTOR,
    a_cancelled_job,
    a_dead_job,
    a_succeeded_job,
    an_expired_job,
    beat,
    crash,
    only,
    settle,
    states,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

ENDED_WITHOUT_SUCCESS = [a_dead_job, a_cancelled_job, an_expired_job]
EVERYTHING = Selection()


class Cancelling:
    """A cancel that was answered holds: nothing claims the job again."""

    def test_jobs_that_wait_are_cancelled_at_once(self, store: Store) -> None:
        queued, scheduled = submit(store), submit(store, delay=100)
        retrying = self._retrying(store)

        assert store.cancel(only(queued.id, scheduled.id, retrying), actor=ACTOR) == Bulk(3)
        assert states(store, [queued.id, scheduled.id, retrying]) == [State.CANCELLED] * 3
        assert claim(store, join(store), 5) == []
        settle(store)

    def test_a_running_job_is_asked_and_its_worker_told_with_the_next_beat(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)

        assert store.cancel(only(run.id), actor=ACTOR) == Bulk(1)

        assert store.job(run.id).state is State.RUNNING
        assert beat(store, clock, worker, [run]).cancel == (run.fence,)

    def test_a_job_that_was_asked_already_is_skipped(self, store: Store) -> None:
        submit(store)
        run = claim_one(store, join(store))
        store.cancel(only(run.id), actor=ACTOR)

        assert store.cancel(only(run.id), actor=ACTOR) == Bulk(0, {"cancel_requested": 1})

    def test_a_cancelled_run_that_succeeds_all_the_same_has_succeeded(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.cancel(only(run.id), actor=ACTOR)

        assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]

    @pytest.mark.parametrize("how", ["failed", "released", "snoozed", "left"])
    def test_a_cancelled_run_that_ends_otherwise_is_cancelled(self, store: Store, how: str) -> None:
        submit(store, backoff=[0])
        worker = join(store)
        run = claim_one(store, worker)
        store.cancel(only(run.id), actor=ACTOR)

        endings: dict[str, Callable[[], Any]] = {
            "failed": lambda: report(store, worker, failed(run)),
            "released": lambda: report(store, worker, released(run, ReleaseReason.CANCELLED)),
            "snoozed": lambda: report(store, worker, released(run, ReleaseReason.SNOOZE, 5)),
            "left": lambda: store.leave(worker),
        }
        endings[how]()

        assert store.job(run.id).state is State.CANCELLED
        assert claim(store, join(store)) == []
        settle(store)

    def test_what_has_ended_is_skipped_and_what_never_was_is_told(self, store: Store) -> None:
        job = a_succeeded_job(store)

        assert store.cancel(only(job.id, new_id()), actor=ACTOR) == Bulk(0, {"ended": 1, "not_found": 1})

    def test_a_queue_is_emptied_by_a_cancel_with_a_filter(self, store: Store) -> None:
        submit_many(store, 3, queue="mail")
        submit(store, queue="mail", delay=10)
        other = submit(store, queue="video")

        assert store.cancel(Selection(queue="mail"), actor=ACTOR) == Bulk(4)
        assert store.counts() == {("mail", State.CANCELLED): 4, ("video", State.QUEUED): 1}
        assert store.job(other.id).state is State.QUEUED

    def _retrying(self, store: Store) -> str:
        receipt = submit(store, queue="retry", backoff=[100])
        worker = join(store)
        report(store, worker, failed(claim_one(store, worker, "retry")))
        return receipt.id


class Reviving:
    """A revival is a new life with the old history, under a higher lease."""

    @pytest.mark.parametrize("make", ENDED_WITHOUT_SUCCESS)
    def test_what_ended_without_success_is_queued_again(self, store: Store, clock: MovableClock, make: Any) -> None:
        job = make(store)
        clock.advance(5)

        assert store.revive(only(job.id), actor=ACTOR) == Bulk(1)

        again = store.job(job.id)
        assert (again.state, again.lease, again.attempt, again.losses) == (State.QUEUED, job.lease + 1, 0, 0)
        assert (again.error, again.finished_at, again.expires_at, again.cancel_requested_at) == (None, None, None, None)
        assert again.run_at == to_datetime(clock())
        assert claim_one(store, join(store)).id == job.id
        settle(store)

    def test_history_stays_and_goes_on(self, store: Store) -> None:
        job = a_dead_job(store)
        store.revive(only(job.id), actor=ACTOR)
        worker = join(store)
        report(store, worker, succeeded(claim_one(store, worker)))

        assert [(attempt.kind, attempt.lease) for attempt in store.history(job.id).attempts] == [("error", 1), ("succeeded", 3)]

    def test_every_attempt_is_there_again(self, store: Store) -> None:
        job = a_dead_job(store, backoff=[0])
        store.revive(only(job.id), actor=ACTOR)
        worker = join(store)

        run = claim_one(store, worker)

        assert (run.attempt, run.max_attempts) == (1, 1)

    def test_losses_and_suspicion_are_forgotten(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, max_losses=1)
        crash(store, clock, held=1)

        store.revive(only(receipt.id), actor=ACTOR)

        job = store.job(receipt.id)
        assert (job.state, job.losses, job.suspect, job.aside) == (State.QUEUED, 0, False, None)

    def test_a_suspect_that_was_cancelled_comes_back_without_suspicion(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store)
        crash(store, clock, held=1)
        store.promote()
        store.cancel(only(receipt.id), actor=ACTOR)

        store.revive(only(receipt.id), actor=ACTOR)

        job = store.job(receipt.id)
        assert (job.state, job.suspect, job.aside) == (State.QUEUED, False, None)

    def test_what_lives_or_has_succeeded_is_skipped(self, store: Store) -> None:
        done, waiting = a_succeeded_job(store), submit(store)

        assert store.revive(only(done.id, waiting.id), actor=ACTOR) == Bulk(0, {"not_revivable": 2})

    def test_a_job_whose_key_has_been_taken_is_skipped(self, store: Store) -> None:
        job = a_dead_job(store, unique_key="k")
        holder = submit(store, unique_key="k")

        assert store.revive(only(job.id), actor=ACTOR) == Bulk(0, {"key_taken": 1})
        store.cancel(only(holder.id), actor=ACTOR)
        assert store.revive(only(job.id), actor=ACTOR) == Bulk(1)
        settle(store)

    def test_of_two_jobs_with_one_key_one_is_revived(self, store: Store) -> None:
        jobs = [a_dead_job(store, unique_key="k") for _ in range(2)]
        stranger = a_dead_job(store, unique_key="k", type="other")

        assert store.revive(only(*(job.id for job in jobs), stranger.id), actor=ACTOR) == Bulk(2, {"key_taken": 1})
        settle(store)

    def test_an_old_lease_is_refused_after_a_revival(self, store: Store) -> None:
        receipt = submit(store, max_attempts=1)
        worker = join(store)
        run = claim_one(store, worker)
        report(store, worker, failed(run))
        store.revive(only(receipt.id), actor=ACTOR)

        assert report(store, worker, succeeded(run)) == [LeaseLost(run.fence)]
        assert store.job(receipt.id).state is State.QUEUED


class Discarding:
    """What is discarded leaves a line in the audit."""

    @pytest.mark.parametrize("make", ENDED_WITHOUT_SUCCESS)
    def test_what_ended_without_success_can_be_removed(self, store: Store, make: Any) -> None:
        job = make(store)

        assert store.discard(only(job.id), actor="anna") == Bulk(1)

        with pytest.raises(NotFound):
            store.job(job.id)
        with pytest.raises(NotFound):
            store.history(job.id)
        line = store.audit()[0]
        assert (line.actor, line.action, line.count) == ("anna", "discard", 1)
        assert job.id in line.detail
        settle(store)

    def test_what_lives_or_has_succeeded_stays(self, store: Store) -> None:
        done, waiting = a_succeeded_job(store), submit(store)

        assert store.discard(only(done.id, waiting.id), actor=ACTOR) == Bulk(0, {"not_discardable": 2})
        assert states(store, [done.id, waiting.id]) == [State.SUCCEEDED, State.QUEUED]


class Rescheduling:
    """What waits can be moved to another time."""

    def test_a_job_is_moved_to_a_later_time(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store)

        assert store.reschedule(only(receipt.id), clock() + 10_000_000, actor=ACTOR) == Bulk(1)

        job = store.job(receipt.id)
        assert (job.state, job.run_at) == (State.SCHEDULED, to_datetime(clock()) + timedelta(seconds=10))
        assert claim(store, join(store)) == []
        clock.advance(10)
        assert store.promote() == 1
        settle(store)

    def test_without_a_time_it_is_now(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, delay=100)

        store.reschedule(only(receipt.id), None, actor=ACTOR)

        assert store.job(receipt.id).run_at == to_datetime(clock())
        assert claim_one(store, join(store)).id == receipt.id

    def test_a_retry_need_not_wait_for_its_backoff(self, store: Store) -> None:
        receipt = submit(store, backoff=[100])
        worker = join(store)
        report(store, worker, failed(claim_one(store, worker)))

        store.reschedule(only(receipt.id), None, actor=ACTOR)

        assert claim_one(store, worker).attempt == 2

    def test_a_suspect_stays_aside_and_one_of_unknown_type_too(self, store: Store, clock: MovableClock) -> None:
        suspect, unknown = submit(store), submit(store, queue="other")
        worker = join(store)
        report(store, worker, released(claim_one(store, worker, "other"), ReleaseReason.UNKNOWN_TYPE))
        crash(store, clock, held=1)

        store.reschedule(only(suspect.id, unknown.id), None, actor=ACTOR)

        assert [store.job(suspect.id).aside, store.job(unknown.id).aside] == ["suspect", "unknown_type"]
        settle(store)

    def test_what_does_not_wait_is_skipped(self, store: Store) -> None:
        submit(store)
        run = claim_one(store, join(store))
        dead = a_dead_job(store)

        assert store.reschedule(only(run.id, dead.id), None, actor=ACTOR) == Bulk(0, {"not_waiting": 2})

    @pytest.mark.parametrize("run_at", [-1, 2**62])
    def test_a_time_that_could_not_be_shown_is_refused(self, store: Store, run_at: int) -> None:
        receipt = submit(store)

        with pytest.raises(InvalidInput, match="run_at"):
            store.reschedule(only(receipt.id), run_at, actor=ACTOR)
