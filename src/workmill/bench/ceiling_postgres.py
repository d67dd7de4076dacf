"""The ceiling on PostgreSQL: the same bare table and the same batches, on the server of the store that is measured."""

from __future__ import annotations

from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from workmill import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE: Final = """
CREATE TABLE {there}.jobs (id uuid PRIMARY KEY, queue text, type text, state text, priority smallint, payload json, result json,
                      attempt int, lease int, run_at timestamptz, finished_at timestamptz, worker text);
CREATE INDEX ON {there}.jobs (queue, priority DESC, run_at, id) WHERE state = 'queued';
"""
INSERT: Final = """
INSERT INTO {there}.jobs (id, queue, type, state, priority, payload, attempt, lease, run_at)
SELECT unnest(%s::uuid[]), 'default', 'noop', 'queued', 0, %s, 0, 0, clock_timestamp()
"""
FINISH: Final = """
UPDATE {there}.jobs job SET state = 'succeeded', result = 'null', finished_at = now()
FROM unnest(%s::uuid[], %s::int[]) AS done (id, lease)
WHERE job.id = done.id AND job.lease = done.lease AND job.state = 'running'
"""
CLAIM: Final = """
WITH picked AS (
    SELECT id FROM {there}.jobs WHERE queue = 'default' AND state = 'queued'
    ORDER BY priority DESC, run_at, id LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE {there}.jobs job SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker = 'w'
FROM picked WHERE job.id = picked.id
RETURNING job.id, job.lease, job.payload::text
"""
Database = psycopg.Connection[tuple[Any, ...]]


def measure(url: str, schema: str, jobs: int, batch: int, payload: str) -> tuple[float, list[float]]:
    """Seconds to insert `jobs` rows into a new table in `schema`, and how long each exchange took, in microseconds."""
    there = Identifier(schema)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(SQL(TABLE).format(there=there))
        return _insert(database, SQL(INSERT).format(there=there), jobs, batch, payload), _exchange(database, there, jobs, batch)


def _rising_ids() -> Iterator[UUID]:
    return (UUID(int=(clock.wall() // 1_000 << 80) | number) for number in count())


def _insert(database: Database, statement: Composed, jobs: int, batch: int, payload: str) -> float:
    ids, start = _rising_ids(), perf_counter()
    for first in range(0, jobs, batch):
        database.execute(statement, ([next(ids) for _ in range(min(batch, jobs - first))], payload))
    return perf_counter() - start


def _exchange(database: Database, there: Identifier, jobs: int, batch: int) -> list[float]:
    finish, claim = SQL(FINISH).format(there=there), SQL(CLAIM).format(there=there)
    held: list[tuple[Any, ...]] = []
    done, took, then = 0, [], perf_counter()
    while done < jobs:
        with database.transaction(), database.pipeline():
            if held:
                database.execute(finish, ([row[0] for row in held], [row[1] for row in held]))
            cursor = database.execute(claim, (batch,))
        done += len(held)
        held = cursor.fetchall()
        before, then = then, perf_counter()
        took.append((then - before) * 1e6)
    return took
