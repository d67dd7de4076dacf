"""What runs for every job reads its index and nothing else, and sorts nothing: on a fresh, an analysed and a grown database."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from workmill.store import statements
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job, claim, join, report, succeeded

STATEMENTS = statements.load("workmill.store.sqlite")
BY_ID = "sqlite_autoindex_workmill_jobs_1 (id=?)"
INDEXES = {
    "claim_first": "workmill_jobs_claim (queue=?)",
    "list_claimable": "workmill_jobs_claim (queue=?)",
    "list_apart": "workmill_jobs_aside (queue=? AND <expr>=?)",
    "ready_queues": "workmill_jobs_claim (queue>?)",
    "waiting_queues": "workmill_jobs_aside (queue=?)",
    "has_overdue": "workmill_jobs_expiring (expires_at>? AND expires_at<?)",
    "count_running": "workmill_jobs_running (worker_id=? AND queue=?)",
    "held_runs": "workmill_jobs_running (worker_id=?)",
    "holds_suspect": "workmill_jobs_running (worker_id=?)",
    "find_by_key": "workmill_jobs_unique (type=? AND unique_key=?)",
    "find_by_id": BY_ID,
    "finish_jobs": BY_ID,
    "read_runs": BY_ID,
    "end_runs": BY_ID,
    "read_repeats": BY_ID,
    "claim_given": BY_ID,
    "store_progress": BY_ID,
    "omit_attempts": BY_ID,
    "restricted_queues": "workmill_queues_restricted",
    "read_worker": "PRIMARY KEY (id=?)",
    "renew_worker": "PRIMARY KEY (id=?)",
    "trim_attempts": "PRIMARY KEY (job_id=? AND lease<?)",
}
SORTLESS = ["claim_first", "list_claimable", "list_apart", "finish_jobs", "claim_given", "held_runs", "trim_attempts"]


@pytest.fixture(scope="module", params=["fresh", "analysed when small", "analysed when large", "grown after it was analysed"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    with closing(open_store(f"sqlite:///{path}")) as store, closing(sqlite3.connect(path, isolation_level=None)) as connection:
        store.counts()
        if request.param in {"analysed when small", "grown after it was analysed"}:
            grow(store, 4)
            connection.execute("ANALYZE")
        if request.param in {"analysed when large", "grown after it was analysed"}:
            grow(store, 2_000)
        if request.param == "analysed when large":
            connection.execute("ANALYZE")
        yield connection


def grow(store: Store, jobs: int) -> None:
    """A quarter succeeded, a quarter running, half queued, in three queues."""
    store.submit([a_job(queue=f"q{number % 3}") for number in range(jobs)])
    worker = join(store)
    report(store, worker, *[succeeded(run) for run in claim(store, worker, jobs // 4, None)])
    claim(store, worker, jobs // 4, None)


def plan(database: sqlite3.Connection, name: str) -> list[str]:
    statement = STATEMENTS[name]
    relation = re.search(r"given \(([^)]*)\)", statement.before)
    text = statement.over(3, len(relation[1].split(","))) if relation else statement.before
    return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("?"))]


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_uses_its_index(name: str, database: sqlite3.Connection) -> None:
    assert [step for step in plan(database, name) if INDEXES[name] in step]


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_reads_no_table_of_jobs_or_attempts_through(name: str, database: sqlite3.Connection) -> None:
    through = re.compile(r"SCAN (job|next|attempt|workmill_jobs|workmill_attempts)\b.*")

    steps = plan(database, name)

    assert [step for step in steps if through.fullmatch(step)] == []
    assert [step for step in steps if "AUTOMATIC" in step] == []


@pytest.mark.parametrize("name", SORTLESS)
def test_a_claim_sorts_nothing(name: str, database: sqlite3.Connection) -> None:
    assert [step for step in plan(database, name) if "TEMP B-TREE" in step] == []
