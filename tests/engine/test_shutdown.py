"""Workers that are drained and resumed, resized, and stopped in stages: what has not begun goes back, what runs may end."""

import asyncio
import threading
import time
from typing import Any

from workmill.domain.job import Selection
from workmill.domain.outcome import Fence, LeaseLost
from workmill.domain.states import State
from workmill.domain.worker import WorkerState
from workmill.engine.worker import Leftover
from workmill.testing.factories import released, report

PATIENCE = 20.0
SHORT = 0.5


def test_a_drained_worker_gives_back_what_has_not_started_finishes_what_runs_and_stays(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, running, behind = shop.submit(200), shop.submit(2, payload="1"), shop.submit(50)
    worker = shop.start(concurrency=2, lease_seconds=SHORT)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(202)

    worker.drain()
    shop.wait_for(behind, State.QUEUED)
    drained = worker.stats().state
    lock.set()
    shop.wait_for(running, State.SUCCEEDED)
    still_queued = shop.states(behind)
    worker.resume()
    shop.wait_for(behind, State.SUCCEEDED)

    assert drained == "draining"
    assert still_queued == {State.QUEUED}
    assert {shop.job(job).attempt for job in behind} == {1}


def test_a_drain_ordered_through_the_store_is_obeyed_and_undone(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    worker = shop.start(lease_seconds=SHORT)
    worker_id = worker.stats().worker_id

    shop.store.drain(worker_id, actor="test")
    shop.until(lambda: worker.stats().state == "draining")
    jobs = shop.submit(5)
    (seen,) = shop.store.workers()
    shop.store.undrain(worker_id, actor="test")
    shop.wait_for(jobs, State.SUCCEEDED)

    assert seen.state is WorkerState.DRAINING


def test_a_drain_is_obeyed_with_the_next_exchange_not_only_with_the_next_beat(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    worker = shop.start(lease_seconds=600)

    shop.store.drain(worker.stats().worker_id, actor="test")

    shop.until(lambda: worker.stats().state == "draining")


def test_concurrency_ordered_through_the_store_is_obeyed_while_jobs_run(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock))
    shop.submit(10)
    worker = shop.start(concurrency=2, lease_seconds=SHORT)
    shop.started(2)

    shop.store.set_concurrency(worker.stats().worker_id, 5, actor="test")
    shop.started(5)
    shop.store.set_concurrency(worker.stats().worker_id, None, actor="test")
    shop.until(lambda: worker.stats().concurrency == 2)

    assert len(shop.told("job.started")) == 5


def test_a_stop_waits_for_what_runs_and_gives_back_the_rest_uncharged(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, running, behind = shop.submit(300), shop.submit(10, payload="1"), shop.submit(500)
    worker = shop.start(concurrency=10)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(310)

    threading.Timer(0.05, lock.set).start()
    left = worker.stop(PATIENCE)

    assert left == Leftover()
    assert shop.states(running) == {State.SUCCEEDED}
    assert shop.states(behind) == {State.QUEUED}
    assert {shop.job(job).attempt for job in behind} == {0}
    assert shop.store.workers() == []


def test_after_the_grace_what_heeds_is_given_back_uncharged(shop: Any) -> None:
    shop.handler(shop.heeding(shop.lock()))
    jobs = shop.submit(3)
    worker = shop.start()
    shop.started(3)

    left = worker.stop(0.05)

    assert left == Leftover(interrupted=3)
    assert shop.states(jobs) == {State.QUEUED}
    assert {shop.job(job).attempt for job in jobs} == {0}


def test_a_task_is_cancelled_after_the_grace(shop: Any) -> None:
    async def sleeping(_payload: str) -> None:
        await asyncio.sleep(PATIENCE)

    shop.handler(sleeping, kind="loop")
    (job,) = shop.submit()
    worker = shop.start()
    shop.started()

    left = worker.stop(0.0)

    assert left == Leftover(interrupted=1)
    assert shop.job(job).state is State.QUEUED


def test_what_heeds_nothing_is_abandoned_given_back_and_fenced_off(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock))
    (job,) = shop.submit()
    worker = shop.start()
    shop.started()

    worker.request_stop(0.0)
    worker.request_stop()
    left = worker.stop()
    given_back = shop.job(job)
    lock.set()

    assert left == Leftover(abandoned=1)
    assert (given_back.state, given_back.attempt) == (State.QUEUED, 0)
    time.sleep(0.05)
    assert shop.job(job) == given_back


def test_many_queues_share_one_grace(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock))
    queues = {f"queue{number}": 1 for number in range(10)}
    for queue in queues:
        shop.submit(queue=queue)
    worker = shop.start(queues=queues)
    shop.started(10)
    before = time.monotonic()

    worker.request_stop(0.3)
    worker.request_stop()
    left = worker.stop()

    assert left.abandoned == 10
    assert time.monotonic() - before < 0.3 * 10


def test_heartbeats_and_cancels_go_on_while_a_worker_stops(shop: Any) -> None:
    shop.handler(shop.heeding(shop.lock()))
    (job,) = shop.submit()
    worker = shop.start(lease_seconds=SHORT)
    shop.started()
    stopping = threading.Thread(target=worker.stop, args=(PATIENCE,))
    stopping.start()

    shop.until(lambda: shop.told("worker.stopping"))
    shop.store.cancel(Selection(ids=(job,)), actor="test")
    shop.wait_for([job], State.CANCELLED)

    stopping.join(PATIENCE)
    assert not stopping.is_alive()


def test_a_worker_that_runs_stops_when_it_is_asked_to(shop: Any) -> None:
    worker = shop.worker()
    running = threading.Thread(target=worker.run)
    running.start()
    shop.until(shop.store.workers)

    worker.request_stop()
    running.join(PATIENCE)

    assert not running.is_alive()
    assert shop.store.workers() == []


def test_a_run_that_was_given_back_is_refused_to_its_old_holder(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock))
    (job,) = shop.submit()
    worker = shop.start()
    shop.started()
    worker_id, fence = worker.stats().worker_id, Fence(job, 1)
    worker.request_stop(0.0)
    worker.stop(0.0)

    (verdict,) = report(shop.store, worker_id, released(fence))

    assert verdict == LeaseLost(fence)
