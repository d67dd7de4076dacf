"""Enqueueing within the caller's own SQLite transaction: with its data, or not at all."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from workmill import TransactionTooOld, Workmill


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Workmill]:
    """A Workmill on a file."""
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        yield mill


def test_a_coroutine_can_enqueue_in_the_callers_transaction(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def send(to: str) -> None: ...

    async def in_transaction(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        await send.using(connection=connection).enqueue_async("a")
        await filed.enqueue_many_async([send.job("b")], connection=connection)
        connection.execute("COMMIT")

    filed.store.migrate()
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
        asyncio.run(in_transaction(connection))

    assert [job.payload["to"] for job in filed.jobs.find()] == ["b", "a"]


def test_a_job_enqueued_in_the_callers_transaction_exists_when_that_commits(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def send(to: str) -> None: ...

    filed.store.migrate()
    connection = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    connection.execute("CREATE TABLE orders (id INTEGER)")

    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (1)")
    job = send.using(connection=connection).enqueue("a")
    before = filed.jobs.find()
    connection.execute("COMMIT")

    assert before == []
    assert filed.jobs.find() == [job]
    assert job.payload == {"to": "a"}
    connection.close()


def test_a_job_enqueued_in_a_transaction_that_is_rolled_back_never_existed(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def send(to: str) -> None: ...

    filed.store.migrate()
    connection = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)

    connection.execute("BEGIN IMMEDIATE")
    filed.enqueue_many([send.job("a"), send.job("b")], connection=connection)
    connection.execute("ROLLBACK")

    assert filed.jobs.find() == []
    connection.close()


def test_a_callers_transaction_that_read_before_others_wrote_gets_a_clear_error_and_keeps_its_data(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def send(to: str) -> None: ...

    filed.store.migrate()
    connection = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM orders").fetchall()
    send.enqueue("another process's")

    with pytest.raises(TransactionTooOld, match=r"BEGIN IMMEDIATE"):
        send.using(connection=connection).enqueue("a")

    connection.execute("ROLLBACK")
    connection.execute("INSERT INTO orders VALUES (1)")
    assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    assert len(filed.jobs.find()) == 1
    connection.close()
