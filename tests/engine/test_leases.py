"""Leases: what is held is renewed, whatever handlers do; a worker that cannot renew, or was given up, changes nothing of others."""

import time
from typing import Any

import pytest

from workmill.domain.outcome import Accepted, LeaseLost, Succeeded
from workmill.domain.states import State
from workmill.domain.worker import Held, Orders, Wants, WorkerState
from workmill.engine.context import Stop, current_job
from workmill.testing.factories import claim_one, report, succeeded
from workmill.upkeep import Keeper

pytestmark = pytest.mark.parametrize("store", ["file"], indirect=True)

PATIENCE = 20.0
SHORT = 0.5


def test_what_is_held_is_listed_in_every_beat_running_waiting_and_uncommitted(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None, name="slow")
    shop.handler(lambda _payload: "null")
    quick = shop.submit(200)
    slow = shop.submit(2, type="slow")
    behind = shop.submit(30)
    worker = shop.start(concurrency=2, lease_seconds=3.0)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(202)
    shop.faults.break_before.add("exchange")
    lock.set()
    shop.until(lambda: worker.stats().uncommitted >= 2)
    held = {fence.id for fence in worker.held}

    worker._heartbeat.run_once()

    beats = [args for name, args in shop.faults.calls if name == "heartbeat"]
    assert {item.fence.id for item in beats[-1][1]} == held
    assert set(slow) <= held <= {*slow, *behind}
    seqs = [seq for _, _, seq in beats]
    assert seqs == sorted(set(seqs))


def test_a_handler_that_blocks_the_event_loop_costs_no_lease(shop: Any) -> None:
    async def blocking(_payload: str) -> None:
        time.sleep(3 * SHORT)

    shop.handler(blocking, kind="loop")
    (job,) = shop.submit()
    keeper = Keeper(shop.store, shop.telemetry)

    shop.start(lease_seconds=SHORT, beside=(keeper,))
    shop.wait_for([job], State.SUCCEEDED)

    assert (shop.job(job).lease, shop.job(job).losses, shop.runs_of(job)) == (1, 0, 1)


def test_a_job_of_three_leases_runs_once_whoever_else_is_there(shop: Any) -> None:
    shop.handler(lambda _payload: time.sleep(3 * SHORT))
    (job,) = shop.submit()

    for _ in range(3):
        shop.start(lease_seconds=SHORT, beside=(Keeper(shop.store, shop.telemetry),))
    shop.wait_for([job], State.SUCCEEDED)

    assert (shop.job(job).lease, shop.runs_of(job)) == (1, 1)


def test_a_delayed_job_is_run_once_by_one_of_three_workers(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    jobs = shop.submit(20, delay=0.3)

    for _ in range(3):
        shop.start(lease_seconds=SHORT, beside=(Keeper(shop.store, shop.telemetry),))
    shop.wait_for(jobs, State.SUCCEEDED)

    assert [shop.runs_of(job) for job in jobs] == [1] * 20


def test_a_worker_that_cannot_renew_starts_nothing_and_goes_on_with_what_runs(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None, name="slow")
    shop.handler(lambda _payload: "null")
    (slow,) = shop.submit(type="slow")
    worker = shop.start(concurrency=2, lease_seconds=SHORT)
    shop.started()

    shop.faults.break_before.add("heartbeat")
    shop.until(lambda: shop.told("worker.cut_off"))
    jobs = shop.submit(20)
    time.sleep(0.2)
    state, meanwhile = worker.stats().state, shop.states(jobs)
    shop.faults.break_before.clear()
    shop.wait_for(jobs, State.SUCCEEDED)
    lock.set()
    shop.wait_for([slow], State.SUCCEEDED)

    assert state == "cut off"
    assert meanwhile == {State.QUEUED}
    assert [event.name for event in shop.events if event.name in {"worker.cut_off", "worker.reconnected"}] == [
        "worker.cut_off",
        "worker.reconnected",
    ]
    assert {shop.job(job).attempt for job in [slow, *jobs]} == {1}


def test_what_the_first_beat_after_contact_names_lost_is_stopped_and_its_outcome_is_refused(shop: Any) -> None:
    stops: list[Any] = []

    def handler(_payload: str) -> str:
        job, end = current_job(), time.monotonic() + PATIENCE
        while not job.cancelled and time.monotonic() < end:
            time.sleep(0.002)
        stops.append(job.stopping)
        return '"late"'

    shop.handler(handler)
    (job,) = shop.submit(max_losses=5)
    worker = shop.start(concurrency=1, lease_seconds=SHORT)
    shop.started()
    first_id = worker.stats().worker_id

    shop.faults.break_before.update({"heartbeat", "exchange", "join"})
    shop.until(lambda: shop.told("worker.cut_off"))
    shop.rescue()
    other = shop.other_worker()
    claimed = claim_one(shop.store, other)
    shop.faults.break_before.clear()
    shop.until(lambda: stops)
    (verdict,) = report(shop.store, other, succeeded(claimed, '"in time"'))

    assert stops == [Stop.LOST]
    assert isinstance(verdict, Accepted)
    assert shop.job(job).result == '"in time"'
    shop.until(lambda: worker.stats().worker_id != first_id and worker.held == ())
    assert shop.told("job.succeeded") == []


def test_a_worker_that_was_given_up_joins_again_and_works(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    worker = shop.start(lease_seconds=SHORT)
    first_id = worker.stats().worker_id

    shop.store.leave(first_id)
    shop.until(lambda: worker.stats().worker_id != first_id)
    jobs = shop.submit(5)
    shop.wait_for(jobs, State.SUCCEEDED)

    assert len(shop.told("worker.lost")) == 1
    assert [seen.id for seen in shop.store.workers()] == [worker.stats().worker_id]


def test_a_worker_that_learns_that_it_was_given_up_starts_nothing_of_what_it_held(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, running, behind = shop.submit(200), shop.submit(2, payload="1"), shop.submit(30)
    worker = shop.start(concurrency=2, lease_seconds=60.0)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(202)

    shop.store.leave(worker.stats().worker_id)
    worker._heartbeat.run_once()
    lock.set()
    shop.wait_for([*running, *behind], State.SUCCEEDED)

    assert {shop.job(job).attempt for job in behind} == {1}
    assert [shop.runs_of(job) for job in behind] == [1] * 30
    shop.until(lambda: worker.held == ())


def test_outcomes_of_a_worker_that_was_given_up_are_refused_and_their_jobs_run_again(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    jobs = shop.submit(2)
    worker = shop.start(lease_seconds=60.0)
    shop.started(2)

    shop.store.leave(worker.stats().worker_id)
    lock.set()
    shop.wait_for(jobs, State.SUCCEEDED)

    assert {shop.job(job).attempt for job in jobs} == {1}
    assert [shop.runs_of(job) for job in jobs] == [2, 2]
    shop.until(lambda: worker.stats().lost == 2)
    assert worker.stats().succeeded == 2


def test_an_order_for_an_old_lease_does_not_touch_the_new_run(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    (job,) = shop.submit()
    other = shop.other_worker()
    old = claim_one(shop.store, other)
    shop.store.leave(other)
    worker = shop.start()
    shop.started()
    (run,) = worker._ledger.holding()

    worker._heartbeat._obey(Orders(lease_seconds=15.0, state=WorkerState.RUNNING, cancel=(old.fence,), lost=(old.fence,)), [run])

    assert run.fence.lease == 2
    assert run.stopping is None
    lock.set()
    shop.wait_for([job], State.SUCCEEDED)


def test_a_run_whose_outcome_was_handed_in_is_not_stopped_by_a_beat_that_crossed_it(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: lock.wait(PATIENCE) and None)
    (job,) = shop.submit()
    worker = shop.start()
    shop.started()
    (run,) = worker._ledger.holding()
    lock.set()
    shop.wait_for([job], State.SUCCEEDED)

    orders = shop.store.heartbeat(worker.stats().worker_id, [Held(run.fence)], worker._member.next_seq())
    worker._heartbeat._obey(orders, [run])

    assert run.stopping is None
    assert shop.told("job.lost") == []


def test_an_old_holder_reports_in_vain_after_a_rescue(shop: Any) -> None:
    (job,) = shop.submit(max_losses=5)
    first = shop.other_worker(lease=SHORT)
    old = claim_one(shop.store, first)
    shop.rescue()
    shop.handler(lambda _payload: '"in time"')
    shop.start()
    shop.wait_for([job], State.SUCCEEDED)

    answer = shop.store.exchange(first, [Succeeded(old.fence, '"late"', 0, 0)], Wants())

    assert answer.verdicts == (LeaseLost(old.fence),)
    assert shop.job(job).result == '"in time"'
