"""Reads: what everybody sees of jobs, queues and workers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from workmill.clock import to_datetime
from workmill.domain.errors import InvalidInput, NotFound
from workmill.domain.job import Selection
from workmill.domain.limits import SECOND
from workmill.domain.outcome import FailureKind, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import WorkerState
from workmill.ids import new_id
from workmill.testing.factories import claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, a_dead_job, a_succeeded_job, beat, crash, only, settle

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

EVERYTHING = Selection()
EXACT = ['{"b":1,"a":1,"b":2}', "9007199254740993", "1E2", "-0", r'"\u0000"', '"🦊"', " [ 1 ] ", "123456789012345678901234567890"]


class Showing:
    """One job, whole; its history; how it ended."""

    @pytest.mark.parametrize("text", EXACT)
    def test_payload_result_and_metadata_come_back_byte_for_byte(self, store: Store, text: str) -> None:
        meta = f'{{"a": {text}}}'
        receipt = submit(store, payload=text, meta=meta)
        worker = join(store)
        report(store, worker, succeeded(claim_one(store, worker), text))

        job = store.job(receipt.id)

        assert (job.payload, job.result, job.meta) == (text, text, meta)

    def test_every_option_can_be_read_again(self, store: Store, clock: MovableClock) -> None:
        at = to_datetime(clock()) + timedelta(days=400)
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        options: dict[str, Any] = {
            "queue": "mail", "priority": -7, "run_at": at, "expires_at": at, "timeout": 0.5, "max_attempts": 9, "max_losses": 2,
            "unique_key": "k ", "tags": ("b", "a"), "meta": '{"a": 1}', "traceparent": trace,
        }  # fmt: skip
        receipt = submit(store, **options, backoff=[1, 2])

        job = store.job(receipt.id)

        assert {name: getattr(job, name) for name in options} == options
        assert json.loads(job.backoff or "") == [1, 2]
        assert (job.id, job.state, job.created_at) == (receipt.id, State.SCHEDULED, to_datetime(clock()))

    def test_a_job_that_never_was_is_not_found(self, store: Store) -> None:
        for read in (store.job, store.history):
            with pytest.raises(NotFound):
                read(new_id())

    def test_the_latest_error_is_shown_with_its_traceback(self, store: Store) -> None:
        job = a_dead_job(store)

        assert job.error == ("ValueError", "boom", "trace")

    def test_the_history_tells_every_run_oldest_first(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, backoff=[0])
        crash(store, clock, held=1)
        store.promote()
        worker = join(store, "second")
        report(store, worker, failed(claim_one(store, worker), kind=FailureKind.TIMEOUT))
        report(store, worker, released(claim_one(store, worker), ReleaseReason.SHUTDOWN))
        clock.advance(1)
        run = claim_one(store, worker)

        attempts = store.history(receipt.id).attempts

        assert [attempt.kind for attempt in attempts] == ["worker_lost", "timeout", "released", "running"]
        assert [attempt.lease for attempt in attempts] == [1, 2, 3, 4]
        assert [attempt.number for attempt in attempts] == [1, 1, 2, 2]
        assert [attempt.worker for attempt in attempts] == ["doomed", "second", "second", "second"]
        assert (attempts[-1].worker_id, attempts[-1].ended_at) == (worker, None)
        report(store, worker, succeeded(run))
        assert [attempt.kind for attempt in store.history(receipt.id).attempts][-1] == "succeeded"

    def test_a_job_that_never_ran_has_no_attempts(self, store: Store) -> None:
        assert store.history(submit(store).id).attempts == ()

    def test_endings_are_told_of_those_that_have_ended(self, store: Store) -> None:
        done, dead, waiting = a_succeeded_job(store), a_dead_job(store), submit(store)

        assert store.endings([done.id, dead.id, waiting.id, new_id()]) == {done.id: State.SUCCEEDED, dead.id: State.DEAD}
        assert store.endings([]) == {}


class Listing:
    """Pages: newest first, without payloads, by a cursor that a change does not disturb."""

    def test_jobs_are_listed_newest_first_without_payload_and_result(self, store: Store) -> None:
        receipts = submit_many(store, 3, payload='{"a": 1}')

        page = store.jobs(EVERYTHING)

        assert [job.id for job in page.jobs] == [receipt.id for receipt in reversed(receipts)]
        assert {(job.payload, job.result) for job in page.jobs} == {(None, None)}
        assert page.next is None

    def test_pages_follow_one_another_whatever_is_added_or_removed(self, store: Store, clock: MovableClock) -> None:
        ids = [a_succeeded_job(store).id for _ in range(5)]
        first = store.jobs(EVERYTHING, limit=2)
        submit(store)
        clock.advance(1)
        store.prune(retain=0, retain_dead=None, limit=1)

        second = store.jobs(EVERYTHING, limit=2, cursor=first.next)

        assert [job.id for job in (*first.jobs, *second.jobs)] == list(reversed(ids[1:]))

    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    @pytest.mark.parametrize(
        "selection", [EVERYTHING, Selection(tag="even"), Selection(states=(State.QUEUED,)), Selection(queue="default")]
    )
    def test_all_pages_together_are_all_that_match_once_each(self, store: Store, limit: int, selection: Selection) -> None:
        for number in range(7):
            submit(store, tags=["odd" if number % 2 else "even"], delay=number % 3 or None)
        pages = [store.jobs(selection, limit=limit)]
        while pages[-1].next:
            pages.append(store.jobs(selection, limit=limit, cursor=pages[-1].next))

        found = [job.id for page in pages for job in page.jobs]

        assert found == [job.id for job in store.jobs(selection).jobs]
        assert len(found) == store.count(selection)

    @pytest.mark.parametrize(
        "state", [State.SCHEDULED, State.QUEUED, State.RUNNING, State.RETRYING, State.SUCCEEDED, State.DEAD, State.CANCELLED]
    )
    def test_each_state_can_be_listed(self, store: Store, state: State) -> None:
        expected = self._one_of_each(store)

        page = store.jobs(Selection(states=(state,)))

        assert [(job.id, job.state) for job in page.jobs] == [(expected[state], state)]

    @pytest.mark.parametrize("cursor", ["", "!", "é", "AAAA"])
    def test_a_cursor_is_one_that_was_given(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidInput, match="cursor"):
            store.jobs(EVERYTHING, cursor=cursor)

    @pytest.mark.parametrize("limit", [0, -1, 1_001, 1.0])
    def test_a_page_has_one_to_a_thousand_jobs(self, store: Store, limit: Any) -> None:
        with pytest.raises(InvalidInput, match="limit"):
            store.jobs(EVERYTHING, limit=limit)

    def _one_of_each(self, store: Store) -> dict[State, str]:
        worker = join(store)
        ids = {State.SUCCEEDED: a_succeeded_job(store).id, State.DEAD: a_dead_job(store).id}
        ids[State.RETRYING] = submit(store, backoff=[9]).id
        report(store, worker, failed(claim_one(store, worker)))
        ids[State.RUNNING] = submit(store).id
        claim_one(store, worker)
        ids[State.CANCELLED] = submit(store).id
        store.cancel(only(ids[State.CANCELLED]), actor=ACTOR)
        ids[State.SCHEDULED], ids[State.QUEUED] = submit(store, delay=9).id, submit(store).id
        return ids


class Counting:
    """Queues, counts and figures are maintained; they are exact in every snapshot."""

    def test_counts_follow_every_change(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 4)
        assert store.counts() == {("default", State.QUEUED): 4}
        worker = join(store)
        runs = claim(store, worker, 3)
        assert store.counts() == {("default", State.QUEUED): 1, ("default", State.RUNNING): 3}
        report(store, worker, succeeded(runs[0]), failed(runs[1], final=True), failed(runs[2]))
        assert store.counts() == {
            ("default", State.QUEUED): 1, ("default", State.SUCCEEDED): 1, ("default", State.DEAD): 1, ("default", State.RETRYING): 1,
        }  # fmt: skip
        clock.advance(1)
        store.prune(0, 0)
        assert store.counts() == {("default", State.QUEUED): 1, ("default", State.RETRYING): 1}
        settle(store)

    def test_a_queue_shows_its_counts_what_is_aside_and_since_when_the_oldest_waits(self, store: Store, clock: MovableClock) -> None:
        submit(store, queue="mail")
        worker = join(store)
        report(store, worker, released(claim_one(store, worker, "mail"), ReleaseReason.UNKNOWN_TYPE))
        clock.advance(5)
        since = clock()
        submit(store, queue="mail", priority=-5)
        clock.advance(5)
        submit(store, queue="mail", priority=5)

        (queue,) = store.queues()

        assert (queue.name, queue.paused, queue.limit, queue.aside) == ("mail", False, None, 1)
        assert queue.counts == {State.QUEUED: 3}
        assert queue.oldest_waiting == to_datetime(since)

    def test_a_queue_counts_the_workers_that_serve_it(self, store: Store) -> None:
        submit(store, queue="mail")
        submit(store, queue="video")
        join(store, queues={"mail": 2})
        join(store)
        store.leave(join(store))

        assert {queue.name: queue.workers for queue in store.queues()} == {"mail": 2, "video": 1}

    def test_a_queue_stays_in_sight_when_its_jobs_are_gone(self, store: Store, clock: MovableClock) -> None:
        a_succeeded_job(store)
        clock.advance(1)
        store.prune(0, 0)

        assert [(queue.name, queue.counts) for queue in store.queues()] == [("default", {})]

    def test_figures_tell_what_ended_in_the_window(self, store: Store) -> None:
        submit_many(store, 4)
        worker = join(store)
        runs = claim(store, worker, 4)
        report(
            store,
            worker,
            succeeded(runs[0], waited=1_000, ran=2 * SECOND),
            succeeded(runs[1], ran=4 * SECOND),
            failed(runs[2], ran=SECOND),
            failed(runs[3], final=True, ran=SECOND),
        )

        (figures,) = store.stats(60)

        assert (figures.queue, figures.window_seconds) == ("default", 60)
        assert (figures.succeeded, figures.failed, figures.dead, figures.error_rate) == (2, 2, 1, 0.5)
        assert (figures.run.count, figures.run.max) == (4, 4.0)
        assert figures.run.p50 == pytest.approx(1.0, rel=0.07)
        assert figures.per_second > 0

    def test_a_window_forgets_what_is_older(self, store: Store, clock: MovableClock) -> None:
        a_succeeded_job(store)
        clock.advance(299)
        assert store.stats(300)[0].succeeded == 1

        clock.advance(120)

        assert store.stats(300) == []

    @pytest.mark.parametrize("window", [0, -1, float("nan"), float("inf"), 10**9, True])
    def test_a_window_is_a_second_to_a_month(self, store: Store, window: float) -> None:
        with pytest.raises(InvalidInput, match="window"):
            store.stats(window)

    def test_workers_show_what_they_are_and_how_much_they_run(self, store: Store, clock: MovableClock) -> None:
        submit_many(store, 3)
        second = join(store, "b", host="h", pid=7, version="1.2", queues={"mail": 2}, concurrency=3)
        clock.advance(1)
        first = join(store, "a")
        claim(store, first, 2)

        one, two = store.workers()

        assert (one.id, one.name, one.running, one.state) == (first, "a", 2, WorkerState.RUNNING)
        assert (two.id, two.host, two.pid, two.version, two.queues, two.concurrency) == (second, "h", 7, "1.2", {"mail": 2}, 3)
        assert (two.lease_seconds, two.joined_at) == (15.0, to_datetime(clock() - SECOND))

    def test_a_heartbeat_is_seen(self, store: Store, clock: MovableClock) -> None:
        worker = join(store)
        clock.advance(3)
        beat(store, clock, worker)

        assert store.workers()[0].seen_at == to_datetime(clock())

    def test_the_audit_is_read_newest_first_up_to_a_limit(self, store: Store) -> None:
        for queue in ("a", "b", "c"):
            store.pause(queue, actor=ACTOR)

        assert [line.target for line in store.audit(limit=2)] == ["c", "b"]
        with pytest.raises(InvalidInput, match="limit"):
            store.audit(limit=0)

    def test_a_store_describes_itself(self, store: Store) -> None:
        description = store.describe()

        assert {"version", "bytes", "schema_version"} <= description.keys()

    def test_a_healthy_store_violates_nothing(self, store: Store, clock: MovableClock) -> None:
        self_made = [a_succeeded_job(store), a_dead_job(store)]
        crash(store, clock, held=1)

        assert store.invariants() == []
        assert len(self_made) == 2
