"""What runs for every job goes along its index and reads no table through: on a fresh, an analysed and a grown PostgreSQL database."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import psycopg
import pytest

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.postgres.database import WRITE
from workmill.store.postgres.dialect import load
from workmill.testing.factories import a_job, claim, join, report, succeeded
from workmill.testing.servers import PostgresServer

NUMBERS = count(1)
BY_ID = "jobs_pkey"
INDEXES = {
    "claim_first": "jobs_claim",
    "list_claimable": "jobs_claim",
    "list_apart": "jobs_aside",
    "ready_queues": "jobs_claim",
    "waiting_queues": "jobs_aside",
    "has_overdue": "jobs_expiring",
    "count_running": "jobs_running",
    "held_runs": "jobs_running",
    "holds_suspect": "jobs_running",
    "find_by_key": "jobs_unique",
    "find_by_id": BY_ID,
    "finish_jobs": BY_ID,
    "read_runs": BY_ID,
    "end_runs": BY_ID,
    "read_repeats": BY_ID,
    "claim_given": BY_ID,
    "store_progress": BY_ID,
    "lock_jobs": BY_ID,
    "promote_jobs": BY_ID,
    "lose_jobs": BY_ID,
    "omit_attempts": BY_ID,
    "due_jobs": "jobs_due",
    "overdue_jobs": "jobs_expiring",
    "finished_jobs": "jobs_finished",
    "read_worker": "workers_pkey",
    "lock_worker": "workers_pkey",
    "renew_worker": "workers_pkey",
}
SORTLESS = ["claim_first", "finish_jobs", "claim_given", "held_runs", "due_jobs"]


@pytest.fixture(scope="module", params=["fresh", "analysed when small", "analysed when large", "grown after it was analysed"])
def database(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    schema = f"plans_{next(NUMBERS)}"
    with (
        closing(open_store(postgres.url, schema=schema)) as store,
        psycopg.connect(postgres.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection,
    ):
        store.migrate()
        connection.execute(f'ALTER TABLE "{schema}".jobs SET (autovacuum_enabled = off)'.encode())
        if request.param in {"analysed when small", "grown after it was analysed"}:
            grow(store, 4)
            connection.execute(b"ANALYZE")
        if request.param in {"analysed when large", "grown after it was analysed"}:
            grow(store, 4_000)
        if request.param == "analysed when large":
            connection.execute(b"ANALYZE")
        yield connection, schema


def grow(store: Store, jobs: int) -> None:
    """A quarter succeeded, a quarter running, half queued, in three queues."""
    store.submit([a_job(queue=f"q{number % 3}") for number in range(jobs)])
    worker = join(store)
    report(store, worker, *[succeeded(run) for run in claim(store, worker, jobs // 4, None)])
    claim(store, worker, jobs // 4, None)


def plan(database: tuple[psycopg.Connection[Any], str], name: str) -> str:
    """The plan that a write transaction makes, whatever the values are."""
    connection, schema = database
    connection.execute(WRITE, prepare=False)
    try:
        text = load(schema)[name].text
        return "\n".join(row[0] for row in connection.execute(b"EXPLAIN (GENERIC_PLAN) " + text, prepare=False).fetchall())
    finally:
        connection.rollback()


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_uses_its_index_and_reads_no_table_through(name: str, database: tuple[psycopg.Connection[Any], str]) -> None:
    found = plan(database, name)

    assert f" using {INDEXES[name]} " in found or f"on {INDEXES[name]} " in found
    assert "Seq Scan on jobs" not in found
    assert "Hash" not in found.replace("HashAggregate", "")


@pytest.mark.parametrize("name", SORTLESS)
def test_a_claim_sorts_nothing(name: str, database: tuple[psycopg.Connection[Any], str]) -> None:
    assert "Sort" not in plan(database, name)


def test_a_claim_begins_at_the_head_of_its_queue(database: tuple[psycopg.Connection[Any], str], postgres: PostgresServer) -> None:
    assert "Index Cond: (queue =" in plan(database, "claim_first")
