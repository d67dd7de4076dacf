"""The tutorial, part 3: many jobs, jobs within your own transaction, and looking after them."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from workmill import RunningJob, State, Workmill, current_job
from workmill.testing import MemoryMill


def test_many_jobs_are_enqueued_at_once(mill: MemoryMill) -> None:
    @mill.job(queue="mail")
    def send_email(to: str, subject: str) -> None: ...

    people = [f"{name}@example.com" for name in ("ann", "bob", "cid")]

    # One transaction: all of them or none, and much faster than one by one.
    jobs = mill.enqueue_many([send_email.job(to, subject="hi") for to in people])

    assert [job.payload["to"] for job in jobs] == people


def test_an_asynchronous_application_does_not_block(mill: MemoryMill) -> None:
    @mill.job
    async def double(value: int) -> int:
        return 2 * value

    async def view() -> str:
        job = await double.enqueue_async(21)
        return f"we are working on it: {job.state}"

    assert asyncio.run(view()) == "we are working on it: queued"


def test_a_job_can_be_part_of_your_own_transaction(tmp_path: Path) -> None:
    # Your tables and Workmill's may live in one file. Then an order and the job that ships it exist together, or not at all.
    mill = Workmill(f"sqlite:///{tmp_path}/shop.db")
    mill.store.migrate()

    @mill.job
    def ship(order: int) -> None: ...

    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")

        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (1)")
        ship.using(connection=connection).enqueue(1)
        connection.execute("ROLLBACK")
        assert mill.jobs.find() == []

        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (2)")
        ship.using(connection=connection).enqueue(2)
        connection.execute("COMMIT")
        assert [job.payload for job in mill.jobs.find()] == [{"order": 2}]

    mill.close()


def test_a_job_knows_itself_and_can_tell_how_far_it_is(mill: MemoryMill) -> None:
    @mill.job(queue="reports")
    def build(pages: int) -> str:
        job = current_job()
        for page in range(pages):
            job.check()  # ends this run when the job was cancelled, or has run too long
            job.progress(page / pages, f"page {page + 1}")
        return f"{job.queue}, attempt {job.attempt} of {job.max_attempts}"

    job = build.enqueue(3)
    mill.run_pending()

    assert job.wait().result == "reports, attempt 1 of 5"


def test_operators_look_after_jobs_and_queues(mill: MemoryMill) -> None:
    @mill.job(queue="mail")
    def send_email(to: str) -> None: ...

    wrong = send_email.using(tags=["campaign"]).enqueue("everybody@example.com")
    right = send_email.enqueue("ann@example.com")

    # The same verbs as on the command line: retry, cancel, discard, reschedule.
    mill.jobs.cancel_all(tag="campaign")
    assert wrong.refresh().state is State.CANCELLED

    mill.queues.pause("mail")
    assert mill.run_pending() == []
    mill.queues.resume("mail")
    assert [ran.job for ran in mill.run_pending()] == [right]

    # Everything that somebody did by hand is on record.
    assert [line.target for line in mill.audit()] != []


def test_an_application_hooks_in(mill: MemoryMill) -> None:
    told: list[str] = []

    @mill.on_startup
    def connect() -> None:
        told.append("the worker starts")

    @mill.middleware
    def around(job: RunningJob) -> Iterator[None]:
        told.append(f"before {job.type}")
        yield
        told.append(f"after {job.type}")

    @mill.job(name="work")
    def work() -> None:
        told.append("work")

    work.enqueue()
    mill.run_pending()

    assert told == ["the worker starts", "before work", "work", "after work"]
