"""A job's function, called as the plain function it is, may report and ask as it does in a run."""

import asyncio
from typing import Any

import pytest

from workmill import InvalidInput, Workmill, current_job
from workmill.testing import MemoryMill

app = Workmill("sqlite://")


def about_the_run() -> tuple[Any, ...]:
    job = current_job()
    return job.id, job.type, job.attempt, job.max_attempts, job.deadline, job.cancelled


@app.job(name="plain", timeout=5)
def plain(fraction: float = 0.5) -> tuple[Any, ...]:
    job = current_job()
    job.progress(fraction, "half")
    job.check()
    job.logger.info("half")
    return about_the_run()


@app.job(name="coroutine")
async def coroutine() -> tuple[Any, ...]:
    await asyncio.sleep(0)
    return about_the_run()


def test_a_plain_call_reports_to_nobody() -> None:
    assert plain() == ("", "plain", 1, 1, None, False)


def test_a_plain_call_of_a_coroutine_does_too_and_two_do_not_meet() -> None:
    async def both() -> list[tuple[Any, ...]]:
        return await asyncio.gather(coroutine(), coroutine())

    assert asyncio.run(both()) == 2 * [("", "coroutine", 1, 1, None, False)]


def test_a_plain_call_refuses_what_a_run_would_refuse() -> None:
    with pytest.raises(InvalidInput, match=r"fraction"):
        plain(2)


def test_after_a_plain_call_there_is_no_current_job() -> None:
    plain()

    with pytest.raises(LookupError):
        current_job()


def test_a_plain_call_inside_a_run_has_that_run(mill: MemoryMill) -> None:
    seen: list[tuple[Any, ...]] = []

    @mill.job(name="outer")
    def outer() -> None:
        seen.append(plain())
        seen.append(asyncio.run(coroutine()))

    job = outer.enqueue()
    mill.run_pending()

    assert [(run[0], run[1]) for run in seen] == 2 * [(job.id, "outer")]


def test_a_plain_call_does_not_hand_on_a_trace(mill: MemoryMill) -> None:
    @mill.job
    def child() -> None: ...

    @mill.job
    def parent() -> None:
        child.enqueue()

    parent()

    assert [job.record.traceparent for job in mill.jobs.find()] == [None]
