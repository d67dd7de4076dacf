"""Jobs inside an application's own PostgreSQL transaction: with it or not at all, whatever its connection is like."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db.utils import ConnectionHandler
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from workmill import Workmill
from workmill.domain.errors import Conflict, InvalidInput, StoreNotReady
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.testing.factories import a_job, claim, join, submit
from workmill.testing.servers import PostgresServer
from workmill.testing.steps import settle

QUEUED = ("default", State.QUEUED)
if not settings.configured:
    settings.configure(USE_TZ=True)


@pytest.fixture
def store(postgres_store: Callable[[], Store]) -> Store:
    return postgres_store()


@pytest.fixture
def open_application(postgres: PostgresServer) -> Iterator[Callable[..., psycopg.Connection[Any]]]:
    """An application's connection to the same database."""
    opened: list[psycopg.Connection[Any]] = []

    def connect(**options: Any) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(postgres.url, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def application(open_application: Callable[..., psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
    connection = open_application()
    connection.execute("CREATE TEMPORARY TABLE orders (id integer PRIMARY KEY)")
    connection.commit()
    return connection


def test_a_job_comes_with_the_transaction_that_commits(store: Store, application: psycopg.Connection[Any]) -> None:
    application.execute("INSERT INTO orders VALUES (1)")

    (receipt,) = store.submit_within(application, [a_job()])
    assert (receipt.created, receipt.state, store.counts()) == (True, State.QUEUED, {})

    application.commit()
    assert store.counts() == {QUEUED: 1}
    assert [run.id for run in claim(store, join(store), 5)] == [receipt.id]
    settle(store)


def test_a_job_never_was_when_its_transaction_rolls_back(store: Store, application: psycopg.Connection[Any]) -> None:
    application.execute("INSERT INTO orders VALUES (1)")
    store.submit_within(application, [a_job(queue="new", unique_key="k")])

    application.rollback()

    assert (store.counts(), store.queues()) == ({}, [])
    assert submit(store, unique_key="k").created
    settle(store)


def test_what_fails_here_costs_the_caller_nothing_of_its_own(store: Store, application: psycopg.Connection[Any]) -> None:
    application.execute("INSERT INTO orders VALUES (1)")
    spoiled = a_job()._replace(payload="\x00")

    with pytest.raises(Exception, match="0x00"):
        store.submit_within(application, [spoiled])
    application.commit()

    assert application.execute("SELECT id FROM orders").fetchall() == [(1,)]
    assert store.counts() == {}


def test_outside_of_a_transaction_an_autocommit_connection_commits_at_once(
    store: Store, open_application: Callable[..., psycopg.Connection[Any]]
) -> None:
    application = open_application(autocommit=True)

    store.submit_within(application, [a_job(), a_job()])

    assert store.counts() == {QUEUED: 2}
    assert application.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_callers_own_rows_and_session_are_left_as_they_were(
    store: Store, open_application: Callable[..., psycopg.Connection[Any]]
) -> None:
    application = open_application(row_factory=dict_row, autocommit=True)

    with application.transaction():
        store.submit_within(application, [a_job(priority=3)])
        told = application.execute("SELECT current_setting('enable_seqscan') AS seqscan, pg_typeof(%s)::text AS five", [5]).fetchall()

    assert told == [{"seqscan": "on", "five": "smallint"}]
    assert store.counts() == {QUEUED: 1}


def test_the_commit_of_a_callers_transaction_wakes_who_has_subscribed(store: Store, application: psycopg.Connection[Any]) -> None:
    woken = threading.Semaphore(0)
    stop = store.subscribe(woken.release)
    assert woken.acquire(timeout=20)  # a listener that has just begun says so, since it may have missed something
    store.submit_within(application, [a_job()])
    assert not woken.acquire(timeout=0.2)

    application.commit()

    assert woken.acquire(timeout=20)
    stop()


def test_a_key_held_in_an_open_transaction_stops_nobody_else(store: Store, application: psycopg.Connection[Any]) -> None:
    store.submit_within(application, [a_job(unique_key="k")])

    with pytest.raises(Conflict, match="held in another open transaction") as caught:
        submit(store, unique_key="k")
    others = [submit(store), submit(store, unique_key="another")]

    assert caught.value.code == "key_busy"
    assert [receipt.created for receipt in others] == [True, True]
    application.rollback()
    assert submit(store, unique_key="k").created
    settle(store)


def test_a_transaction_of_the_caller_waits_for_the_key_that_another_holds(
    store: Store, open_application: Callable[..., psycopg.Connection[Any]]
) -> None:
    one, other = open_application(), open_application()
    (first,) = store.submit_within(one, [a_job(unique_key="k")])
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.extend(store.submit_within(other, [a_job(unique_key="k")])))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()

    one.commit()
    waiting.join(20)
    other.commit()

    assert [(answer.id, answer.created) for answer in answers] == [(first.id, False)]
    settle(store)


def test_a_connection_of_something_else_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="connection: must be a connection to PostgreSQL by psycopg, SQLAlchemy or Django"):
        store.submit_within(object(), [a_job()])


def test_a_connection_in_another_encoding_is_refused(store: Store, open_application: Callable[..., psycopg.Connection[Any]]) -> None:
    application = open_application(client_encoding="latin1")

    with pytest.raises(InvalidInput, match="client_encoding UTF8"):
        store.submit_within(application, [a_job()])


def test_a_database_without_the_schema_says_what_to_run(
    postgres_store: Callable[..., Store], open_application: Callable[..., psycopg.Connection[Any]]
) -> None:
    store = postgres_store()
    application = open_application(autocommit=True)
    application.execute(f'DROP SCHEMA "{vars(store)["_schema"]}" CASCADE')

    with pytest.raises(StoreNotReady, match="workmill migrate"):
        store.submit_within(application, [a_job()])


def test_a_connection_of_an_event_loop_commits_and_rolls_back(postgres: PostgresServer, postgres_store: Callable[..., Store]) -> None:
    store = postgres_store()
    mill = Workmill(store.url)
    noop = mill.job(name="noop")(nothing)

    async def enqueue() -> None:
        async with await psycopg.AsyncConnection.connect(postgres.url) as connection:
            await noop.using(connection=connection, unique_key="rolled back").enqueue_async()
            await connection.rollback()
            await connection.set_autocommit(True)
            async with connection.transaction():
                await noop.using(connection=connection, unique_key="committed").enqueue_async()
                assert store.counts() == {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKMILL_SCHEMA", str(vars(store)["_schema"]))
        asyncio.run(enqueue())
        mill.close()

    assert [job.unique_key for job in store.jobs(Selection()).jobs] == ["committed"]


def nothing() -> None:
    """Do nothing."""


def test_a_connection_of_an_event_loop_is_refused_where_nobody_can_wait_for_it(postgres: PostgresServer, store: Store) -> None:
    async def enqueue() -> None:
        async with await psycopg.AsyncConnection.connect(postgres.url) as connection:
            with pytest.raises(InvalidInput, match="use it with enqueue_async"):
                store.submit_within(connection, [a_job()])

    asyncio.run(enqueue())


def test_a_session_or_connection_of_sqlalchemy_commits_and_rolls_back(postgres: PostgresServer, store: Store) -> None:
    engine = sqlalchemy.create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))

    with Session(engine) as session:
        store.submit_within(session, [a_job(queue="rolled-back")])
        session.rollback()
        session.execute(sqlalchemy.text("SELECT 1"))
        store.submit_within(session, [a_job(queue="session")])
        session.commit()
    with engine.begin() as connection:
        store.submit_within(connection, [a_job(queue="connection")])
    with engine.connect() as connection:
        store.submit_within(connection, [a_job(queue="not-begun")])
        connection.commit()
        store.submit_within(connection, [a_job(queue="rolled-back")])
        connection.rollback()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        store.submit_within(connection, [a_job(queue="autocommit")])
    engine.dispose()

    assert {queue for queue, _ in store.counts()} == {"connection", "session", "not-begun", "autocommit"}


def test_a_connection_of_django_commits_and_rolls_back(postgres: PostgresServer, store: Store) -> None:
    host = str(postgres.directory)
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": host}
    connections = ConnectionHandler({"default": database})
    connection = connections["default"]

    with suppress(ZeroDivisionError), transaction(connection):
        store.submit_within(connection, [a_job(queue="rolled-back")])
        raise ZeroDivisionError
    with transaction(connection):
        store.submit_within(connection, [a_job(queue="committed")])
        assert store.counts() == {}
    connection.close()

    assert store.counts() == {("committed", State.QUEUED): 1}


@contextmanager
def transaction(connection: Any) -> Iterator[None]:
    """What `django.db.transaction.atomic` does to a connection that is not among the settings."""
    connection.set_autocommit(False)
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    else:
        connection.commit()
    finally:
        connection.set_autocommit(True)


def test_one_key_in_two_schemas_of_one_database_is_two_keys(
    store: Store, postgres_store: Callable[[], Store], application: psycopg.Connection[Any]
) -> None:
    store.submit_within(application, [a_job(unique_key="k")])

    assert submit(postgres_store(), unique_key="k").created
