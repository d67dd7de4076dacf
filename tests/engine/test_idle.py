"""A worker without work: it costs next to nothing, and begins at once when there is some."""

import time
from typing import Any

import pytest

from workmill.domain.states import State
from workmill.upkeep import Keeper

pytestmark = pytest.mark.parametrize("store", ["file"], indirect=True)


def test_an_idle_worker_hardly_uses_the_processor(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    shop.start(beside=(Keeper(shop.store, shop.telemetry),))
    jobs = shop.submit(10)
    shop.wait_for(jobs, State.SUCCEEDED)
    time.sleep(0.5)
    before, calls = time.process_time(), len(shop.faults.calls)

    time.sleep(2.0)

    assert time.process_time() - before < 1.0  # what a wake-up costs is the machine's affair; this is about busy waiting
    assert len(shop.faults.calls) - calls <= 8


def test_a_job_starts_soon_after_it_was_submitted_though_the_worker_was_idle(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    shop.start()
    time.sleep(1.5)

    (job,) = shop.submit()
    shop.wait_for([job], State.SUCCEEDED)

    waited = shop.job(job).started_at - shop.job(job).created_at
    assert waited.total_seconds() < 0.5


def test_a_job_is_found_without_any_hint(shop: Any) -> None:
    shop.handler(lambda _payload: "null")
    worker = shop.worker()
    worker._waking = None
    worker.start()
    time.sleep(0.3)

    (job,) = shop.submit()

    shop.wait_for([job], State.SUCCEEDED)
