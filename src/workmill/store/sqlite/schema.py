"""The schema of a SQLite database: what has been applied to it, and the application of the rest."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from workmill.store import migrate
from workmill.store.sqlite.session import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS: Final = """CREATE TABLE IF NOT EXISTS workmill_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
)"""


def pending(connection: sqlite3.Connection) -> list[migrate.Migration]:
    """The migrations that this database lacks.

    Raises:
        StoreNotReady: it has some that this version does not know.

    """
    return migrate.pending(migrate.migrations(PACKAGE), _applied(connection))


def apply(connection: sqlite3.Connection, now: int) -> list[str]:
    """Apply what is pending in one transaction and return the names. Safe when several processes do it at once."""
    if not pending(connection):
        return []
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(RECORDS)
        steps = pending(connection)
        for step in steps:
            for statement in statements(step.text):
                connection.execute(statement)
            connection.execute("INSERT INTO workmill_migrations VALUES (?, ?, ?)", (step.version, step.name, now))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return [step.name for step in steps]


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: the driver's own way to run a script commits first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _applied(connection: sqlite3.Connection) -> list[int]:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'workmill_migrations'").fetchall()
    return [row[0] for row in connection.execute("SELECT version FROM workmill_migrations").fetchall()] if known else []
