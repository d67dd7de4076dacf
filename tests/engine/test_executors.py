"""Threads and the event loop: runs begin when they may, as many at once as they may, and each comes back once."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from workmill.clock import monotonic
from workmill.domain.outcome import Failed, Released, Succeeded
from workmill.engine.context import RunningJob, Stop, current_job
from workmill.engine.gate import Closed
from workmill.engine.handlers import Hooks

PATIENCE = 20.0


def raising(error: BaseException) -> Callable[[str], Any]:
    def handler(_payload: str) -> Any:
        raise error

    return handler


def test_a_handler_gets_the_payload_and_its_result_is_the_outcome(site: Any) -> None:
    outcome = site.run(lambda payload: payload.upper())

    assert isinstance(outcome, Succeeded)
    assert outcome.result == '{"X":1}'
    assert 0 <= outcome.ran < PATIENCE * 1_000_000


def test_current_job_is_the_job_that_runs(site: Any) -> None:
    seen: list[Any] = []

    def handler(_payload: str) -> None:
        job = current_job()
        seen.append((job.id, job.attempt, job.max_attempts, job.queue, job.type, job.deadline, job.cancelled))
        job.check()

    site.run(handler)

    assert seen == [("id", 2, 5, "default", "task", None, False)]


def test_outside_a_handler_there_is_no_current_job() -> None:
    with pytest.raises(LookupError, match="inside a running handler only"):
        current_job()


def test_the_deadline_is_what_is_left_of_the_timeout(site: Any) -> None:
    left: list[Any] = []

    site.run(lambda _payload: left.append(current_job().deadline), timeout=60.0)

    assert 0 < left[0] <= 60


def test_what_a_job_sets_in_a_context_variable_the_next_one_does_not_see(site_of: Any) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen: list[str] = []

    def handler(_payload: str) -> None:
        seen.append(variable.get())
        variable.set("left behind")

    with site_of("thread", concurrency=1) as threads, site_of("loop", concurrency=1) as loop:
        for site in (threads, threads, loop, loop):
            site.run(handler)

    assert seen == ["unset"] * 4


def test_middleware_surrounds_the_run_outermost_first_and_sees_what_it_raises(site: Any, site_of: Any) -> None:
    seen: list[str] = []

    def middleware(name: str) -> Callable[[RunningJob], Any]:
        @contextmanager
        def around(job: RunningJob) -> Iterator[None]:
            seen.append(f"{name} enters {job.id}")
            try:
                yield
            finally:
                seen.append(f"{name} leaves with {sys.exception()!r}")

        return around

    with site_of(site.kind, hooks=Hooks(middleware=(middleware("outer"), middleware("inner")))) as other:
        other.run(raising(ValueError("x")))

    assert seen == ["outer enters id", "inner enters id", "inner leaves with ValueError('x')", "outer leaves with ValueError('x')"]


def test_a_middleware_that_fails_fails_the_run(site: Any, site_of: Any) -> None:
    @contextmanager
    def broken(_job: RunningJob) -> Iterator[None]:
        raise ConnectionError("no database")
        yield

    with site_of(site.kind, hooks=Hooks(middleware=(broken,))) as other:
        outcome = other.run(lambda _payload: "null")

    assert (outcome.error.type, outcome.error.message) == ("ConnectionError", "no database")


def test_no_more_run_at_once_than_the_concurrency(site: Any) -> None:
    running, most, lock = [0], [0], threading.Lock()

    def count(step: int) -> None:
        with lock:
            running[0] += step
            most[0] = max(most[0], running[0])

    async def slow() -> None:
        count(1)
        await asyncio.sleep(0.005)
        count(-1)

    def handler(_payload: str) -> Any:
        if site.kind == "loop":
            return slow()
        count(1)
        time.sleep(0.005)
        return count(-1)

    site.executor.start([site.job(handler) for _ in range(12)])
    for _ in range(12):
        site.back.get(timeout=PATIENCE)

    assert most[0] == 2


def test_concurrency_grows_and_shrinks_while_jobs_run(site: Any) -> None:
    barrier, entered = threading.Event(), SimpleQueue[int]()

    async def pausing() -> None:
        entered.put(1)
        while not barrier.is_set():
            await asyncio.sleep(0.001)

    def handler(_payload: str) -> Any:
        if site.kind == "loop":
            return pausing()
        entered.put(1)
        return barrier.wait(PATIENCE) and None

    site.executor.start([site.job(handler) for _ in range(8)])
    for _ in range(2):
        entered.get(timeout=PATIENCE)
    site.executor.resize(5)
    for _ in range(3):
        entered.get(timeout=PATIENCE)
    site.executor.resize(1)
    grown, recalled = entered.qsize(), site.executor.recall()
    barrier.set()
    for _ in range(5):
        site.back.get(timeout=PATIENCE)

    assert grown == 0
    assert len(recalled) == 3
    assert isinstance(site.run(lambda _payload: "null"), Succeeded)


def test_a_run_that_may_not_start_comes_back_without_having_begun(site: Any) -> None:
    late = site.job(lambda _payload: "null", start_by=monotonic() - 1)
    stopped = site.job(lambda _payload: "null")
    stopped.stop(Stop.CANCELLED)

    site.executor.start([late, stopped])
    back = {site.back.get(timeout=PATIENCE), site.back.get(timeout=PATIENCE)}

    assert back == {late, stopped}
    assert [run.started or run.outcome for run in back] == [None, None]


def test_behind_a_closed_gate_nothing_starts(site: Any) -> None:
    site.gate.close(Closed.BY_HAND)

    outcome = site.run(lambda _payload: "null")

    assert outcome is None


def test_a_lease_that_has_run_out_lets_nothing_start(site: Any) -> None:
    site.gate.renew(monotonic() - 0.001)

    outcome = site.run(lambda _payload: "null")

    assert outcome is None


def test_a_task_that_is_interrupted_before_its_first_step_comes_back(site_of: Any) -> None:
    with site_of("loop") as site:
        run = site.job(lambda _payload: asyncio.sleep(PATIENCE))

        def begin_and_interrupt() -> None:
            site.executor._pump()
            run.stop(Stop.CANCELLED)
            site.executor._cancel(run)

        site.executor._inbox.append(run)
        site.executor._loop.call_soon_threadsafe(begin_and_interrupt)
        back = site.back.get(timeout=PATIENCE)

    assert back is run
    assert isinstance(run.outcome, Released)


def test_a_stop_beside_a_start_loses_no_run(site: Any, rounds: Callable[..., int]) -> None:
    async def sleeping() -> None:
        await asyncio.sleep(PATIENCE)

    def handler(_payload: str) -> Any:
        if site.kind == "loop":
            return sleeping()
        while True:
            current_job().check()

    for _ in range(rounds(200, soak=20_000)):
        run = site.job(handler)
        site.executor.start([run])
        run.stop(Stop.CANCELLED)
        site.executor.interrupt(run)

        assert site.back.get(timeout=PATIENCE) is run


def test_the_first_reason_to_stop_stays_save_that_a_lost_run_is_lost(site: Any) -> None:
    run = site.job(lambda _payload: "null")

    news = [run.stop(Stop.CANCELLED), run.stop(Stop.SHUTDOWN), run.stop(Stop.LOST), run.stop(Stop.LOST), run.stop(Stop.TIMEOUT)]

    assert news == [True, False, True, False, False]
    assert run.stopping is Stop.LOST


def test_a_recall_beside_threads_that_take_loses_and_doubles_nothing(site: Any, rounds: Callable[..., int]) -> None:
    for _ in range(rounds(20, soak=2_000)):
        runs = [site.job(lambda _payload: "null") for _ in range(100)]
        site.executor.start(runs)

        recalled = site.executor.recall()
        back = [site.back.get(timeout=PATIENCE) for _ in range(100 - len(recalled))]

        assert {id(run) for run in recalled} | {id(run) for run in back} == {id(run) for run in runs}
        assert site.back.empty()


def test_a_task_that_another_handler_cancels_before_its_first_step_comes_back(site_of: Any) -> None:
    async def cancel_all_others() -> str:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return "null"

    with site_of("loop") as site:
        runs = [site.job(lambda _payload: cancel_all_others()), site.job(lambda _payload: asyncio.sleep(PATIENCE))]
        site.executor.start(runs)
        back = [site.back.get(timeout=PATIENCE) for _ in runs]

    assert set(back) == set(runs)
    assert isinstance(runs[0].outcome, Succeeded)
    assert isinstance(runs[1].outcome, Failed)


class Evasive(Exception):
    """Raises when anybody looks at what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError


def test_an_error_that_raises_when_it_is_looked_at_is_a_failed_run(site: Any) -> None:
    run = site.job(raising(Evasive()))
    site.executor.start([run])

    assert site.back.get(timeout=PATIENCE) is run
    assert isinstance(run.outcome, Failed)
    assert run.outcome.error.type == "Evasive"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_a_handler_forks_and_lets_come_back_runs_nothing(site: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def fork(_payload: str) -> str:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return "null"

    def note(_payload: str) -> str:
        with notes.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return "null"

    forking, *noting = runs = [site.job(fork), *(site.job(note) for _ in range(5))]
    site.executor.start(runs)

    assert {site.back.get(timeout=PATIENCE) for _ in runs} == {forking, *noting}
    assert notes.read_text().split() == [str(os.getpid())] * len(noting)
