"""How operators say which jobs they mean, and what they set for queues and workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workmill.domain.errors import InvalidInput, NotFound
from workmill.domain.job import Bulk, Selection
from workmill.domain.states import State
from workmill.domain.worker import Wants, WorkerState
from workmill.ids import new_id
from workmill.testing.factories import claim, claim_one, join, submit, submit_many
from workmill.testing.steps import (
    ACTOR,
    a_cancelled_job,
    a_dead_job,
    an_expired_job,
    beat,
    only,
    states,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

ENDED_WITHOUT_SUCCESS = [a_dead_job, a_cancelled_job, an_expired_job]
EVERYTHING = Selection()


VERBS: dict[str, Callable[[Store, Selection], Bulk]] = {
    "cancel": lambda store, selection: store.cancel(selection, actor=ACTOR),
    "revive": lambda store, selection: store.revive(selection, actor=ACTOR),
    "discard": lambda store, selection: store.discard(selection, actor=ACTOR),
    "reschedule": lambda store, selection: store.reschedule(selection, None, actor=ACTOR),
}


class Selecting:
    """All verbs understand selections, batches and bad input in one way."""

    def test_a_large_selection_is_done_in_batches_with_a_cursor(self, store: Store) -> None:
        submit_many(store, 5)

        first = store.cancel(EVERYTHING, actor=ACTOR, limit=2)
        second = store.cancel(EVERYTHING, actor=ACTOR, limit=2, cursor=first.next)
        third = store.cancel(EVERYTHING, actor=ACTOR, limit=2, cursor=second.next)

        assert [first.done, second.done, third.done] == [2, 2, 1]
        assert third.next is None
        assert store.counts() == {("default", State.CANCELLED): 5}

    def test_ids_are_done_in_batches_too(self, store: Store) -> None:
        ids = [receipt.id for receipt in submit_many(store, 3)]

        first = store.cancel(only(*ids), actor=ACTOR, limit=2)
        second = store.cancel(only(*ids), actor=ACTOR, limit=2, cursor=first.next)

        assert [(first.done, bool(first.next)), (second.done, bool(second.next))] == [(2, True), (1, False)]

    def test_a_batch_that_is_skipped_whole_does_not_stop_the_walk(self, store: Store) -> None:
        jobs = [a_dead_job(store, unique_key=f"k{number}") for number in range(4)]
        for number in (2, 3):
            submit(store, unique_key=f"k{number}")
        dead = Selection(states=(State.DEAD,))

        first = store.revive(dead, actor=ACTOR, limit=2)
        second = store.revive(dead, actor=ACTOR, limit=2, cursor=first.next)

        assert (first.done, first.skipped, second.done, second.next) == (0, {"key_taken": 2}, 2, None)
        assert states(store, [job.id for job in jobs]) == [State.QUEUED, State.QUEUED, State.DEAD, State.DEAD]

    @pytest.mark.parametrize("verb", ["cancel", "reschedule"])
    def test_our_own_queues_are_left_alone_unless_they_are_named(self, store: Store, verb: str) -> None:
        receipt = submit(store)

        assert VERBS[verb](store, EVERYTHING).done == 1
        assert store.count(Selection(queue="workmill.webhooks")) == 0
        assert store.job(receipt.id).queue == "default"

    @pytest.mark.parametrize(
        ("selection", "matches"),
        [
            (Selection(queue="mail"), 1),
            (Selection(type="other"), 1),
            (Selection(tag="red"), 1),
            (Selection(tag="re"), 0),
            (Selection(unique_key="k"), 1),
            (Selection(trace_id="0af7651916cd43dd8448eb211c80319c"), 1),
            (Selection(states=(State.SCHEDULED,)), 1),
            (Selection(states=(State.SCHEDULED, State.QUEUED)), 5),
            (Selection(queue="mail", type="other"), 0),
            (Selection(error_class="ValueError"), 0),
            (Selection(worker_id="nobody"), 0),
            (Selection(), 5),
        ],
    )
    def test_every_filter_selects_what_it_says(self, store: Store, selection: Selection, matches: int) -> None:
        submit(store, queue="mail")
        submit(store, type="other")
        submit(store, tags=["green", "red"])
        submit(store, unique_key="k", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        submit(store, delay=10)

        assert store.count(selection) == matches
        assert len(store.jobs(selection).jobs) == matches
        assert store.cancel(selection, actor=ACTOR).done == matches

    def test_jobs_are_selected_by_error_worker_and_time(self, store: Store, clock: MovableClock) -> None:
        a_dead_job(store)
        clock.advance(10)
        submit(store)
        worker = join(store)
        run = claim_one(store, worker)

        assert store.count(Selection(error_class="ValueError")) == 1
        assert [job.id for job in store.jobs(Selection(worker_id=worker, states=(State.RUNNING,))).jobs] == [run.id]
        assert store.count(Selection(created_after=clock())) == 1
        assert store.count(Selection(created_before=clock())) == 1

    def test_a_count_stops_at_its_limit(self, store: Store) -> None:
        submit_many(store, 5, tags=["a"])

        assert store.count(EVERYTHING, limit=3) == 3
        assert store.count(Selection(tag="a"), limit=3) == 3

    @pytest.mark.parametrize("verb", VERBS)
    @pytest.mark.parametrize(
        ("field", "selection"),
        [
            ("queue", Selection(queue="a/b")),
            ("type", Selection(type="")),
            ("tag", Selection(tag="é")),
            ("unique_key", Selection(unique_key="x" * 201)),
            ("states", Selection(states=("done",))),  # type: ignore[arg-type]
            ("ids", Selection(ids=("\ud800",))),
            ("error_class", Selection(error_class="\ud800")),
            ("created_after", Selection(created_after=-1)),
            ("created_before", Selection(created_before=2**62)),
        ],
    )
    def test_a_selection_that_no_job_can_match_is_refused_by_field(self, store: Store, verb: str, field: str, selection: Selection) -> None:
        with pytest.raises(InvalidInput) as refusal:
            VERBS[verb](store, selection)

        assert refusal.value.field == field

    @pytest.mark.parametrize("limit", [0, -1, 10**9, 1.5, True])
    def test_a_limit_is_a_whole_number_in_its_range(self, store: Store, limit: Any) -> None:
        with pytest.raises(InvalidInput, match="limit"):
            store.cancel(EVERYTHING, actor=ACTOR, limit=limit)

    @pytest.mark.parametrize("cursor", ["", "!", "é", "AAAA", "x" * 500])
    def test_a_cursor_is_one_that_was_given(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidInput, match="cursor"):
            store.cancel(EVERYTHING, actor=ACTOR, cursor=cursor)

    @pytest.mark.parametrize("actor", ["", "x" * 201, "a\x00b", "\ud800", None, 1])
    def test_whoever_acts_has_a_name(self, store: Store, actor: Any) -> None:
        with pytest.raises(InvalidInput, match="actor"):
            store.cancel(EVERYTHING, actor=actor)

    def test_what_was_done_is_in_the_audit_and_what_was_not_is_not(self, store: Store) -> None:
        submit_many(store, 2, queue="mail")
        store.cancel(Selection(queue="mail"), actor="anna")
        store.cancel(Selection(queue="mail"), actor="boris")

        (line,) = store.audit()
        assert (line.actor, line.action, line.target, line.count) == ("anna", "cancel", "jobs with queue=mail", 2)


class Setting:
    """Queues are paused and limited, workers drained and resized; everything for claims that begin later."""

    def test_nothing_is_claimed_from_a_paused_queue(self, store: Store) -> None:
        submit(store)
        other = submit(store, queue="other")
        store.pause("default", actor=ACTOR)

        answer = store.exchange(join(store), (), Wants(anywhere=5))

        assert [run.id for run in answer.claimed] == [other.id]
        assert answer.paused == {"default"}

    def test_a_resumed_queue_goes_on(self, store: Store) -> None:
        submit(store)
        store.pause("default", actor=ACTOR)
        store.resume("default", actor=ACTOR)

        assert len(claim(store, join(store))) == 1

    def test_a_queue_can_be_paused_before_it_has_jobs(self, store: Store) -> None:
        store.pause("later", actor=ACTOR)
        submit(store, queue="later")

        assert claim(store, join(store), 1, "later") == []
        assert [(queue.name, queue.paused) for queue in store.queues()] == [("later", True)]

    @pytest.mark.parametrize("limit", [0, 1, 2])
    def test_no_more_jobs_of_a_queue_run_than_its_limit(self, store: Store, limit: int) -> None:
        submit_many(store, 5)
        store.limit("default", limit, actor=ACTOR)

        held = sum(len(claim(store, join(store), 5)) for _ in range(3))

        assert held == limit

    def test_a_limit_can_be_lifted(self, store: Store) -> None:
        submit_many(store, 5)
        store.limit("default", 1, actor=ACTOR)
        store.limit("default", None, actor=ACTOR)

        assert len(claim(store, join(store), 5)) == 5

    def test_a_pause_and_a_limit_do_not_touch_each_other(self, store: Store) -> None:
        store.limit("default", 2, actor=ACTOR)
        store.pause("default", actor=ACTOR)
        store.limit("default", 3, actor=ACTOR)

        assert [(queue.paused, queue.limit) for queue in store.queues()] == [(True, 3)]
        store.resume("default", actor=ACTOR)
        assert [(queue.paused, queue.limit) for queue in store.queues()] == [(False, 3)]

    def test_a_draining_worker_claims_nothing_until_it_is_told_to_go_on(self, store: Store, clock: MovableClock) -> None:
        submit(store)
        worker = join(store)

        store.drain(worker, actor=ACTOR)
        assert claim(store, worker) == []
        assert beat(store, clock, worker).state is WorkerState.DRAINING
        store.undrain(worker, actor=ACTOR)
        assert len(claim(store, worker)) == 1

    def test_a_worker_is_told_its_new_concurrency_with_its_next_beat(self, store: Store, clock: MovableClock) -> None:
        worker = join(store, concurrency=4)

        store.set_concurrency(worker, 2, actor=ACTOR)
        assert (beat(store, clock, worker).concurrency, store.workers()[0].concurrency) == (2, 2)
        clock.advance(1)
        store.set_concurrency(worker, None, actor=ACTOR)
        assert (beat(store, clock, worker).concurrency, store.workers()[0].concurrency) == (None, 4)

    def test_a_worker_that_is_gone_cannot_be_told_anything(self, store: Store) -> None:
        worker = join(store)
        store.leave(worker)

        with pytest.raises(NotFound):
            store.drain(worker, actor=ACTOR)
        with pytest.raises(NotFound):
            store.undrain(worker, actor=ACTOR)
        with pytest.raises(NotFound):
            store.set_concurrency(new_id(), 3, actor=ACTOR)
        assert store.audit() == []

    def test_a_bad_setting_is_refused_by_name(self, store: Store) -> None:
        worker = join(store)

        for limit in (-1, 1.5, True, 10**9):
            with pytest.raises(InvalidInput, match="limit"):
                store.limit("default", limit, actor=ACTOR)  # type: ignore[arg-type]
        for concurrency in (0, -1, 2.0, 10**9):
            with pytest.raises(InvalidInput, match="concurrency"):
                store.set_concurrency(worker, concurrency, actor=ACTOR)  # type: ignore[arg-type]
        for queue in ("a/b", "", None):
            with pytest.raises(InvalidInput, match="queue"):
                store.pause(queue, actor=ACTOR)  # type: ignore[arg-type]
        assert store.queues() == []

    def test_every_setting_leaves_a_line_in_the_audit(self, store: Store) -> None:
        worker = join(store)
        store.pause("mail", actor="anna")
        store.limit("mail", 3, actor="boris")
        store.drain(worker, actor="clara")

        lines = [(line.actor, line.action, line.target) for line in store.audit()]

        assert lines == [("clara", "drain", worker), ("boris", "limit", "mail"), ("anna", "pause", "mail")]
