"""The schema of a PostgreSQL store: made, missing, newer, made by somebody else, in a database of another encoding."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier

from workmill.domain.errors import StoreFailure, StoreNotReady
from workmill.domain.outcome import Accepted
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import claim_one, join, report, submit, succeeded
from workmill.testing.servers import PostgresServer
from workmill.testing.steps import settle

PATIENCE = 30.0


@pytest.fixture
def server(postgres: PostgresServer) -> PostgresServer:
    return postgres


@pytest.fixture
def store(postgres_store: Callable[[], Store]) -> Store:
    return postgres_store()


@pytest.fixture
def schema(store: Store) -> str:
    return str(vars(store)["_schema"])


@pytest.fixture
def sql(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own, in autocommit."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def sql_of(text: LiteralString, schema: str) -> Composed:
    """A statement on a table of the store."""
    return SQL(text).format(Identifier(schema))


def test_a_schema_that_is_missing_says_what_to_run(server: PostgresServer) -> None:
    with closing(open_store(server.url, schema="nobody_made_this")) as store:
        with pytest.raises(StoreNotReady, match="run `workmill migrate`"):
            submit(store)

        assert store.pending_migrations() == ["0001_initial"]
        assert 'CREATE TABLE "nobody_made_this".jobs' in store.migration_sql()


def test_what_migrate_prints_is_what_it_runs(server: PostgresServer, sql: psycopg.Connection[Any]) -> None:
    with closing(open_store(server.url, schema="by_hand")) as store:
        sql.execute(store.migration_sql().encode())

        assert store.pending_migrations() == []
        assert store.migrate() == []
        assert submit(store).created


def test_many_who_migrate_at_once_do_it_once(server: PostgresServer) -> None:
    barrier = threading.Barrier(4, timeout=PATIENCE)
    names: list[list[str]] = []

    def migrate() -> None:
        with closing(open_store(server.url, schema="at_once")) as store:
            barrier.wait()
            names.append(store.migrate())

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(names) == [[], [], [], ["0001_initial"]]


def test_an_older_version_goes_on_beside_a_newer_schema(store: Store, sql: psycopg.Connection[Any], schema: str) -> None:
    worker = join(store)
    submit(store)

    sql.execute(sql_of("ALTER TABLE {}.jobs ADD COLUMN later text", schema))
    sql.execute(sql_of("INSERT INTO {}.migrations (version, name) VALUES (9999, '9999_later')", schema))

    assert [type(verdict) for verdict in report(store, worker, succeeded(claim_one(store, worker)))] == [Accepted]
    with closing(open_store(vars(store)["url"], schema=schema)) as started_later:
        assert submit(started_later).created
    settle(store)


def test_a_role_without_rights_is_told_so_and_one_that_owns_the_schema_may_migrate(
    server: PostgresServer, sql: psycopg.Connection[Any], store: Store, schema: str
) -> None:
    for statement in (
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "DROP SCHEMA IF EXISTS guests",
        "CREATE SCHEMA guests AUTHORIZATION guest",
    ):
        sql.execute(statement)
    url = server.url.replace("postgres@", "guest@")

    with closing(open_store(url, schema=schema)) as stranger, pytest.raises(StoreFailure, match="permission denied"):
        submit(stranger)
    with closing(open_store(url, schema="guests")) as owner:
        assert owner.migrate() == ["0001_initial"]
        assert submit(owner).created


def test_text_survives_a_database_of_another_encoding(server: PostgresServer, sql: psycopg.Connection[Any]) -> None:
    sql.execute("DROP DATABASE IF EXISTS latin")
    sql.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")

    with closing(open_store(server.url.replace("/postgres?", "/latin?"))) as store:
        store.migrate()
        receipt = submit(store, payload='{"name": "é"}')

        assert store.job(receipt.id).payload == '{"name": "é"}'
