"""Hot statements are index scans: on a fresh database, on one that has been analysed, and on one that has grown."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from workmill.domain.states import FINAL, State
from workmill.ids import new_id
from workmill.store import statements
from workmill.store.open import open_store

INDEXES = {
    "due_jobs": ["workmill_jobs_due"],
    "overdue_jobs": ["workmill_jobs_expiring"],
    "finished_jobs": ["workmill_jobs_finished"],
    "died_jobs": ["workmill_jobs_died"],
    "lost_jobs": ["workmill_jobs_running (worker_id>?)", "workmill_jobs_running (worker_id=?)", "PRIMARY KEY (id=?)"],
    "unknown_jobs": ["workmill_jobs_unknown (type>?)", "workmill_jobs_unknown (type=? AND aside_since<?)"],
    "suspect_holders": ["workmill_jobs_running (worker_id=?)"],
    "taken_keys": ["workmill_jobs_unique (type=? AND unique_key=?)"],
    "find_jobs": [
        "sqlite_autoindex_workmill_jobs_1 (id<?)",
        "workmill_jobs_claim (queue>? AND queue<?",
        "workmill_jobs_aside (queue>? AND queue<?",
        "workmill_jobs_due",
        "workmill_jobs_running",
        "workmill_jobs_dead",
        "workmill_jobs_dead (error_class=? AND id<?)",
        "workmill_jobs_stopped (id<?)",
    ],
    "oldest_waiting": ["workmill_jobs_claim (queue=? AND priority<?)"],
    "count_aside": ["workmill_jobs_aside (queue=?)"],
    "read_workers": ["workmill_jobs_running (worker_id=?)"],
    "window_stats": ["PRIMARY KEY (period=? AND start>?)"],
    "take_minutes": ["PRIMARY KEY (period=? AND start<?)"],
}
BY_ID = [
    "lock_jobs", "promote_jobs", "expire_jobs", "lost_runs", "lose_jobs", "bury_jobs", "delete_jobs", "cancel_jobs", "request_cancels",
    "revive_jobs", "reschedule_jobs", "read_jobs", "read_endings", "read_job", "read_run",
]  # fmt: skip
"""Statements that touch jobs by their ids only."""
STATEMENTS = statements.load("workmill.store.sqlite")
WHOLE = [name for name in STATEMENTS if name.startswith("violated_")]
"""Statements that read whole tables; nobody calls them where time matters."""
TABLES = "job|attempt|workmill_jobs|workmill_attempts"
_COLUMNS = re.compile(r"given \(([^)]*)\)|INSERT INTO \w+ \(([^)]*)\)")


@pytest.fixture(params=["fresh", "analysed", "grown"], scope="module")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp(request.param) / "store.db"
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.migrate()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            if request.param != "fresh":
                grow(connection)
            if request.param == "analysed":
                connection.execute("ANALYZE")
            yield connection


def grow(connection: sqlite3.Connection) -> None:
    """Some jobs in each state, and many that have succeeded."""
    rows = [(state, f"w{number % 7}", f"q{number % 3}") for state in State for number in range(300)]
    rows += [(State.SUCCEEDED, None, "q0")] * 3_000
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO workmill_jobs (id, queue, type, state, priority, run_at, created_at, max_attempts, max_losses, payload, worker_id, "
        "claimed_at, finished_at) VALUES (?, ?, 'noop', ?, 0, 1, 1, 3, 3, '{}', ?, 1, ?)",
        [(new_id(), queue, state, worker, 1 if state in FINAL else None) for state, worker, queue in rows],
    )
    connection.execute("COMMIT")


def plan(database: sqlite3.Connection, name: str) -> list[str]:
    statement = STATEMENTS[name]
    columns = _COLUMNS.search(statement.before)
    width = len("".join(columns.groups("")).split(",")) if columns else 0
    text = statement.before if statement.after is None else statement.over(2, width)
    return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("?"))]


def whole_tables(steps: list[str]) -> list[str]:
    """Steps that read all jobs or all attempts: also to build an index for this one statement."""
    return [step for step in steps if re.fullmatch(rf"SCAN ({TABLES})|SEARCH ({TABLES}) USING AUTOMATIC.*", step)]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - set(WHOLE)))
def test_no_statement_reads_all_jobs(name: str, database: sqlite3.Connection) -> None:
    assert whole_tables(plan(database, name)) == []


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_uses_its_indexes(name: str, database: sqlite3.Connection) -> None:
    steps = plan(database, name)

    assert [index for index in INDEXES[name] if not any(index in step for step in steps)] == []


@pytest.mark.parametrize("name", BY_ID)
def test_what_is_decided_is_applied_by_id(name: str, database: sqlite3.Connection) -> None:
    assert [step for step in plan(database, name) if "sqlite_autoindex_workmill_jobs_1 (id=?)" in step]
