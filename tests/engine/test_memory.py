"""What failed runs held is free again: memory, threads and file descriptors stay as they were."""

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store

MEGABYTE = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """In a file: what a store in memory keeps of failures would be counted as the worker's."""
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    yield store
    store.close()


def fail_with_a_megabyte(_payload: str) -> None:
    big = bytearray(MEGABYTE)
    big[0] = 1
    try:
        raise ValueError("inner")
    except ValueError as error:
        kept = error  # a cycle of frame, error and traceback, as real code makes them
        raise RuntimeError(f"outer {len(big)}") from kept


async def fail_on_the_loop(payload: str) -> None:
    fail_with_a_megabyte(payload)


def fail(shop: Any, count: int) -> None:
    """So many jobs fail, and the shop itself remembers nothing of them."""
    for _ in range(count // 200):
        shop.submit(200, max_attempts=1)
        shop.worker(burst=True, concurrency=2).run()
        shop.workers.clear()
        shop.events.clear()
        shop.faults.calls.clear()
        shop.faults.answers.clear()


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_failures_with_a_megabyte_of_variables_leave_nothing_behind(shop: Any, kind: str, rounds: Callable[..., int]) -> None:
    shop.handler(fail_on_the_loop if kind == "loop" else fail_with_a_megabyte, kind=kind)
    fail(shop, 200)
    process, count = psutil.Process(), rounds(1_000, soak=10_000)
    gc.collect()
    gc.disable()
    before = process.memory_info().rss

    fail(shop, count)
    after = process.memory_info().rss
    gc.enable()

    assert after - before < 40 * MEGABYTE
    assert shop.store.counts()["default", State.DEAD] == count + 200


def test_a_worker_that_has_stopped_leaves_no_thread_behind(shop: Any) -> None:
    async def on_loop(_payload: str) -> None: ...

    shop.handler(lambda _payload: "null")
    shop.handler(on_loop, kind="loop", name="on_loop")
    shop.submit(20, timeout=60.0)
    shop.submit(20, type="on_loop")
    before = set(threading.enumerate())

    shop.worker(burst=True).run()

    shop.until(lambda: {thread.name for thread in set(threading.enumerate()) - before} <= {"workmill-store", "workmill-group-commit"})
