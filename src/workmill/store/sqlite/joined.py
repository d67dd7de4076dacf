"""A session inside a caller's own transaction, on the caller's own connection, which is left as it was found."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workmill.domain.errors import InvalidInput, StoreNotReady, StoreUnavailable
from workmill.store.migrate import migrations
from workmill.store.sqlite.session import PACKAGE, SQLiteSession, code_of, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEGACY: Final = -1
"""`sqlite3.LEGACY_TRANSACTION_CONTROL`, and what a connection does before Python 3.12."""


@contextmanager
def join(connection: Any, now: int, path: str | None) -> Iterator[SQLiteSession]:
    """Take part in what the caller's connection is doing.

    Inside a transaction, all belongs to it, and what fails here is undone without touching the caller's part. Outside of one, it is
    as with any write on that connection: in the driver's usual mode a transaction is open afterwards that the caller ends; with
    `isolation_level=None` it is committed at once, all of it or nothing. The first statement must be a write: a read would
    make the transaction one that can become too old to write.

    Raises:
        InvalidInput: `connection` is no sqlite3.Connection, or one to another database than the file `path`.
        TransactionTooOld: the transaction has read, and another connection has written since.
        StoreNotReady: the connection's database has no Workmill schema, or that of another version.

    """
    if not isinstance(connection, sqlite3.Connection):
        raise InvalidInput("connection", f"must be an sqlite3.Connection (got a {type(connection).__name__})")
    text_factory, connection.text_factory = connection.text_factory, str
    begun = False
    try:
        _check_file(connection, path)
        begun = _begin(connection)
        _execute(connection, "SAVEPOINT workmill")
        yield SQLiteSession(lambda text, values: _execute(connection, text, values), now)
        _check_schema(connection)
        _execute(connection, "RELEASE workmill")
    except BaseException as error:
        _undo(connection, "ROLLBACK" if begun else "ROLLBACK TO workmill", "" if begun else "RELEASE workmill")
        if isinstance(error, sqlite3.Error):
            raise translate(error) from error
        raise
    finally:
        connection.text_factory = text_factory


def _check_file(connection: sqlite3.Connection, path: str | None) -> None:
    """What this asks is no read of the database, which would begin a transaction's snapshot."""
    file = next(row[2] for row in _execute(connection, "PRAGMA database_list") if row[1] == "main")
    if path is None:
        raise InvalidInput("connection", f"cannot be used with a store in memory, which only its Workmill can reach (got {_named(file)})")
    if not _is_same(file, path):
        raise InvalidInput("connection", f"must be one to this Workmill's store, {path} (got {_named(file)})")


def _named(file: str) -> str:
    return f"a connection to {file or 'a database in memory'}"


def _is_same(file: str, path: str) -> bool:
    try:
        return bool(file) and Path(file).samefile(path)
    except OSError:
        return False


def _begin(connection: sqlite3.Connection) -> bool:
    """Begin a transaction where the driver itself would before a write; whether it did."""
    usual = connection.isolation_level is not None and getattr(connection, "autocommit", LEGACY) == LEGACY
    if connection.in_transaction or not usual:
        return False
    _execute(connection, f"BEGIN {connection.isolation_level}")
    return True


def _execute(connection: sqlite3.Connection, text: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
    """Past whatever the caller has made of the connection's own methods and rows."""
    cursor = sqlite3.Connection.cursor(connection)
    cursor.row_factory = None
    try:
        return cursor.execute(text, values)
    except sqlite3.OperationalError as error:
        if code_of(error) == sqlite3.SQLITE_ERROR:
            raise StoreNotReady(f"the database of this connection is not ready for Workmill ({error}): run `workmill migrate`") from error
        if code_of(error) == sqlite3.SQLITE_BUSY:
            raise StoreUnavailable(
                "another connection is writing to this SQLite database; a transaction that has read does not wait for it:"
                " begin it with BEGIN IMMEDIATE"
            ) from error
        raise


def _check_schema(connection: sqlite3.Connection) -> None:
    ((version,),) = _execute(connection, "SELECT max(version) FROM workmill_migrations").fetchall()
    known = migrations(PACKAGE)[-1].version
    if version != known:
        hint = "run `workmill migrate`" if version < known else "upgrade Workmill"
        raise StoreNotReady(f"the schema of this connection's database is version {version}, this is {known}: {hint}")


def _undo(connection: sqlite3.Connection, *commands: str) -> None:
    for command in commands:
        if connection.in_transaction:  # SQLite ends a transaction itself when the disk is full
            with suppress(sqlite3.Error):
                sqlite3.Connection.execute(connection, command)
