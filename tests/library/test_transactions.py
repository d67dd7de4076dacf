"""Enqueueing within the caller's own SQLite transaction: with its data, or not at all."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from workmill import InvalidInput, PreparedJob, TransactionTooOld, Workmill
from workmill.domain.errors import StoreUnavailable
from workmill.domain.submission import new_job
from workmill.ids import new_id
from workmill.store.sqlite.turnstile import Turnstile


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


def test_a_connection_to_another_file_is_refused_with_both_names_and_left_as_it_was(filed: Workmill, tmp_path: Path) -> None:
    @filed.job
    def send(to: str) -> None: ...

    with Workmill(f"sqlite:///{tmp_path}/other.db") as other, closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        other.store.migrate()
        for connected, name in ((connection, "other.db"), (sqlite3.connect(":memory:"), "a database in memory")):
            with pytest.raises(InvalidInput, match=rf"^connection: must be one to this Workmill's store, .*/jobs\.db \(got .*{name}\)$"):
                send.using(connection=connected).enqueue("a")
            assert not connected.in_transaction
        connected.close()

        assert other.jobs.find() == filed.jobs.find() == []


def test_a_store_in_memory_takes_no_connection(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    refused = pytest.raises(InvalidInput, match=r"^connection: cannot be used with a store in memory.*other\.db")

    with closing(connection), Workmill("sqlite://") as mill, refused:
        mill.enqueue_many([PreparedJob(new_job(new_id(), "x", "{}"))], connection=connection)


def test_who_waits_behind_a_blocked_writer_is_told_that_it_may_be_another_program(filed: Workmill, tmp_path: Path) -> None:
    filed.store.migrate()
    turns = Turnstile(str(tmp_path / "jobs.db"), 0.0, lambda: None)
    turns.enter(1.0)

    with pytest.raises(StoreUnavailable, match=r"a write of this process has gone on, or waited for another program"):
        turns.enter(0.01)

    turns.leave()
    turns.close()


def test_another_path_to_the_same_file_is_the_same_store(filed: Workmill, tmp_path: Path) -> None:
    filed.store.migrate()
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")

    with closing(sqlite3.connect(tmp_path / "link.db", isolation_level=None)) as connection:
        connection.text_factory = bytes
        filed.enqueue_many([PreparedJob(new_job(new_id(), "x", "{}"))], connection=connection)

    assert len(filed.jobs.find()) == 1
