"""A store that fails and answers that are lost: nothing is lost, charged or run twice for it."""

import threading
import time
from typing import Any

import pytest

from workmill.domain.states import State

pytestmark = pytest.mark.parametrize("store", ["file"], indirect=True)

PATIENCE = 20.0
SHORT = 0.5


def test_outcomes_are_kept_while_the_store_is_away_and_handed_in_when_it_is_back(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    jobs = shop.submit(4)
    shop.start()
    shop.started(4)

    shop.faults.break_before.add("exchange")
    lock.set()
    shop.until(lambda: len(shop.told("worker.store_failed")) >= 3)
    meanwhile = shop.states(jobs)
    shop.faults.break_before.clear()
    shop.wait_for(jobs, State.SUCCEEDED)

    assert meanwhile == {State.RUNNING}
    assert [shop.runs_of(job) for job in jobs] == [1] * 4


def test_while_outcomes_are_not_committed_their_slots_are_not_free(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    shop.submit(10)
    worker = shop.start(concurrency=4)
    shop.started(4)

    shop.faults.break_before.add("exchange")
    lock.set()
    shop.until(lambda: worker.stats().uncommitted == 4)
    shop.until(lambda: len(shop.told("worker.store_failed")) >= 2)

    assert len(shop.told("job.started")) == 4


def test_a_retry_waits_longer_each_time_and_does_not_hammer_the_store(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    shop.faults.break_before.add("exchange")

    shop.start()
    shop.submit(20)
    failures = shop.until(lambda: shop.told("worker.store_failed")[4:])

    waits = [event.fields["retry_in"] for event in shop.told("worker.store_failed")]
    assert failures
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= 2.0


def test_an_outcome_whose_answer_was_swallowed_is_recorded_once(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and '"done"')
    jobs = shop.submit(4)
    shop.start()
    shop.started(4)

    shop.faults.break_after.add("exchange")
    lock.set()
    shop.until(lambda: len(shop.told("job.succeeded")) == 4)

    assert shop.states(jobs) == {State.SUCCEEDED}
    assert [shop.runs_of(job) for job in jobs] == [1] * 4
    assert shop.told("job.refused") == []


def test_claims_whose_answer_was_swallowed_run_elsewhere_within_two_leases_uncharged(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    shop.faults.break_after.add("exchange")
    jobs = shop.submit(4)
    begin = time.monotonic()

    worker = shop.start(lease_seconds=SHORT)
    shop.until(lambda: shop.told("worker.store_failed"))
    shop.wait_for(jobs, State.SUCCEEDED)

    assert time.monotonic() - begin < 10 * 2 * SHORT
    assert {shop.job(job).attempt for job in jobs} == {1}
    assert {shop.job(job).losses for job in jobs} == {0}
    assert worker.stats().lost == 0


def test_after_a_lost_answer_the_next_exchange_lists_everything_held(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    first = shop.submit(2)
    shop.start()
    shop.started(2)
    shop.faults.break_after.add("exchange")
    shop.submit(1)
    shop.until(lambda: shop.told("worker.store_failed"))

    exchanges = shop.until(lambda: [args for name, args in shop.faults.calls if name == "exchange" and args[3] is not None])

    _, _, _, held, seq = exchanges[0]
    assert sorted(fence.id for fence in held) == sorted(first)
    assert seq > 0


def test_a_worker_that_cannot_join_raises_and_starts_nothing(shop: Any) -> None:
    shop.faults.break_before.add("join")
    worker = shop.worker()
    before = threading.active_count()

    with pytest.raises(Exception, match="the store is away"):
        worker.start()

    assert threading.active_count() == before


def test_a_worker_stops_in_time_though_the_store_is_away_and_says_what_was_not_recorded(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    jobs = shop.submit(3)
    worker = shop.start()
    shop.started(3)

    shop.faults.break_before.update({"exchange", "heartbeat", "leave"})
    lock.set()
    shop.until(lambda: worker.stats().uncommitted == 3)
    worker.request_stop(0.1)
    worker.request_stop()
    left = worker.stop()

    assert left.unrecorded == 3
    assert shop.states(jobs) == {State.RUNNING}


def test_a_worker_without_a_thread_to_spare_loses_no_run(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused = threading.Thread.start, []

    def sparing(thread: threading.Thread) -> None:
        if thread.name.startswith("workmill-run") and len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    shop.handler(lambda _payload: "null")
    jobs = shop.submit(5)
    monkeypatch.setattr(threading.Thread, "start", sparing)

    shop.start()
    shop.wait_for(jobs, State.SUCCEEDED)

    assert len(refused) == 2
    assert [shop.runs_of(job) for job in jobs] == [1] * 5


def test_what_finds_no_slot_for_a_second_goes_to_another_worker(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, running, behind = shop.submit(300), shop.submit(1, payload="1"), shop.submit(50)
    shop.start(concurrency=1, lease_seconds=60.0)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(301)

    shop.start(concurrency=1, lease_seconds=60.0)
    shop.wait_for(behind, State.SUCCEEDED)

    assert shop.states(running) == {State.RUNNING}
    assert {shop.job(job).attempt for job in behind} == {1}


def test_a_limited_queue_is_not_claimed_from_ahead_of_the_slots(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    shop.store.limit("narrow", 50, actor="test")
    quick = shop.submit(300, queue="narrow")
    shop.submit(100, queue="narrow", payload="1")
    worker = shop.start(concurrency=2, lease_seconds=60.0)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(302)

    shop.until(lambda: worker.stats().uncommitted == 0)

    assert len(worker.held) == 2
