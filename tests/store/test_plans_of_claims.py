"""What runs for every job reads its index and nothing else, and sorts nothing: on a fresh, an analysed and a grown database."""

import re
import sqlite3
from collections.abc import Callable

import pytest

from workmill.domain.states import State
from workmill.store import statements
from workmill.store.base import Store

STATEMENTS = statements.load("workmill.store.sqlite")
BY_ID = "sqlite_autoindex_workmill_jobs_1 (id=?)"
INDEXES = {
    "claim_first": "workmill_jobs_claim (queue=?)",
    "list_claimable": "workmill_jobs_claim (queue=?)",
    "list_apart": "workmill_jobs_aside (queue=? AND <expr>=?)",
    "ready_queues": "workmill_jobs_claim (queue>?)",
    "apart_queues": "workmill_jobs_aside (queue=?)",
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


@pytest.fixture(params=["fresh", "analysed when small", "analysed when large", "grown after it was analysed"])
def database(request: pytest.FixtureRequest, file_store: Store, sql: sqlite3.Connection, plant: Callable[..., str]) -> sqlite3.Connection:
    sizes = {"fresh": [], "analysed when small": [1], "analysed when large": [2_000], "grown after it was analysed": [1, 2_000]}
    for size in sizes[request.param]:
        sql.execute("BEGIN")
        for number in range(size):
            state = [State.SUCCEEDED, State.RUNNING, State.QUEUED, State.SUCCEEDED][number % 4]
            plant(state, worker_id=f"w{number % 7}" if state is State.RUNNING else None, queue=f"q{number % 3}")
        sql.execute("COMMIT")
        if size == sizes[request.param][0]:
            sql.execute("ANALYZE")
    return sql


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
