"""A storm: jobs of every kind, orders and faults in random order. When it is over everything ends, and no slot has been lost."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from workmill.domain.errors import Fail, RetryIn, Snooze
from workmill.domain.job import Selection
from workmill.domain.states import FINAL
from workmill.engine.context import current_job
from workmill.upkeep import Keeper

pytestmark = pytest.mark.parametrize("store", ["file"], indirect=True)

SHORT = 0.5
TYPES = ["quick", "wait", "heed", "fail", "final", "retry", "snooze", "slow", "exit", "task", "task_waits", "unknown"]


def first_time(effects: list[str], act: Callable[[], Any]) -> None:
    """Do it in the first run of a job only."""
    job = current_job().id
    if job not in effects:
        effects.append(job)
        act()


def fill(shop: Any) -> list[str]:
    """Declare handlers of every kind; returns where they note their effects."""
    effects, firsts = list[str](), list[str]()

    def handler(act: Callable[[], Any]) -> Callable[[str], None]:
        def call(_payload: str) -> None:
            act()
            effects.append(current_job().id)

        return call

    def coroutine(act: Callable[[], Any]) -> Callable[[str], Any]:
        async def call(_payload: str) -> None:
            await act()
            effects.append(current_job().id)

        return call

    def throw(error: BaseException) -> Callable[[], None]:
        def act() -> None:
            raise error

        return act

    def heed() -> None:
        for _ in range(20):
            current_job().check()
            time.sleep(0.002)

    shop.handler(handler(lambda: None), name="quick")
    shop.handler(handler(lambda: time.sleep(0.005)), name="wait")
    shop.handler(handler(heed), name="heed")
    shop.handler(handler(throw(ValueError("x"))), name="fail")
    shop.handler(handler(throw(Fail("x"))), name="final")
    shop.handler(handler(lambda: first_time(firsts, throw(RetryIn(0)))), name="retry")
    shop.handler(handler(lambda: first_time(firsts, throw(Snooze(0.01)))), name="snooze")
    shop.handler(handler(lambda: first_time(firsts, lambda: time.sleep(0.4))), name="slow")
    shop.handler(handler(lambda: first_time(firsts, throw(SystemExit(1)))), name="exit")
    shop.handler(coroutine(lambda: asyncio.sleep(0)), kind="loop", name="task")
    shop.handler(coroutine(lambda: asyncio.sleep(0.02)), kind="loop", name="task_waits")
    return effects


def blow(shop: Any, workers: list[Any], jobs: list[str], rng: random.Random) -> None:
    """Give one order, or break something for a moment."""
    worker, store = rng.choice(workers), shop.store
    worker_id = worker.stats().worker_id

    def given_up() -> None:
        store.leave(worker_id)

    def away() -> None:
        name = rng.choice(["exchange", "heartbeat", "join"])
        shop.faults.break_before.add(name)
        time.sleep(rng.uniform(0, 0.3))
        shop.faults.break_before.discard(name)

    def swallowed() -> None:
        shop.faults.break_after.add(rng.choice(["exchange", "heartbeat"]))

    def paused() -> None:
        store.pause("default", actor="storm")
        time.sleep(rng.uniform(0, 0.1))
        store.resume("default", actor="storm")

    def drained() -> None:
        worker.drain()
        time.sleep(rng.uniform(0, 0.05))
        worker.resume()

    def cancelled() -> None:
        store.cancel(Selection(ids=tuple(rng.sample(jobs, 5))), actor="storm")

    def resized() -> None:
        worker._pools.resize(rng.randint(1, 8))

    rng.choice([given_up, away, swallowed, paused, drained, cancelled, resized])()


def test_after_a_storm_everything_ends_and_no_slot_is_lost(shop: Any, rng: random.Random, rounds: Callable[..., int]) -> None:
    effects = fill(shop)
    options = {"lease_seconds": SHORT, "concurrency": 4}
    workers = [shop.start(beside=(Keeper(shop.store, shop.telemetry),), **options) for _ in range(2)]
    jobs: list[str] = []

    for _ in range(rounds(40, soak=1_000)):
        kind = rng.choice(TYPES)
        timeout = {"slow": 0.05, "heed": 0.02}.get(kind) if rng.random() < 0.5 else None
        jobs += shop.submit(rng.randint(5, 20), kind, timeout=timeout, max_attempts=3, max_losses=1_000, backoff=[0])
        blow(shop, workers, jobs, rng)
    shop.faults.break_before.clear()
    shop.faults.break_after.clear()
    shop.handler(lambda _payload: effects.append(current_job().id), name="unknown")
    workers.append(shop.start(beside=(Keeper(shop.store, shop.telemetry),), **options))
    shop.until(lambda: len(shop.store.endings(jobs)) == len(jobs), 20.0 + len(jobs) / 20)
    shop.until(lambda: all(worker.held == () and worker.stats().stuck == 0 for worker in workers))

    ends = shop.store.endings(jobs)
    assert set(ends.values()) <= FINAL
    assert {job for job, state in ends.items() if state == "succeeded"} <= set(effects)
    shop.until(lambda: [lane.out for worker in workers for pool in worker._pools for lane in pool.lanes.values() if lane.out] == [])
    assert shop.told("loop.failed") == []
    for worker in workers:
        worker.stop(0)
    while shop.store.fold():
        pass
    assert shop.store.invariants() == []
    assert {thread.name for thread in threading.enumerate() if thread.name.startswith("workmill-run")} == set()
