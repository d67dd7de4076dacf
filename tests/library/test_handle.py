"""Handles: what is known at once, what is read, how a result is waited for."""

import asyncio
import datetime as dt
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from workmill import (
    Conflict,
    Fail,
    InvalidInput,
    JobFailed,
    NotFound,
    Retry,
    State,
    StoreUnavailable,
    UnstorableResult,
    WaitTimeout,
    Workmill,
)
from workmill.testing import MemoryMill

SECONDS = 20.0
"""What a test waits at most for what must come."""


@dataclass
class Report:
    title: str
    at: dt.datetime


NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Workmill]:
    """A Workmill on a file, by the clock of this machine."""
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        yield mill


def test_a_result_is_what_the_function_returned(mill: MemoryMill) -> None:
    @mill.job
    def report(title: str) -> Report:
        return Report(title, NOON)

    job = report.enqueue("sales")
    mill.run_pending()

    assert job.wait().result == Report("sales", NOON)
    assert mill.jobs.get(job.id).result == Report("sales", NOON)
    assert next(iter(mill.jobs.find())).result == Report("sales", NOON)


def test_a_result_of_a_type_that_is_unknown_here_is_plain_json(mill: MemoryMill) -> None:
    @mill.job(name="report")
    def report() -> Report:
        return Report("sales", NOON)

    job = report.enqueue()
    mill.run_pending()
    del mill.registry._handlers["report"]

    assert mill.jobs.get(job.id).result == {"title": "sales", "at": "2026-03-01T12:00:00Z"}


def test_none_is_a_result(mill: MemoryMill) -> None:
    @mill.job
    def nothing() -> None: ...

    job = nothing.enqueue()
    mill.run_pending()

    assert job.wait().result is None


def test_the_result_of_a_job_that_failed_is_an_error_with_its_facts(mill: MemoryMill) -> None:
    @mill.job(retry=Retry(max_attempts=1))
    def divide() -> float:
        return 1 / 0

    job = divide.enqueue()
    mill.run_pending()

    with pytest.raises(JobFailed) as caught:
        _ = job.wait().result
    assert (caught.value.state, caught.value.error_class, caught.value.message) == ("dead", "ZeroDivisionError", "division by zero")
    assert job.error is not None
    assert "return 1 / 0" in job.error.traceback


def test_the_result_of_a_job_that_has_not_ended_is_a_conflict(mill: MemoryMill) -> None:
    @mill.job
    def nothing() -> None: ...

    job = nothing.enqueue()

    with pytest.raises(Conflict, match=r"is queued and has no result yet"):
        _ = job.result


def test_a_result_that_could_not_be_stored_leaves_the_job_succeeded_and_is_an_error_to_read(mill: MemoryMill) -> None:
    @mill.job
    def measure() -> object:
        return {"loss": float("nan")}

    job = measure.enqueue()
    mill.run_pending()

    assert job.wait().state is State.SUCCEEDED
    with pytest.raises(UnstorableResult, match=r"result.loss: must not hold NaN or Infinity"):
        _ = job.result


def test_what_has_been_read_stays_until_it_is_refreshed(mill: MemoryMill) -> None:
    @mill.job
    def fail() -> None:
        raise Fail("no use")

    job = fail.enqueue()
    before = (job.state, job.attempt, job.error, job.finished_at)
    mill.run_pending()
    still = (job.state, job.attempt, job.error, job.finished_at)
    job.refresh()

    assert before == still == (State.QUEUED, 0, None, None)
    assert (job.state, job.attempt, job.finished_at) == (State.DEAD, 1, job.created_at)


def test_a_job_of_a_list_reads_its_payload_when_asked(mill: MemoryMill) -> None:
    @mill.job
    def send(to: str) -> None: ...

    send.using(tags=["a"]).enqueue("ann")
    (job,) = mill.jobs.find(tag="a")

    assert job.tags == ("a",)
    assert job.payload == {"to": "ann"}


def test_handles_of_one_job_are_equal(mill: MemoryMill) -> None:
    job = mill.enqueue("x")

    assert job == mill.jobs.get(job.id)
    assert {job, mill.jobs.get(job.id)} == {job}
    assert job != mill.enqueue("x")
    assert repr(job) == f"<Job x {job.id} queued>"


def test_a_job_that_is_gone_is_not_found(mill: MemoryMill) -> None:
    job = mill.enqueue("x")
    mill.jobs.cancel(job)
    mill.jobs.discard(job)

    with pytest.raises(NotFound):
        job.refresh()
    with pytest.raises(NotFound):
        mill.jobs.get("no-such-id")


def test_waiting_ends_when_a_worker_has_run_the_job(filed: Workmill) -> None:
    @filed.job
    def double(value: int) -> int:
        return 2 * value

    with filed.run_worker():
        results = [job.wait(SECONDS).result for job in [double.enqueue(value) for value in range(20)]]

    assert results == [2 * value for value in range(20)]


def test_waiting_ends_by_a_hint_and_not_by_looking_again_and_again(filed: Workmill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workmill.client.waiting.POLL", 600.0)

    @filed.job
    def double(value: int) -> int:
        return 2 * value

    with filed.run_worker():
        results = [double.enqueue(value).wait(SECONDS).result for value in range(20)]

    assert results == [2 * value for value in range(20)]


def test_waiting_does_not_block_the_event_loop(filed: Workmill) -> None:
    @filed.job
    async def double(value: int) -> int:
        return 2 * value

    async def one(value: int) -> int:
        return (await (await double.enqueue_async(value)).wait_async(SECONDS)).result

    async def many() -> list[int]:
        return await asyncio.gather(*(one(value) for value in range(50)))

    with filed.run_worker():
        assert asyncio.run(many()) == [2 * value for value in range(50)]


def test_waiting_ends_when_somebody_cancels_the_job(filed: Workmill) -> None:
    job = filed.enqueue("nobody-runs-this")
    ended: list[State] = []
    waiting = threading.Thread(target=lambda: ended.append(job.wait(SECONDS).state))
    waiting.start()

    filed.jobs.cancel(job.id)
    waiting.join()

    assert ended == [State.CANCELLED]


def test_waiting_has_an_end_of_its_own_and_the_job_goes_on(filed: Workmill) -> None:
    job = filed.enqueue("nobody-runs-this")

    with pytest.raises(WaitTimeout, match=r"has not ended within 0\.01 s"):
        job.wait(0.01)
    with pytest.raises(WaitTimeout):
        asyncio.run(_wait_async(job.id, filed))

    assert job.refresh().state is State.QUEUED


async def _wait_async(job_id: str, mill: Workmill) -> None:
    await mill.jobs.get(job_id).wait_async(0.01)


def test_a_wait_for_a_job_that_never_existed_says_so(filed: Workmill) -> None:
    job = filed.enqueue("x")
    filed.jobs.cancel(job)
    filed.jobs.discard(job)

    with pytest.raises(NotFound):
        job.wait(0.01)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", True])
def test_a_wait_of_no_duration_is_refused(filed: Workmill, seconds: float) -> None:
    job = filed.enqueue("x")

    with pytest.raises(InvalidInput, match=r"^timeout: must be"):
        job.wait(seconds)


def test_closing_ends_the_waiting(filed: Workmill) -> None:
    job = filed.enqueue("nobody-runs-this")
    errors: list[Exception] = []

    def wait() -> None:
        try:
            job.wait(SECONDS)
        except StoreUnavailable as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    _until(lambda: filed.close() or not waiting.is_alive())

    assert len(errors) == 1


def test_nobody_waiting_costs_no_thread(filed: Workmill) -> None:
    job = filed.enqueue("nobody-runs-this")

    with pytest.raises(WaitTimeout):
        job.wait(0.01)

    _until(lambda: all(thread.name != "workmill-waiter" for thread in threading.enumerate()))


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = threading.Event()
    for _ in range(int(SECONDS / 0.01)):
        if condition():
            return
        deadline.wait(0.01)
    raise AssertionError("it did not come")


def test_a_closed_workmill_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    @mill.job
    def double(value: int) -> int:
        return 2 * value

    async def one() -> int:
        return (await (await double.enqueue_async(21)).wait_async(SECONDS)).result

    with mill, mill.run_worker():
        assert asyncio.run(one()) == 42
        assert double.enqueue(4).wait(SECONDS).result == 8

    _until(lambda: set(threading.enumerate()) <= before)
