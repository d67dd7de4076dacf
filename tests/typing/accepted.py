"""Code that must type-check: what `@mill.job` makes has the parameters of its function and knows what it returns."""

import sqlite3
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from workmill import Job, PreparedJob, RawPayload, Retry, Workmill, current_job, exponential
from workmill.domain.job import Bulk

mill = Workmill()


@dataclass
class Report:
    title: str


@mill.job
def make_report(title: str, pages: int = 1) -> Report:
    return Report(title * pages)


@mill.job(queue="mail", retry=Retry(max_attempts=8, backoff=exponential(cap=60)), timeout=30)
async def send_email(to: str, subject: str) -> str:
    current_job().progress(0.5, subject)
    return to


@mill.job(isolate=True, memory_limit="512MB", unique_key=lambda path: path, tags=["pictures"])
def render(path: str) -> None:
    del path


@mill.job(name="echo")
def echo(payload: RawPayload) -> RawPayload:
    return payload


def everything_is_typed_like_the_function(connection: sqlite3.Connection, noon: datetime) -> None:
    assert_type(make_report("a", pages=2), Report)
    assert_type(make_report.enqueue("a", pages=2), Job[Report])
    assert_type(make_report.enqueue("a").wait(timeout=10).result, Report)
    assert_type(make_report.job("a"), PreparedJob[Report])
    assert_type(send_email("a", "b"), Coroutine[Any, Any, str]).close()
    assert_type(send_email.enqueue("a", subject="b"), Job[str])
    assert_type(send_email.using(delay=60, priority=5, unique_key="welcome:42").enqueue("a", "b"), Job[str])
    assert_type(send_email.using(run_at=noon, expires_in=timedelta(hours=1), timeout=None).job("a", "b"), PreparedJob[str])
    assert_type(send_email.using(connection=connection).enqueue("a", "b"), Job[str])
    assert_type(render.enqueue("a"), Job[None])
    assert_type(echo.enqueue(RawPayload("{}")).wait().result, RawPayload)


async def the_same_goes_for_the_event_loop() -> None:
    assert_type(await make_report.enqueue_async("a"), Job[Report])
    assert_type(await send_email.enqueue_async(to="a", subject="b"), Job[str])
    assert_type(await send_email.using(priority=1).enqueue_async("a", "b"), Job[str])
    assert_type((await (await send_email.enqueue_async("a", "b")).wait_async(timeout=5)).result, str)
    assert_type(await mill.enqueue_many_async([render.job("a")]), list[Job[None]])


def many_jobs_at_once() -> None:
    assert_type(mill.enqueue_many([send_email.job(to, "hi") for to in ("a", "b")]), list[Job[str]])
    assert_type(mill.enqueue("elsewhere", {"a": 1}, queue="other", retry=Retry(max_attempts=1)), Job[Any])


def operators_find_jobs() -> None:
    assert_type(mill.jobs.get("id"), Job[Any])
    for job in mill.jobs.find(state="dead", queue="mail", created_after=datetime(2026, 1, 1, tzinfo=UTC)):
        assert_type(mill.jobs.retry(job), Job[Any])
    assert_type(mill.jobs.retry_all(type=render.type), Bulk)
