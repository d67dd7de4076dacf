"""Each outcome by its fence, each verdict its own, repeats accepted, and nothing of a late worker or an unstorable outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from workmill.domain.job import Claimed
from workmill.domain.outcome import Accepted, FailureKind, Fence, LeaseLost, Outcome, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Wants
from workmill.ids import new_id
from workmill.testing.factories import claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import fall_silent, settle

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

REPEATS: dict[str, tuple[Callable[[Claimed], Outcome], State]] = {
    "succeeded": (succeeded, State.SUCCEEDED),
    "failed": (failed, State.RETRYING),
    "failed for good": (lambda run: failed(run, final=True), State.DEAD),
    "timed out": (lambda run: failed(run, kind=FailureKind.TIMEOUT), State.RETRYING),
    "released": (released, State.QUEUED),
    "snoozed": (lambda run: released(run, ReleaseReason.SNOOZE, 5.0), State.SCHEDULED),
}


class Judging:
    """Every verdict belongs to its own outcome."""

    def test_each_outcome_of_a_mixed_batch_has_its_own_verdict(self, store: Store) -> None:
        submit_many(store, 6, backoff=[60])
        worker, other = join(store), join(store, "other")
        one, two, three, four, five = claim(store, worker, 5)
        foreign = claim_one(store, other)
        nobody = Fence(new_id(), 1)

        verdicts = report(
            store,
            worker,
            released(one),
            succeeded(foreign),
            succeeded(two, '"two"'),
            succeeded(nobody),
            failed(three),
            succeeded(Fence(four.id, 2)),
            released(five, ReleaseReason.SNOOZE, 9.0),
        )

        assert verdicts == [
            Accepted(one.fence, State.QUEUED),
            LeaseLost(foreign.fence),
            Accepted(two.fence, State.SUCCEEDED),
            LeaseLost(nobody),
            Accepted(three.fence, State.RETRYING),
            LeaseLost(Fence(four.id, 2)),
            Accepted(five.fence, State.SCHEDULED),
        ]
        assert store.job(two.id).result == '"two"'
        assert {store.job(run.id).state for run in (foreign, four)} == {State.RUNNING}
        settle(store)

    def test_an_id_twice_in_a_batch_is_decided_by_the_first(self, store: Store) -> None:
        submit_many(store, 2)
        worker = join(store)
        one, two = claim(store, worker, 2)

        verdicts = report(store, worker, succeeded(one, '"1"'), succeeded(two), succeeded(one, '"2"'), failed(one), failed(two))

        assert verdicts == [
            Accepted(one.fence, State.SUCCEEDED),
            Accepted(two.fence, State.SUCCEEDED),
            Accepted(one.fence, State.SUCCEEDED),
            LeaseLost(one.fence),
            LeaseLost(two.fence),
        ]
        assert store.job(one.id).result == '"1"'
        settle(store)

    @pytest.mark.parametrize(("end", "state"), REPEATS.values(), ids=REPEATS)
    def test_a_repeated_outcome_is_accepted_and_changes_nothing(
        self, store: Store, clock: MovableClock, end: Callable[[Claimed], Outcome], state: State
    ) -> None:
        submit(store, backoff=[5])
        worker = join(store)
        run = claim_one(store, worker)
        report(store, worker, end(run))
        before = store.job(run.id), store.history(run.id), store.counts()
        clock.advance(1)

        assert report(store, worker, end(run)) == [Accepted(run.fence, state)]

        assert (store.job(run.id), store.history(run.id), store.counts()) == before

    def test_the_repeat_of_an_outcome_is_accepted_while_the_next_run_goes_on(self, store: Store) -> None:
        submit(store, backoff=[0])
        worker = join(store)
        first = claim_one(store, worker)
        report(store, worker, failed(first))
        second = claim_one(store, worker)

        assert report(store, worker, failed(first)) == [Accepted(first.fence, State.RUNNING)]
        assert report(store, worker, succeeded(second)) == [Accepted(second.fence, State.SUCCEEDED)]

    def test_another_outcome_than_the_one_on_record_is_refused(self, store: Store) -> None:
        submit(store, backoff=[5])
        worker = join(store)
        run = claim_one(store, worker)
        report(store, worker, failed(run))

        others: list[Outcome] = [succeeded(run), failed(run, kind=FailureKind.TIMEOUT), released(run)]

        assert [report(store, worker, outcome) for outcome in others] == [[LeaseLost(run.fence)]] * 3

    @pytest.mark.parametrize("end", [succeeded, failed, released])
    def test_the_repeat_of_another_worker_is_refused(self, store: Store, end: Callable[[Claimed], Outcome]) -> None:
        submit(store, backoff=[5])
        worker, other = join(store), join(store, "other")
        run = claim_one(store, worker)
        report(store, worker, end(run))

        assert report(store, other, end(run)) == [LeaseLost(run.fence)]

    def test_a_worker_that_is_gone_changes_nothing_and_gets_nothing(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2)
        worker = join(store)
        run = claim_one(store, worker)
        fall_silent(store, clock)

        exchange = store.exchange(worker, [succeeded(run)], Wants(anywhere=5), [run.fence], 1)

        assert (exchange.known, exchange.verdicts, exchange.claimed) == (False, (LeaseLost(run.fence),), ())
        assert store.job(run.id).state is State.RETRYING

    def test_an_unknown_worker_is_not_known(self, store: Store) -> None:
        submit(store)

        exchange = store.exchange(new_id(), [], Wants(anywhere=5))

        assert (exchange.known, exchange.claimed) == (False, ())


class Spoiled:
    """One outcome that cannot be stored never stops the others."""

    def test_a_result_that_cannot_be_stored_ends_its_job_alone_with_that_reason(self, store: Store) -> None:
        submit_many(store, 1_000)
        worker = join(store)
        runs = claim(store, worker, 1_000)
        outcomes = [succeeded(run, '"\ud800"' if index == 617 else '"good"') for index, run in enumerate(runs)]

        exchange = store.exchange(worker, outcomes, Wants())

        assert exchange.verdicts[617] == Accepted(runs[617].fence, State.DEAD)
        assert sum(verdict == Accepted(run.fence, State.SUCCEEDED) for run, verdict in zip(runs, exchange.verdicts, strict=True)) == 999
        job = store.job(runs[617].id)
        assert (job.state, job.error and job.error.type) == (State.DEAD, "unstorable")
        assert store.counts() == {("default", State.SUCCEEDED): 999, ("default", State.DEAD): 1}
        settle(store)

    def test_an_error_that_cannot_be_stored_ends_its_job_alone(self, store: Store) -> None:
        submit_many(store, 3, backoff=[60])
        worker = join(store)
        one, two, three = claim(store, worker, 3)

        verdicts = report(store, worker, failed(one), failed(two, "\ud800"), released(three))

        assert [verdict.state for verdict in verdicts if isinstance(verdict, Accepted)] == [State.RETRYING, State.DEAD, State.QUEUED]
        settle(store)

    def test_a_run_that_cannot_be_named_is_no_run(self, store: Store) -> None:
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)
        impossible = [Fence("\ud800", 1), Fence(run.id, 1 << 70)]

        verdicts = report(store, worker, succeeded(impossible[0]), succeeded(run), failed(impossible[1]))

        assert verdicts == [LeaseLost(impossible[0]), Accepted(run.fence, State.SUCCEEDED), LeaseLost(impossible[1])]

    def test_durations_out_of_bounds_end_their_job_alone(self, store: Store) -> None:
        submit_many(store, 3)
        worker = join(store)
        one, two, three = claim(store, worker, 3)

        report(store, worker, succeeded(one, waited=1 << 70), succeeded(two, waited=-5, ran=-5), succeeded(three))

        assert [store.job(run.id).state for run in (one, two, three)] == [State.DEAD, State.SUCCEEDED, State.SUCCEEDED]
        settle(store)

    def test_claims_go_on_in_the_same_exchange(self, store: Store) -> None:
        submit_many(store, 2)
        worker = join(store)
        run = claim_one(store, worker)

        exchange = store.exchange(worker, [succeeded(run, '"\udfff"')], Wants(anywhere=1))

        assert (len(exchange.verdicts), len(exchange.claimed)) == (1, 1)
