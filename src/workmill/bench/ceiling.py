"""What the database alone can do: a bare table, one connection, batches, and no job system around them.

It is run in the same minute, on the same disk as the benchmark it stands beside: machines differ, and so do minutes;
the ratio of the two says what the job system costs.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from uuid import UUID

from workmill import clock
from workmill.bench.result import Round, figures_of
from workmill.bench.samples import spread
from workmill.bench.stand import Alike

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from workmill.bench.stand import Stand

JOBS: Final = 20_000
BATCH: Final = 100
PAYLOAD: Final = '{"id":123456,"url":"https://example.com/video/1.mp4"}'

TABLE: Final = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
CREATE TABLE jobs (id BLOB PRIMARY KEY, queue TEXT, type TEXT, state TEXT, priority INTEGER, payload TEXT, result TEXT,
                   attempt INTEGER, lease INTEGER, run_at REAL, finished_at REAL, worker TEXT);
CREATE INDEX claim ON jobs (queue, priority DESC, run_at, id) WHERE state = 'queued';
"""
INSERT: Final = f"""
INSERT INTO jobs (id, queue, type, state, priority, payload, attempt, lease, run_at)
VALUES (?, 'default', 'noop', 'queued', 0, '{PAYLOAD}', 0, 0, ?)
"""  # noqa: S608 - the payload is the constant above
FINISH: Final = """
UPDATE jobs SET state = 'succeeded', result = 'null', finished_at = ? WHERE id = ? AND lease = ? AND state = 'running'
"""
CLAIM: Final = """
UPDATE jobs SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker = 'w'
WHERE id IN (SELECT id FROM jobs WHERE queue = 'default' AND state = 'queued' ORDER BY priority DESC, run_at, id LIMIT ?)
RETURNING id, lease, payload
"""


class Rows(NamedTuple):
    """Rows a second: inserted; finished and claimed in one transaction; both, as a job's whole life. And each exchange, in microseconds."""

    insert: float
    exchange: float
    lifecycle: float
    exchanges: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling(Alike):
    """The bare table by itself, on the kind of database that the stand hands out."""

    name: ClassVar[str] = "ceiling"
    durations: ClassVar[str] = "one transaction that finishes a batch and claims the next"

    jobs: int = JOBS
    batch: int = BATCH

    def round(self, stand: Stand) -> Round:
        """Insert, then exchange."""
        rows = ceiling_of(stand, self.jobs, self.batch)
        return Round(
            figures_of(rows.exchange, spread(rows.exchanges), insert=rows.insert, exchange=rows.exchange, lifecycle=rows.lifecycle)
        )


def ceiling_of(stand: Stand, jobs: int = JOBS, batch: int = BATCH) -> Rows:
    """What the database of the stand's stores can do: on a new SQLite file, or on the server of a PostgreSQL store."""
    if stand.server is None:
        return sqlite_ceiling(stand.new_file(".ceiling"), jobs, batch)
    from workmill.bench.ceiling_postgres import measure  # noqa: PLC0415 - the driver is loaded when it is needed
    from workmill.bench.postgres import own_schema  # noqa: PLC0415 - the same

    with own_schema(stand.server) as schema:
        inserting, exchanges = measure(stand.server, schema, jobs, batch, PAYLOAD)
    return _rows(jobs, inserting, exchanges)


def sqlite_ceiling(path: Path, jobs: int = JOBS, batch: int = BATCH) -> Rows:
    """Measure a new SQLite file at `path` with the settings of the store: WAL and synchronous=FULL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(TABLE)
        inserting = _insert(database, jobs, batch)
        exchanges = _exchange(database, jobs, batch)
    return _rows(jobs, inserting, exchanges)


def _rows(jobs: int, inserting: float, exchanges: list[float]) -> Rows:
    exchanging = sum(exchanges) / 1e6
    return Rows(round(jobs / inserting), round(jobs / exchanging), round(jobs / (inserting + exchanging)), exchanges)


def _rising_ids() -> Iterator[UUID]:
    """Ids that rise, as UUIDv7 does: random ones touch every page of the index and cost a factor of four."""
    return (UUID(int=(clock.wall() // 1_000 << 80) | number) for number in count())


def _insert(database: sqlite3.Connection, jobs: int, batch: int) -> float:
    """Seconds to insert `jobs` rows, `batch` a transaction."""
    ids, start = _rising_ids(), perf_counter()
    for first in range(0, jobs, batch):
        now = clock.wall() / 1e6
        rows = [(next(ids).bytes, now + number * 1e-6) for number in range(min(batch, jobs - first))]
        database.execute("BEGIN IMMEDIATE")
        database.executemany(INSERT, rows)
        database.execute("COMMIT")
    return perf_counter() - start


def _exchange(database: sqlite3.Connection, jobs: int, batch: int) -> list[float]:
    """Take every row through both its states, finishing the last batch and claiming the next in one transaction; how long each took."""
    held: list[tuple[bytes, int, str]] = []
    done, took, then = 0, [], perf_counter()
    while done < jobs:
        now = clock.wall() / 1e6
        database.execute("BEGIN IMMEDIATE")
        database.executemany(FINISH, [(now, job, lease) for job, lease, _ in held])
        done += len(held)
        held = database.execute(CLAIM, (batch,)).fetchall()
        database.execute("COMMIT")
        before, then = then, perf_counter()
        took.append((then - before) * 1e6)
    return took
