"""How jobs come in: what is stored of a submission, what its receipt says, and what a taken id or key does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from workmill.clock import from_datetime, to_datetime
from workmill.domain.errors import StoreFailure
from workmill.domain.job import Receipt
from workmill.domain.limits import SECOND
from workmill.domain.outcome import ReleaseReason
from workmill.domain.states import State
from workmill.testing.factories import a_job, claim, claim_one, failed, join, released, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, a_dead_job, only, settle, states

if TYPE_CHECKING:
    from workmill.store.base import Store
    from workmill.testing.clock import MovableClock

EXACT = [
    '{"a": 1E2, "a": -0, "b": 9007199254740993}',
    "123456789012345678901234567890",
    "-0",
    "  [ 1.50 , 1e-7 ]\n",
    r'"\u0000 \ud83d\ude00 \/"',
    '"\x7f é 漢字 😀 \u2028"',
    '""',
    "null",
]


class Submitting:
    """What is submitted is stored, once, as it came."""

    def test_a_job_that_is_due_is_queued(self, store: Store) -> None:
        receipt = submit(store, "mail", queue="mails")

        assert receipt == Receipt(receipt.id, State.QUEUED, "mails", "mail", created=True)
        assert store.job(receipt.id).state is State.QUEUED

    def test_receipts_come_in_the_order_of_the_jobs(self, store: Store) -> None:
        jobs = [a_job(delay=index % 2) for index in range(10)]

        receipts = store.submit(jobs)

        assert [receipt.id for receipt in receipts] == [job.id for job in jobs]
        assert [receipt.state for receipt in receipts] == [State.QUEUED, State.SCHEDULED] * 5

    def test_nothing_submitted_is_nothing_answered(self, store: Store) -> None:
        assert store.submit([]) == []

    def test_every_option_is_stored(self, store: Store, clock: MovableClock) -> None:
        options: dict[str, Any] = {
            "queue": "q",
            "priority": -7,
            "timeout": 0.5,
            "max_attempts": 1,
            "max_losses": 9,
            "backoff": [1.0, 2.0],
            "unique_key": "k é",
            "tags": ["a", "b"],
            "meta": '{"m":1}',
            "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        }

        job = store.job(submit(store, "t", "[1]", **options).id)

        assert job.backoff == "[1.0, 2.0]"
        assert {name: getattr(job, name) for name in options} == {**options, "backoff": job.backoff, "tags": ("a", "b")}
        assert (job.type, job.payload, job.attempt, job.lease, job.losses) == ("t", "[1]", 0, 0, 0)
        assert job.created_at == job.run_at == to_datetime(clock())

    @pytest.mark.parametrize("text", EXACT)
    def test_a_payload_comes_back_as_the_text_that_it_was(self, store: Store, text: str) -> None:
        receipt = submit(store, payload=text)

        assert store.job(receipt.id).payload == text
        assert claim_one(store, join(store)).payload == text

    def test_a_payload_of_the_largest_size_comes_back(self, store: Store) -> None:
        text = '"' + "x" * ((1 << 20) - 2) + '"'

        submit(store, payload=text)

        assert claim_one(store, join(store)).payload == text

    def test_a_delay_of_zero_is_no_delay(self, store: Store) -> None:
        assert submit(store, delay=0).state is State.QUEUED

    def test_the_least_delay_is_one(self, store: Store, clock: MovableClock) -> None:
        receipt = submit(store, delay=0.000_001)

        assert receipt.state is State.SCHEDULED
        assert from_datetime(store.job(receipt.id).run_at) == clock() + 1

    def test_a_time_that_has_come_is_kept_and_queues(self, store: Store, clock: MovableClock) -> None:
        past = submit(store, run_at=to_datetime(clock() - SECOND))
        now = submit(store, run_at=to_datetime(clock()))
        future = submit(store, run_at=to_datetime(clock() + 1))

        assert states(store, [past.id, now.id, future.id]) == [State.QUEUED, State.QUEUED, State.SCHEDULED]
        assert from_datetime(store.job(past.id).run_at) == clock() - SECOND

    def test_deadlines_count_from_the_stores_clock_or_stand_as_given(self, store: Store, clock: MovableClock) -> None:
        within = submit(store, expires_in=5)
        at = submit(store, expires_at=to_datetime(clock() + 7))

        assert from_datetime(store.job(within.id).expires_at or to_datetime(0)) == clock() + 5 * SECOND
        assert from_datetime(store.job(at.id).expires_at or to_datetime(0)) == clock() + 7

    def test_many_jobs_are_one_submission(self, store: Store) -> None:
        receipts = submit_many(store, 2_345)

        assert len({receipt.id for receipt in receipts}) == 2_345
        assert store.counts() == {("default", State.QUEUED): 2_345}

    def test_a_submission_is_counted_and_makes_its_queue_known(self, store: Store) -> None:
        store.submit([a_job(queue="a"), a_job(queue="b", delay=60), a_job(queue="a")])

        assert store.counts() == {("a", State.QUEUED): 2, ("b", State.SCHEDULED): 1}
        assert [queue.name for queue in store.queues()] == ["a", "b"]
        settle(store)

    def test_a_queue_stays_known_when_its_jobs_are_gone(self, store: Store, clock: MovableClock) -> None:
        store.cancel(only(submit(store, queue="once").id), actor=ACTOR)
        clock.advance(1)
        store.prune(0, 0)
        settle(store)

        assert [(queue.name, dict(queue.counts)) for queue in store.queues()] == [("once", {})]

    def test_a_new_job_leaves_the_settings_of_its_queue(self, store: Store) -> None:
        store.pause("default", actor=ACTOR)

        submit(store)

        assert [queue.paused for queue in store.queues()] == [True]

    def test_a_submission_with_a_job_that_cannot_be_stored_stores_none(self, store: Store) -> None:
        good, bad = a_job(), a_job()._replace(payload='"\ud800"')

        with pytest.raises(StoreFailure):
            store.submit([good, bad])

        assert store.counts() == {}
        assert submit(store, id=good.id).created

    def test_submissions_of_many_threads_fail_or_succeed_each_by_itself(self, store: Store) -> None:
        threads, rounds = 8, 25
        refused: list[int] = []
        made: list[Receipt] = []
        barrier = threading.Barrier(threads)

        def run(number: int) -> None:
            barrier.wait()
            for turn in range(rounds):
                job = a_job(queue=f"q{number}")
                try:
                    made.extend(store.submit([job._replace(meta="\udfff") if turn % 5 == number % 5 else job]))
                except StoreFailure:
                    refused.append(number)

        _all([threading.Thread(target=run, args=(number,)) for number in range(threads)])

        assert len(refused) == threads * rounds // 5
        assert sum(store.counts().values()) == len(made) == threads * rounds * 4 // 5
        assert all(store.job(receipt.id).queue == receipt.queue for receipt in made)
        settle(store)


class RepeatedIds:
    """An id names one job: a submission that is repeated, because its answer was lost, makes nothing twice."""

    def test_a_repeated_id_is_answered_with_the_job_that_has_it(self, store: Store) -> None:
        first = submit(store, "first", '"1"', queue="a")

        again = store.submit([a_job("other", '"2"', id=first.id, queue="b")])

        assert again == [Receipt(first.id, State.QUEUED, "a", "first", created=False)]
        assert store.job(first.id).payload == '"1"'
        assert store.counts() == {("a", State.QUEUED): 1}

    def test_the_answer_to_a_repeat_says_how_far_the_job_has_come(self, store: Store) -> None:
        first = submit(store)
        worker = join(store)
        report(store, worker, succeeded(claim_one(store, worker)))

        (again,) = store.submit([a_job(id=first.id)])

        assert again.state is State.SUCCEEDED

    def test_the_same_id_twice_in_one_submission_is_the_first_job(self, store: Store) -> None:
        job = a_job(payload='"1"')

        first, second = store.submit([job, job._replace(payload='"2"')])

        assert (first.created, second.created, first.id) == (True, False, second.id)
        assert store.job(job.id).payload == '"1"'
        settle(store)

    def test_new_jobs_among_repeated_ones_are_made(self, store: Store) -> None:
        old = submit_many(store, 150)
        jobs = [a_job(id=old[index // 2].id) if index % 2 else a_job() for index in range(300)]

        receipts = store.submit(jobs)

        assert [receipt.created for receipt in receipts] == [True, False] * 150
        assert [receipt.id for receipt in receipts] == [job.id for job in jobs]
        assert store.counts() == {("default", State.QUEUED): 300}

    def test_a_repeated_id_wins_over_a_taken_key(self, store: Store) -> None:
        job, holder = submit(store), submit(store, unique_key="k")

        (again,) = store.submit([a_job(id=job.id, unique_key="k")])

        assert again.id == job.id != holder.id


class UniqueKeys:
    """At most one live job a type and key."""

    def test_a_taken_key_is_answered_with_the_live_job(self, store: Store) -> None:
        first = submit(store, "mail", '"1"', queue="a", unique_key="k", delay=60)

        again = submit(store, "mail", '"2"', queue="b", unique_key="k")

        assert again == Receipt(first.id, State.SCHEDULED, "a", "mail", created=False)
        assert store.counts() == {("a", State.SCHEDULED): 1}

    def test_a_key_belongs_to_a_type(self, store: Store) -> None:
        assert submit(store, "mail", unique_key="k").created
        assert submit(store, "call", unique_key="k").created

    def test_of_two_jobs_with_one_key_in_one_submission_the_second_gets_the_first(self, store: Store) -> None:
        first, second = store.submit([a_job(unique_key="k"), a_job(unique_key="k")])

        assert (first.created, second.created, second.id) == (True, False, first.id)
        settle(store)

    def test_a_key_is_held_while_its_job_runs_waits_or_is_set_aside(self, store: Store) -> None:
        first = submit(store, unique_key="k", backoff=[60])
        worker = join(store)

        running = claim_one(store, worker)
        assert submit(store, unique_key="k").id == first.id
        report(store, worker, failed(running))
        assert submit(store, unique_key="k") == Receipt(first.id, State.RETRYING, "default", "noop", created=False)
        store.reschedule(only(first.id), None, actor=ACTOR)
        report(store, worker, released(claim_one(store, worker), ReleaseReason.UNKNOWN_TYPE))
        assert submit(store, unique_key="k").id == first.id

    def test_a_key_is_free_when_its_job_has_ended(self, store: Store) -> None:
        worker = join(store)
        for ending in (succeeded, lambda run: failed(run, final=True)):
            assert submit(store, unique_key="k").created
            report(store, worker, ending(claim_one(store, worker)))
        assert submit(store, unique_key="k").created

    def test_a_key_is_free_when_its_job_was_cancelled(self, store: Store) -> None:
        store.cancel(only(submit(store, unique_key="k").id), actor=ACTOR)

        assert submit(store, unique_key="k").created

    def test_jobs_without_a_key_never_meet(self, store: Store) -> None:
        assert all(receipt.created for receipt in submit_many(store, 10))

    def test_the_end_of_a_job_never_meets_the_key_of_a_later_one(self, store: Store) -> None:
        dead = a_dead_job(store, unique_key="k")
        later = submit(store, unique_key="k")

        assert store.revive(only(dead.id), actor=ACTOR).skipped == {"key_taken": 1}
        assert states(store, [dead.id, later.id]) == [State.DEAD, State.QUEUED]

    def test_threads_that_submit_one_key_at_once_get_one_job(self, store: Store) -> None:
        threads = 8
        for number in range(10):
            receipts: list[Receipt] = []
            barrier = threading.Barrier(threads)

            def run(key: str, barrier: threading.Barrier = barrier, receipts: list[Receipt] = receipts) -> None:
                barrier.wait()
                receipts.append(submit(store, unique_key=key))

            _all([threading.Thread(target=run, args=(f"k{number}",)) for _ in range(threads)])

            assert len({receipt.id for receipt in receipts}) == 1
            assert [receipt.created for receipt in receipts].count(True) == 1
        assert store.counts() == {("default", State.QUEUED): 10}


class Waking:
    """Whoever subscribed hears of what may concern them."""

    def test_a_submission_wakes_those_who_subscribed(self, store: Store) -> None:
        woken = threading.Event()
        stop = store.subscribe(woken.set)

        submit(store)

        assert woken.wait(5)
        stop()

    def test_an_ending_and_a_give_back_wake_too(self, store: Store) -> None:
        submit_many(store, 2)
        worker = join(store)
        one, other = claim(store, worker, 2)
        for outcome in (succeeded(one), released(other)):
            woken = threading.Event()
            stop = store.subscribe(woken.set)
            report(store, worker, outcome)
            assert woken.wait(5)
            stop()

    def test_nobody_is_woken_after_having_stopped(self, store: Store) -> None:
        woken: list[int] = []
        store.subscribe(lambda: woken.append(1))()
        woken.clear()

        submit(store)

        assert woken == []

    def test_a_listener_that_raises_hurts_nobody(self, store: Store) -> None:
        woken = threading.Event()
        stops = [store.subscribe(_fail), store.subscribe(woken.set)]

        assert submit(store).created

        assert woken.wait(5)
        for stop in stops:
            stop()


def _fail() -> None:
    raise ZeroDivisionError


def _all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
