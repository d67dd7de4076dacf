"""The ceiling does all of the work that it claims to have done."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from workmill.bench.ceiling import PAYLOAD, sqlite_ceiling
from workmill.bench.ceiling_postgres import measure
from workmill.bench.postgres import own_schema
from workmill.testing.servers import PostgresServer


@pytest.mark.parametrize(("jobs", "batch"), [(250, 100), (100, 100), (7, 10)])
def test_every_row_is_inserted_claimed_once_and_finished(tmp_path: Path, jobs: int, batch: int) -> None:
    sqlite_ceiling(tmp_path / "ceiling.db", jobs, batch)

    with closing(sqlite3.connect(tmp_path / "ceiling.db")) as database:
        found = database.execute("SELECT state, attempt, lease, count(*) FROM jobs GROUP BY 1, 2, 3").fetchall()
    assert found == [("succeeded", 1, 1, jobs)]


def test_its_figures_are_rates_and_its_exchanges_are_all_there(tmp_path: Path) -> None:
    rows = sqlite_ceiling(tmp_path / "ceiling.db", jobs=250, batch=100)

    assert len(rows.exchanges) == 4
    assert min(rows.insert, rows.exchange) > rows.lifecycle > 0


def test_the_ceiling_on_postgresql_takes_every_row_through_in_a_schema_that_is_dropped(postgres: PostgresServer) -> None:
    with own_schema(postgres.url) as schema, psycopg.connect(postgres.url) as database:
        inserting, exchanges = measure(postgres.url, schema, 250, 100, PAYLOAD)
        found = database.execute(SQL("SELECT state, attempt, lease, count(*) FROM {}.jobs GROUP BY 1, 2, 3").format(Identifier(schema)))
        rows = found.fetchall()

    assert rows == [("succeeded", 1, 1, 250)]
    assert inserting > 0
    assert len(exchanges) == 4  # three claims, and the end of the last
    with psycopg.connect(postgres.url) as database:
        assert database.execute("SELECT to_regnamespace(%s)", [schema]).fetchall() == [(None,)]
