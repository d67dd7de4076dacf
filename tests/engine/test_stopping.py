"""Runs that are to end before their handlers would: timeouts, cancellation, pauses."""

import asyncio
import time
from typing import Any

import pytest

from workmill.domain.errors import RetryIn, Snooze
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.engine import exchange
from workmill.engine.context import current_job

PATIENCE = 20.0
SHORT = 0.5


def only(*ids: str) -> Selection:
    return Selection(ids=ids)


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_handler_that_heeds_its_timeout_is_a_timed_out_attempt(shop: Any, kind: str) -> None:
    async def sleeping(_payload: str) -> None:
        await asyncio.sleep(PATIENCE)

    shop.handler(sleeping if kind == "loop" else shop.heeding(shop.lock()), kind=kind)
    (job,) = shop.submit(timeout=0.05, max_attempts=1)

    shop.start()
    shop.wait_for([job], State.DEAD)

    (attempt,) = shop.store.history(job).attempts
    assert (attempt.kind, attempt.error_class) == ("timeout", "TimeoutError")
    assert shop.told("job.stuck") == []


def test_the_next_attempt_of_a_stuck_handler_wins_and_its_late_result_is_not_heard(shop: Any) -> None:
    lock = shop.lock()
    stuck = shop.deaf(lock)
    shop.handler(lambda payload: stuck(payload) if current_job().attempt == 1 else '"in time"')
    (job,) = shop.submit(timeout=0.05, backoff=[0])

    worker = shop.start(concurrency=2)
    shop.wait_for([job], State.SUCCEEDED)
    lock.set()
    shop.until(lambda: shop.told("job.unstuck"))

    assert shop.job(job).result == '"in time"'
    first, second = shop.store.history(job).attempts
    assert (first.kind, second.kind) == ("timeout", "succeeded")
    assert "lock.wait" in first.traceback
    shop.until(lambda: worker.stats().stuck == 0)


def test_the_slot_of_a_stuck_handler_is_lost_until_it_returns(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock), name="deaf")
    shop.handler(lambda _payload: "null")
    (stuck,) = shop.submit(type="deaf", timeout=0.05, max_attempts=1)
    worker = shop.start(concurrency=1)
    shop.wait_for([stuck], State.DEAD)

    jobs = shop.submit(3)
    shop.until(lambda: worker.stats().stuck == 1)
    waiting = shop.states(jobs)
    lock.set()
    shop.wait_for(jobs, State.SUCCEEDED)

    assert waiting == {State.QUEUED}
    assert worker.stats().stuck == 0


def test_a_coroutine_that_swallows_its_cancellation_is_stuck_too(shop: Any) -> None:
    async def deaf_coroutine(_payload: str) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                if len(shop.told("job.stuck")) == 1:
                    break
        return '"late"'

    shop.handler(deaf_coroutine, kind="loop")
    (job,) = shop.submit(timeout=0.05, max_attempts=1)

    shop.start()
    shop.wait_for([job], State.DEAD)

    assert shop.job(job).error.type == "TimeoutError"
    assert len(shop.told("job.stuck")) == 1


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_cancelled_job_is_told_with_the_next_beat_and_ends_cancelled(shop: Any, kind: str) -> None:
    async def sleeping(_payload: str) -> None:
        await asyncio.sleep(PATIENCE)

    shop.handler(sleeping if kind == "loop" else shop.heeding(shop.lock()), kind=kind)
    (job,) = shop.submit()
    shop.start(lease_seconds=SHORT)
    shop.started()

    shop.store.cancel(only(job), actor="test")
    shop.wait_for([job], State.CANCELLED)

    assert shop.job(job).attempt == 0


@pytest.mark.parametrize("draining", [True, False])
def test_a_cancel_reaches_a_job_during_a_drain_and_without_hints(shop: Any, *, draining: bool) -> None:
    shop.handler(shop.heeding(shop.lock()))
    (job,) = shop.submit()
    worker = shop.worker(lease_seconds=SHORT)
    worker._waking = None
    worker.start()
    shop.started()
    if draining:
        worker.drain()

    shop.store.cancel(only(job), actor="test")

    shop.wait_for([job], State.CANCELLED)


def test_a_job_that_succeeds_in_spite_of_its_cancellation_has_succeeded(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(shop.deaf(lock))
    (job,) = shop.submit()
    shop.start(lease_seconds=SHORT)
    shop.started()

    shop.store.cancel(only(job), actor="test")
    shop.until(lambda: shop.told("job.cancelling"))
    lock.set()
    shop.wait_for([job])

    assert shop.job(job).state is State.SUCCEEDED


@pytest.mark.parametrize("end", ["fail", "snooze", "retry"])
def test_a_cancelled_job_that_ends_otherwise_is_cancelled_and_never_claimed_again(shop: Any, end: str) -> None:
    errors = {"fail": ValueError("x"), "snooze": Snooze(0), "retry": RetryIn(0)}
    lock = shop.lock()

    def handler(_payload: str) -> None:
        lock.wait(PATIENCE)
        raise errors[end]

    shop.handler(handler)
    (job,) = shop.submit(backoff=[0])
    shop.start(lease_seconds=SHORT)
    shop.started()

    shop.store.cancel(only(job), actor="test")
    lock.set()
    shop.wait_for([job])

    assert shop.job(job).state is State.CANCELLED
    assert len(shop.told("job.started")) == 1


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a slot is not handed to another worker for that."""
    monkeypatch.setattr(exchange, "HOARD", PATIENCE)


def reasons(shop: Any, name: str) -> set[str]:
    return {event.fields["reason"] for event in shop.told(name)}


@pytest.mark.usefixtures("patient")
def test_a_job_that_is_cancelled_while_it_waits_for_a_slot_does_not_start(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda _payload: "null")
    shop.handler(shop.deaf(lock), name="deaf")
    quick, blocker, behind = shop.submit(200), shop.submit(1, type="deaf"), shop.submit(50)
    worker = shop.start(concurrency=1, lease_seconds=SHORT)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(201)
    waiting = shop.until(lambda: worker.stats().waiting)

    cancelled = shop.store.cancel(only(*behind), actor="test")
    shop.wait_for(behind, State.CANCELLED)
    lock.set()
    shop.wait_for(blocker, State.SUCCEEDED)

    assert cancelled.done == 50
    assert len(shop.told("job.started")) == 201
    assert len(shop.until(lambda: shop.told("job.cancelled"))) == waiting
    assert reasons(shop, "job.cancelled") == {"cancelled"}


@pytest.mark.usefixtures("patient")
def test_a_pause_gives_back_what_has_not_started(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, blocker, behind = shop.submit(200), shop.submit(1, payload="1"), shop.submit(50)
    worker = shop.start(concurrency=1, lease_seconds=SHORT)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(201)
    shop.until(lambda: worker.stats().waiting)

    shop.store.pause("default", actor="test")
    shop.wait_for(behind, State.QUEUED)
    lock.set()
    shop.wait_for(blocker, State.SUCCEEDED)
    shop.store.resume("default", actor="test")
    shop.wait_for(behind, State.SUCCEEDED)

    assert {shop.job(job).attempt for job in behind} == {1}
    assert reasons(shop, "job.released") == {"paused"}


@pytest.mark.usefixtures("patient")
def test_a_deadline_that_passes_while_a_job_waits_for_a_slot_keeps_it_from_starting(shop: Any) -> None:
    lock = shop.lock()
    shop.handler(lambda payload: (lock.wait(PATIENCE) if payload == "1" else None) and None)
    quick, blocker, behind = shop.submit(200), shop.submit(1, payload="1"), shop.submit(50, expires_in=2)
    worker = shop.start(concurrency=1, lease_seconds=SHORT)
    shop.wait_for(quick, State.SUCCEEDED)
    shop.started(201)
    waiting = shop.until(lambda: worker.stats().waiting)

    time.sleep(2.0)
    lock.set()
    shop.wait_for(blocker, State.SUCCEEDED)
    shop.until(lambda: len(shop.told("job.released")) == waiting)
    shop.store.expire()

    assert shop.states(behind) == {State.EXPIRED}
    assert len(shop.told("job.started")) == 201
    assert reasons(shop, "job.released") == {"expired"}
