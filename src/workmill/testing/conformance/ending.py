"""How runs end: where success, failure and release lead, what they cost, and what the job and its history say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from workmill.clock import from_datetime
from workmill.domain.job import Claimed
from workmill.domain.limits import HISTORY_ROWS, MAX_SNOOZES, SECOND
from workmill.domain.outcome import Accepted, FailureKind, Fence, Outcome, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Wants
from workmill.testing.factories import a_job, claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, only, settle

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

CANCELLED_ENDS: dict[str, Callable[[Claimed], Outcome]] = {
    "failed": failed,
    "failed for good": lambda run: failed(run, final=True),
    "failed, due at once": lambda run: failed(run, retry_in=0.0),
    "released": released,
    "snoozed": lambda run: released(run, ReleaseReason.SNOOZE, 30.0),
    "acknowledged": lambda run: released(run, ReleaseReason.CANCELLED),
    "of an unknown type": lambda run: released(run, ReleaseReason.UNKNOWN_TYPE),
}


class Succeeding:
    """A run that returned ends its job."""

    def test_a_job_ends_with_its_result_as_the_text_that_it_was(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        clock.advance(3)

        verdicts = report(store, worker, succeeded(run, '{"a": 1E2, "a":-0}', waited=SECOND, ran=2 * SECOND))

        job = store.job(run.id)
        assert verdicts == [Accepted(run.fence, State.SUCCEEDED)]
        assert (job.state, job.result, job.worker_id) == (State.SUCCEEDED, '{"a": 1E2, "a":-0}', worker)
        assert from_datetime(job.finished_at or job.run_at) == clock()
        assert from_datetime(job.started_at or job.run_at) == clock() - 2 * SECOND
        settle(store)

    def test_no_result_is_none(self, store: Store) -> None:
        submit(store)
        worker = join(store)

        report(store, worker, succeeded(run := claim_one(store, worker), None))

        assert store.job(run.id).result is None

    def test_a_success_leaves_nothing_of_earlier_errors_on_the_job(self, store: Store) -> None:
        submit(store, backoff=[0])
        worker = join(store)
        report(store, worker, failed(claim_one(store, worker)))

        report(store, worker, succeeded(run := claim_one(store, worker)))

        assert store.job(run.id).error is None
        assert [attempt.kind for attempt in store.history(run.id).attempts] == ["error", "succeeded"]

    def test_a_whole_batch_ends_and_the_next_is_claimed_in_one_exchange(self, store: Store) -> None:
        submit_many(store, 700)
        worker = join(store)
        first = claim(store, worker, 350)

        exchange = store.exchange(worker, [succeeded(run) for run in first], Wants(queues={"default": 350}))

        assert exchange.verdicts == tuple(Accepted(run.fence, State.SUCCEEDED) for run in first)
        assert len({run.id for run in (*first, *exchange.claimed)}) == 700
        assert store.counts() == {("default", State.SUCCEEDED): 350, ("default", State.RUNNING): 350}
        settle(store)

    def test_a_start_is_never_later_than_its_end(self, store: Store) -> None:
        submit(store)
        worker = join(store)

        report(store, worker, succeeded(run := claim_one(store, worker), waited=3_600 * SECOND))

        job = store.job(run.id)
        assert job.started_at == job.finished_at

    def test_runs_are_counted_and_timed_by_queue(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 3)
        clock.advance(2)
        worker = join(store)
        one, two, three = claim(store, worker, 3)

        report(store, worker, succeeded(one, ran=SECOND), succeeded(two, waited=SECOND, ran=3 * SECOND), failed(three, ran=SECOND))

        (stats,) = store.stats(300)
        assert (stats.queue, stats.succeeded, stats.failed, stats.dead) == ("default", 2, 1, 0)
        assert (stats.wait.count, stats.wait.max, stats.run.count, stats.run.max) == (3, 3.0, 3, 3.0)


class Failing:
    """A run that raised or timed out is charged, and leads where the attempts and the delay say."""

    def test_a_failure_waits_for_its_next_attempt(self, store: Store, clock: MovableClock) -> None:
        submit(store, backoff=[5, 60])
        worker = join(store)

        verdicts = report(store, worker, failed(run := claim_one(store, worker)))

        job = store.job(run.id)
        assert verdicts == [Accepted(run.fence, State.RETRYING)]
        assert (job.state, job.attempt, from_datetime(job.run_at)) == (State.RETRYING, 1, clock() + 5 * SECOND)
        assert job.finished_at is None
        settle(store)

    def test_each_attempt_waits_as_its_backoff_says(self, store: Store, clock: MovableClock) -> None:
        submit(store, backoff=[1, 10, 100])
        worker = join(store)
        waits = []
        for _ in range(4):
            report(store, worker, failed(run := claim_one(store, worker)))
            due = from_datetime(store.job(run.id).run_at)
            waits.append(due - clock())
            clock.advance((due - clock()) / SECOND)
            store.promote()

        assert waits == [SECOND, 10 * SECOND, 100 * SECOND, 100 * SECOND]

    def test_jitter_stays_within_its_bounds(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 40, backoff={"base": 100.0, "factor": 1.0, "cap": 1_000.0, "jitter": 0.5})
        worker = join(store)
        runs = claim(store, worker, 40)

        report(store, worker, *map(failed, runs))

        waits = [from_datetime(store.job(run.id).run_at) - clock() for run in runs]
        assert all(50 * SECOND <= wait <= 150 * SECOND for wait in waits)
        assert len(set(waits)) > 1

    def test_without_a_delay_it_is_queued_at_once_behind_those_that_wait(self, store: Store, clock: MovableClock) -> None:
        first = submit(store, backoff=[0])
        clock.advance(1)
        second = submit(store)
        clock.advance(1)
        worker = join(store)

        verdicts = report(store, worker, failed(claim_one(store, worker)))

        assert verdicts[0] == Accepted(Fence(first.id, 1), State.QUEUED)
        assert [run.id for run in claim(store, worker, 2)] == [second.id, first.id]

    def test_retry_in_wins_over_the_backoff(self, store: Store, clock: MovableClock) -> None:
        submit(store, backoff=[5])
        worker = join(store)

        report(store, worker, failed(run := claim_one(store, worker), retry_in=42.0))

        assert from_datetime(store.job(run.id).run_at) == clock() + 42 * SECOND

    def test_the_last_attempt_that_fails_ends_the_job_dead(self, store: Store) -> None:
        submit(store, max_attempts=2, backoff=[0])
        worker = join(store)

        first = report(store, worker, failed(claim_one(store, worker)))
        second = report(store, worker, failed(run := claim_one(store, worker), "the last"))

        assert [verdict.state for verdict in (*first, *second) if isinstance(verdict, Accepted)] == [State.QUEUED, State.DEAD]
        job = store.job(run.id)
        assert (job.state, job.attempt, job.error and job.error.message) == (State.DEAD, 2, "the last")
        assert job.finished_at is not None
        assert store.stats(60)[0].dead == 1
        settle(store)

    def test_a_final_failure_ends_the_job_whatever_attempts_are_left(self, store: Store) -> None:
        submit(store, max_attempts=100)
        worker = join(store)

        assert report(store, worker, failed(run := claim_one(store, worker), final=True)) == [Accepted(run.fence, State.DEAD)]

    def test_the_error_is_shown_and_the_history_has_it_whole(self, store: Store, clock: MovableClock) -> None:
        submit(store, backoff=[5])
        worker = join(store)
        run = claim_one(store, worker)
        clock.advance(3)

        outcome = failed(run, "was é", error_class="Boom", traceback="line 1", kind=FailureKind.TIMEOUT, waited=SECOND, ran=SECOND)
        report(store, worker, outcome)

        error, (attempt,) = store.job(run.id).error, store.history(run.id).attempts
        assert error is not None
        assert (error.type, error.message, error.traceback) == ("Boom", "was é", "line 1")
        assert (attempt.number, attempt.lease, attempt.kind, attempt.worker_id) == (1, 1, "timeout", worker)
        assert (attempt.error_class, attempt.message, attempt.traceback) == ("Boom", "was é", "line 1")
        moments = [attempt.started_at, attempt.ended_at, attempt.next_run_at]
        assert [moment and from_datetime(moment) - clock() for moment in moments] == [-2 * SECOND, 0, 5 * SECOND]

    def test_a_backoff_that_cannot_be_read_ends_the_job_with_that_reason(self, store: Store) -> None:
        spoiled = [a_job()._replace(backoff=text) for text in ("nonsense", '{"base": "x"}', "[]", "7")]
        store.submit(spoiled)
        worker = join(store)

        verdicts = report(store, worker, *[failed(run, "as it was") for run in claim(store, worker, 4)])

        errors = [store.job(job.id).error for job in spoiled]
        assert [verdict.state for verdict in verdicts if isinstance(verdict, Accepted)] == [State.DEAD] * 4
        assert {error and error.type for error in errors} == {"unreadable_backoff"}
        assert all(error and "as it was" in error.message for error in errors)

    def test_an_attempt_far_out_has_a_clamped_delay(self, store: Store, clock: MovableClock) -> None:
        submit(store, max_attempts=10_000, backoff={"base": 1e-9, "factor": 1_000.0, "cap": 60.0, "jitter": 0.0})
        worker = join(store)
        runs = []
        for _ in range(60):
            runs.append(claim_one(store, worker))
            report(store, worker, failed(runs[-1]))
            clock.advance(61)
            store.promote()

        assert from_datetime(store.job(runs[0].id).run_at) == clock() - SECOND


class Releasing:
    """A run that is given back is not charged."""

    def test_what_is_given_back_keeps_its_place_and_its_attempts(self, store: Store, clock: MovableClock) -> None:
        first = submit(store, max_attempts=1)
        clock.advance(1)
        submit(store)
        worker = join(store)
        clock.advance(1)

        verdicts = report(store, worker, released(run := claim_one(store, worker)))

        assert verdicts == [Accepted(run.fence, State.QUEUED)]
        assert store.job(first.id).attempt == 0
        again = claim_one(store, worker)
        assert (again.id, again.attempt, again.lease) == (first.id, 1, 2)
        settle(store)

    def test_with_a_delay_it_is_scheduled(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)

        report(store, worker, released(run := claim_one(store, worker), ReleaseReason.SNOOZE, 30.0, "not yet"))

        job = store.job(run.id)
        assert (job.state, job.snoozes, from_datetime(job.run_at)) == (State.SCHEDULED, 1, clock() + 30 * SECOND)
        assert job.error is None

    def test_the_history_says_why(self, store: Store) -> None:
        submit(store)
        worker = join(store)

        report(store, worker, released(run := claim_one(store, worker), ReleaseReason.SNOOZE, 30.0, "not yet"))

        (attempt,) = store.history(run.id).attempts
        assert (attempt.kind, attempt.error_class, attempt.message) == ("released", "snooze", "not yet")

    @pytest.mark.parametrize("delay", [-1.0, 1e9, float("inf"), float("nan")])
    def test_a_delay_out_of_bounds_is_clamped(self, store: Store, delay: float) -> None:
        submit(store)
        worker = join(store)

        verdicts = report(store, worker, released(claim_one(store, worker), ReleaseReason.SNOOZE, delay))

        assert isinstance(verdicts[0], Accepted)
        settle(store)

    def test_one_snooze_too_many_is_a_failure_and_the_history_keeps_the_newest(self, store: Store) -> None:
        submit(store, max_attempts=1)
        worker = join(store)
        run = claim_one(store, worker)
        for _ in range(MAX_SNOOZES):
            report(store, worker, released(run, ReleaseReason.SNOOZE))
            run = claim_one(store, worker)
        outcomes = [released(run, ReleaseReason.SNOOZE)]

        verdicts = report(store, worker, *outcomes)

        job, history = store.job(run.id), store.history(run.id)
        assert verdicts == [Accepted(run.fence, State.DEAD)]
        assert job.error is not None
        assert job.error.type == "too_many_snoozes"
        assert (len(history.attempts), history.omitted) == (HISTORY_ROWS, 1)
        assert [history.attempts[index].lease for index in (0, -1)] == [2, MAX_SNOOZES + 1]
        assert report(store, worker, *outcomes) == verdicts

    def test_an_unknown_type_is_set_aside_and_the_others_go_on(self, store: Store) -> None:
        unknown, other = submit(store, "unknown"), submit(store)
        worker = join(store, types=["noop"])

        report(store, worker, released(claim_one(store, worker), ReleaseReason.UNKNOWN_TYPE))

        job = store.job(unknown.id)
        assert (job.state, job.aside, job.attempt) == (State.QUEUED, "unknown_type", 0)
        assert [run.id for run in claim(store, worker, 10)] == [other.id]
        assert claim(store, join(store), 10) == []
        settle(store)

    def test_a_worker_that_names_the_type_takes_it_in_its_place(self, store: Store) -> None:
        unknown = submit(store, "unknown", priority=1)
        worker = join(store)
        report(store, worker, released(claim_one(store, worker), ReleaseReason.UNKNOWN_TYPE))
        others = submit_many(store, 2)

        runs = claim(store, join(store, types=["noop", "unknown"]), 2)

        assert [run.id for run in runs] == [unknown.id, others[0].id]
        assert store.job(unknown.id).aside is None


class Cancelling:
    """A cancel that was requested decides where a run leads, unless it has succeeded."""

    @pytest.mark.parametrize("end", CANCELLED_ENDS.values(), ids=CANCELLED_ENDS)
    def test_a_run_that_was_cancelled_ends_cancelled(self, store: Store, end: Callable[[Claimed], Outcome]) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.cancel(only(run.id), actor=ACTOR)

        assert report(store, worker, end(run)) == [Accepted(run.fence, State.CANCELLED)]

        assert store.job(run.id).aside is None
        assert claim(store, join(store, types=["noop"]), 1) == []
        settle(store)

    def test_a_run_that_was_cancelled_and_succeeds_has_succeeded(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        store.cancel(only(run.id), actor=ACTOR)

        assert report(store, worker, succeeded(run)) == [Accepted(run.fence, State.SUCCEEDED)]
