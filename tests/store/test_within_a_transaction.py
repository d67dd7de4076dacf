"""Jobs inside an application's own SQLite transaction: with it or not at all, whatever its connection is like."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.errors import InvalidInput, StoreFailure, StoreNotReady, StoreUnavailable, TransactionTooOld
from workmill.domain.job import Receipt
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.sqlite.store import SQLiteStore
from workmill.testing.factories import a_job, claim, join, submit
from workmill.testing.steps import settle

QUEUED = ("default", State.QUEUED)


@pytest.fixture
def open_application(path: Path, file_store: Store) -> Iterator[Callable[..., sqlite3.Connection]]:
    """An application's connection to the same file, which has a table of its own."""
    opened = []

    def connect(**options: Any) -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, **options))
        return opened[-1]

    with closing(sqlite3.connect(path, isolation_level=None)) as first:
        first.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    yield connect
    for connection in opened:
        connection.close()


def orders(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM orders").fetchone()[0])


def by_name(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def test_a_job_comes_with_the_transaction_that_commits(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()
    application.execute("INSERT INTO orders VALUES (1)")

    (receipt,) = file_store.submit_within(application, [a_job()])
    assert (receipt.created, receipt.state, file_store.counts()) == (True, State.QUEUED, {})

    application.commit()
    assert file_store.counts() == {QUEUED: 1}
    assert [run.id for run in claim(file_store, join(file_store), 5)] == [receipt.id]
    settle(file_store)


def test_a_job_never_was_when_its_transaction_rolls_back(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()
    application.execute("INSERT INTO orders VALUES (1)")
    file_store.submit_within(application, [a_job(queue="new", unique_key="k")])

    application.rollback()

    assert (file_store.counts(), file_store.queues(), orders(application)) == ({}, [], 0)
    assert submit(file_store, unique_key="k").created
    settle(file_store)


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_in_the_drivers_usual_modes_a_transaction_is_open_afterwards(
    file_store: Store, open_application: Callable[..., sqlite3.Connection], level: str
) -> None:
    application = open_application(isolation_level=level)

    file_store.submit_within(application, [a_job()])
    assert application.in_transaction
    application.rollback()
    assert file_store.counts() == {}

    file_store.submit_within(application, [a_job()])
    application.commit()
    assert file_store.counts() == {QUEUED: 1}


def test_in_autocommit_all_of_it_is_committed_at_once(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application(isolation_level=None)

    file_store.submit_within(application, [a_job(), a_job()])

    assert (application.in_transaction, file_store.counts()) == (False, {QUEUED: 2})
    settle(file_store)


def test_in_autocommit_it_is_all_or_nothing(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application(isolation_level=None)
    jobs = [a_job() for _ in range(150)]

    with pytest.raises(StoreFailure):
        file_store.submit_within(application, [*jobs, a_job()._replace(payload='"\ud800"')])

    assert (application.in_transaction, file_store.counts()) == (False, {})


def test_the_connections_own_ways_are_kept_and_do_not_matter(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    class Own(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            raise AssertionError("not for others")

    application = open_application(factory=Own)
    application.row_factory, application.text_factory = by_name, bytes
    first = submit(file_store, unique_key="k")

    receipts = file_store.submit_within(application, [a_job(unique_key="k"), a_job()])

    assert [(receipt.created, receipt.state, type(receipt.queue)) for receipt in receipts] == [
        (False, State.QUEUED, str),
        (True, State.QUEUED, str),
    ]
    assert receipts[0].id == first.id
    assert (application.row_factory, application.text_factory) == (by_name, bytes)


def test_what_fails_leaves_the_applications_part(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()
    application.execute("INSERT INTO orders VALUES (1)")

    with pytest.raises(StoreFailure):
        file_store.submit_within(application, [a_job(), a_job()._replace(meta="\ud800")])

    assert application.in_transaction
    application.commit()
    assert (orders(application), file_store.counts()) == (1, {})


def test_what_fails_in_no_transaction_leaves_none_open(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()

    with pytest.raises(StoreFailure):
        file_store.submit_within(application, [a_job()._replace(meta="\ud800")])

    assert not application.in_transaction


def test_a_transaction_that_has_read_before_another_wrote_is_told_how_to_begin(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    application = open_application(isolation_level=None)
    application.execute("INSERT INTO orders VALUES (1)")
    application.execute("BEGIN")
    assert orders(application) == 1
    submit(file_store)

    with pytest.raises(TransactionTooOld, match="BEGIN IMMEDIATE"):
        file_store.submit_within(application, [a_job()])

    assert application.in_transaction
    assert orders(application) == 1
    application.execute("ROLLBACK")
    assert file_store.counts() == {QUEUED: 1}


def test_a_transaction_that_begins_immediately_may_read_first(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    application = open_application(isolation_level=None)
    application.execute("BEGIN IMMEDIATE")
    orders(application)

    file_store.submit_within(application, [a_job()])

    application.execute("COMMIT")
    assert file_store.counts() == {QUEUED: 1}


def test_a_transaction_that_has_read_is_not_kept_waiting_by_another_writer(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    application, other = open_application(isolation_level=None), open_application(isolation_level=None)
    application.execute("BEGIN")
    orders(application)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE"):
        file_store.submit_within(application, [a_job()])

    assert application.in_transaction


def test_who_has_not_read_waits_for_another_writer_as_long_as_the_connection_says(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    application, other = open_application(timeout=30), open_application(isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    release.start()

    file_store.submit_within(application, [a_job()])

    application.commit()
    release.join()
    assert file_store.counts() == {QUEUED: 1}


def test_a_store_that_waits_for_the_application_goes_on_after_its_commit(
    file_store: Store, open_application: Callable[..., sqlite3.Connection]
) -> None:
    application = open_application(isolation_level=None)
    application.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=submit, args=(file_store,))
    waiting.start()

    file_store.submit_within(application, [a_job()])
    application.execute("COMMIT")

    waiting.join()
    assert file_store.counts() == {QUEUED: 2}


@pytest.mark.parametrize(("end", "created"), [("ROLLBACK", True), ("COMMIT", False)])
def test_a_key_that_a_transaction_holds_is_decided_by_its_end(
    file_store: Store, open_application: Callable[..., sqlite3.Connection], end: str, *, created: bool
) -> None:
    application = open_application(isolation_level=None)
    application.execute("BEGIN")
    (first,) = file_store.submit_within(application, [a_job(unique_key="k")])
    receipts: list[Receipt] = []
    second = threading.Thread(target=lambda: receipts.append(submit(file_store, unique_key="k")))
    second.start()

    application.execute(end)

    second.join()
    assert [(receipt.created, receipt.id == first.id) for receipt in receipts] == [(created, not created)]
    assert file_store.counts() == {QUEUED: 1}


def test_the_application_gets_in_beside_a_busy_store(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application, stopping = open_application(timeout=30), threading.Event()

    def write() -> None:
        while not stopping.is_set():
            submit(file_store, queue="busy")

    writer = threading.Thread(target=write)
    writer.start()
    for number in range(5):
        with application:
            application.execute("INSERT INTO orders VALUES (?)", (number,))
            file_store.submit_within(application, [a_job()])
    stopping.set()
    writer.join()

    assert (orders(application), file_store.counts()[QUEUED]) == (5, 5)
    settle(file_store)


def test_the_applications_commit_wakes_those_who_subscribed(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application, woken = open_application(), threading.Event()
    stop = file_store.subscribe(woken.set)
    file_store.submit_within(application, [a_job()])
    with suppress(TimeoutError):
        _until(woken.is_set, 0.2)
    woken.clear()

    application.commit()

    assert woken.wait(10)
    stop()


def test_the_store_itself_is_not_opened(path: Path, file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()
    with closing(SQLiteStore(f"sqlite:///{path}")) as store:
        store.submit_within(application, [a_job()])
        application.commit()

        assert store._database._opened is None
    assert file_store.counts() == {QUEUED: 1}


def test_a_database_without_the_schema_says_so(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/other.db")
    with closing(store), closing(sqlite3.connect(tmp_path / "other.db")) as application:
        application.execute("CREATE TABLE orders (id)")
        application.execute("INSERT INTO orders VALUES (1)")

        with pytest.raises(StoreNotReady, match="workmill migrate"):
            store.submit_within(application, [a_job()])

        assert orders(application) == 1


@pytest.mark.parametrize(("version", "hint"), [(9999, "upgrade Workmill"), (0, "workmill migrate")])
def test_a_database_with_another_schema_says_so(
    file_store: Store, sql: sqlite3.Connection, open_application: Callable[..., sqlite3.Connection], version: int, hint: str
) -> None:
    sql.execute("DELETE FROM workmill_migrations")
    sql.execute("INSERT INTO workmill_migrations VALUES (?, 'another', 0)", (version,))
    application = open_application()

    with pytest.raises(StoreNotReady, match=hint):
        file_store.submit_within(application, [a_job()])

    assert not application.in_transaction
    assert sql.execute("SELECT count(*) FROM workmill_jobs").fetchone() == (0,)


@pytest.mark.parametrize("connection", [None, "sqlite:///x.db", 7], ids=str)
def test_what_is_no_connection_is_refused(file_store: Store, connection: object) -> None:
    with pytest.raises(InvalidInput, match=r"^connection: must be an sqlite3\.Connection"):
        file_store.submit_within(connection, [a_job()])


def test_nothing_submitted_touches_nothing(file_store: Store, open_application: Callable[..., sqlite3.Connection]) -> None:
    application = open_application()

    assert file_store.submit_within(application, []) == []
    assert not application.in_transaction


def _until(condition: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.001)
