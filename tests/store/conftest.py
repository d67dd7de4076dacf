"""A store in a file, a clock to move, and a connection of the test's own to look at rows, or to spoil them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.states import FINAL, State
from workmill.ids import new_id
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock

Row = tuple[Any, ...]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def file_store(path: Path, clock: MovableClock) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{path}", clock)) as store:
        store.counts()
        yield store


@pytest.fixture
def sql(file_store: Store, path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of the test's own, in autocommit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def plant(sql: sqlite3.Connection, clock: MovableClock) -> Callable[..., str]:
    """`plant(State.DEAD, queue="mail", …)`: a row in a state, with its count, however it would have come there."""

    def insert(state: State, **columns: Any) -> str:
        row = {"id": new_id(), "queue": "default", "type": "noop", "state": state.value, "priority": 0, "run_at": clock(), **columns}
        row = {"created_at": clock(), "max_attempts": 3, "max_losses": 3, "payload": "{}", **row}
        if state in FINAL:
            row = {"finished_at": clock(), **row}
        if state is State.DEAD:
            row = {"error_class": "ValueError", "error": "boom", **row}
        if state is State.RUNNING:
            row = {"claimed_at": clock(), "lease": 1, "attempt": 1, **row}
        sql.execute(f"INSERT INTO workmill_jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))  # noqa: S608
        sql.execute("INSERT INTO workmill_count_deltas (queue, state, jobs) VALUES (?, ?, 1)", (row["queue"], row["state"]))
        return str(row["id"])

    return insert


@pytest.fixture
def everything(sql: sqlite3.Connection) -> Callable[[], dict[str, list[Row]]]:
    """Every row that says anything of jobs, to be compared with itself later."""
    tables = ("jobs", "attempts", "counts", "count_deltas", "stats", "stat_deltas", "audit")
    return lambda: {table: sql.execute(f"SELECT * FROM workmill_{table} ORDER BY 1, 2").fetchall() for table in tables}  # noqa: S608
