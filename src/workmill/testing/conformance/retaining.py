"""Upkeep: how long what has ended stays, and how counts and figures are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workmill.domain.errors import InvalidInput, NotFound
from workmill.domain.states import State
from workmill.testing.factories import LEASE, claim, claim_one, join, submit, submit_many
from workmill.testing.steps import (
    a_cancelled_job,
    a_dead_job,
    a_succeeded_job,
    pass_time,
    settle,
)

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

DAY = 86_400


class Pruning:
    """What has ended stays as long as it was told to, and what is dead longer."""

    def test_a_finished_job_goes_with_its_history_after_its_time(self, store: Store, clock: MovableClock) -> None:
        job = a_succeeded_job(store)
        clock.advance(100)
        assert store.prune(retain=100, retain_dead=None) == 0

        clock.advance(1)

        assert store.prune(retain=100, retain_dead=None) == 1
        with pytest.raises(NotFound):
            store.job(job.id)
        settle(store)

    def test_a_dead_job_stays_until_its_own_time(self, store: Store, clock: MovableClock) -> None:
        job = a_dead_job(store)
        clock.advance(10 * DAY)

        assert store.prune(retain=1, retain_dead=None) == 0
        assert store.prune(retain=1, retain_dead=11 * DAY) == 0
        assert store.prune(retain=None, retain_dead=9 * DAY) == 1
        with pytest.raises(NotFound):
            store.history(job.id)
        settle(store)

    def test_zero_keeps_nothing_and_none_keeps_everything(self, store: Store, clock: MovableClock) -> None:
        a_succeeded_job(store)
        a_cancelled_job(store)
        clock.advance(0.000_001)

        assert store.prune(retain=None, retain_dead=None) == 0
        assert store.prune(retain=0, retain_dead=None) == 2

    def test_what_has_not_ended_is_never_pruned(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 2)
        submit(store, delay=1)
        claim_one(store, join(store))
        clock.advance(1_000 * DAY)

        assert store.prune(retain=0, retain_dead=0) == 0

    def test_a_batch_has_a_limit_for_both_together(self, store: Store, clock: MovableClock) -> None:
        for _ in range(2):
            a_succeeded_job(store)
            a_dead_job(store)
        clock.advance(10)

        assert [store.prune(0, 0, limit=3), store.prune(0, 0, limit=3), store.prune(0, 0, limit=3)] == [3, 1, 0]
        settle(store)

    def test_workers_that_have_long_been_gone_are_forgotten_but_not_while_a_job_names_them(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        holding = join(store, "holding")
        claim_one(store, holding)
        store.leave(join(store, "left"))
        pass_time(store, clock, int(LEASE) + 2)
        store.rescue(limit=1)
        clock.advance(30 * DAY)

        store.prune(None, None)

        assert store.workers(gone=True) == []
        settle(store)

    @pytest.mark.parametrize("retain", [-1, float("nan")])
    def test_a_retention_is_a_number_of_seconds(self, store: Store, retain: float) -> None:
        with pytest.raises(InvalidInput, match="retain"):
            store.prune(retain, None)
        with pytest.raises(InvalidInput, match="retain_dead"):
            store.prune(None, retain)


class Folding:
    """Counts and figures are the same before and after they are folded, at every moment."""

    def test_counts_are_exact_before_between_and_after(self, store: Store) -> None:
        submit_many(store, 5)
        claim(store, join(store), 2)
        expected = {("default", State.QUEUED): 3, ("default", State.RUNNING): 2}

        assert store.counts() == expected
        while store.fold(limit=1):
            assert store.counts() == expected
            assert store.invariants() == []
        assert store.counts() == expected

    def test_an_idle_store_folds_nothing(self, store: Store) -> None:
        submit(store)
        settle(store)

        assert store.fold() == 0

    def test_figures_are_the_same_before_and_after(self, store: Store, clock: MovableClock) -> None:
        a_succeeded_job(store)
        a_dead_job(store, type="other")
        before = store.stats(300)

        settle(store)

        assert store.stats(300) == before
        a_succeeded_job(store)
        settle(store)
        assert store.stats(300)[0].succeeded == 2
        clock.advance(60)
        assert store.stats(300)[0].succeeded == 2

    def test_old_minutes_become_hours_and_stay_in_longer_windows(self, store: Store, clock: MovableClock) -> None:
        for _ in range(3):
            a_succeeded_job(store)
            clock.advance(120)
        settle(store)

        clock.advance(5 * 3_600)
        settle(store)

        assert store.stats(7_200) == []
        (figures,) = store.stats(DAY)
        assert (figures.succeeded, figures.run.count) == (3, 3)

    def test_hours_are_forgotten_after_a_month(self, store: Store, clock: MovableClock) -> None:
        a_succeeded_job(store)
        settle(store)
        clock.advance(DAY)
        settle(store)

        clock.advance(31 * DAY)
        settle(store)

        clock.advance(-20 * DAY)
        assert store.stats(20 * DAY) == []
