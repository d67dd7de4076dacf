"""Millions of rows that no claim wants, written by a PostgreSQL server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.sql import SQL, Identifier

from workmill.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS: Final = """
INSERT INTO {there}.jobs (id, queue, type, state, priority, run_at, attempt, lease, worker_id, claimed_at, started_at, finished_at,
                          created_at, max_attempts, max_losses, result, payload)
SELECT {prefix} || lpad(to_hex(number), 12, '0'), {queue}, {type}, {state}, 0, now.at + {delay}, {runs}, {runs},
       CASE WHEN {runs} > 0 THEN {worker} END, CASE WHEN {runs} > 0 THEN now.at END, CASE WHEN {runs} > 0 THEN now.at END,
       CASE WHEN {runs} > 0 THEN now.at + number END, now.at, 5, 3, CASE WHEN {runs} > 0 THEN 'null' END, {payload}
FROM generate_series({first}::bigint, {last}::bigint) AS number,
     (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 3600000000 AS at) AS now
"""
COUNT: Final = """
INSERT INTO {there}.count_deltas (queue, state, jobs) VALUES ({queue}, {state}, {jobs})
"""
A_DAY: Final = 86_400_000_000
AT_ONCE: Final = 100_000


def crowd(url: str, schema: str, kind: str, payload: str, *, queue: str, elsewhere: str, rows: int, finished: int) -> Iterator[None]:
    """`finished` jobs that have succeeded, `rows` in another queue and `rows` for tomorrow; at each step there are 100,000 more."""
    sorts = ((queue, "succeeded", 0, 1, finished), (elsewhere, "queued", 0, 0, rows), (queue, "scheduled", 2 * A_DAY, 0, rows))
    there = Identifier(schema)
    with psycopg.connect(url, autocommit=True) as database:
        for name, state, delay, runs, jobs in sorts:
            some = {"there": there, "queue": name, "state": state, "delay": delay, "runs": runs, "type": kind, "payload": payload}
            prefix = new_id()[:-12]
            for first in range(1, jobs + 1, AT_ONCE):
                part = {"prefix": prefix, "worker": new_id(), "first": first, "last": min(jobs, first + AT_ONCE - 1)}
                database.execute(SQL(ROWS).format(**some, **part))
                yield
            database.execute(SQL(COUNT).format(there=there, queue=name, state=state, jobs=jobs))
        database.execute(SQL("VACUUM (ANALYZE) {}.jobs").format(there))
