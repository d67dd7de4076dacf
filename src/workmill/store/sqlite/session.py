"""A session on SQLite: statements by name on one connection, and the driver's errors in Workmill's words."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

from workmill.domain.errors import StoreError, StoreFailure, StoreUnavailable, TransactionTooOld
from workmill.store import statements
from workmill.store.session import BadData

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.store.heads import Moves

PACKAGE: Final = "workmill.store.sqlite"
MOST_ROWS: Final = 100
"""Rows of `:given` in one statement. More gain nothing (measured), and each number of rows is a statement to prepare and to cache."""
DATA: Final = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH})
UNAVAILABLE: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT}
)
UNBINDABLE: Final = (OverflowError, UnicodeEncodeError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""What the driver raises before SQLite sees a value: too big a number, a lone surrogate, no text or number at all."""
REFUSED: Final = (sqlite3.Error, OverflowError, UnicodeEncodeError)


def code_of(error: Exception) -> int:
    """SQLite's extended code of an error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)


def translate(error: Exception, *, committing: bool = False) -> StoreError:
    """The error that the rest of Workmill knows. After an I/O error of a commit nobody can say whether it took effect."""
    extended = code_of(error)
    code = extended & 0xFF
    if extended == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return TransactionTooOld("this transaction has read before another connection wrote: begin it with BEGIN IMMEDIATE")
    if code in DATA or isinstance(error, UNBINDABLE):
        return BadData(str(error))
    if code in UNAVAILABLE or (committing and code == sqlite3.SQLITE_IOERR):
        return StoreUnavailable(f"SQLite: {error}")
    return StoreFailure(f"SQLite: {error}")


class SQLiteSession:
    """An open transaction."""

    __slots__ = ("_execute", "_statements", "announced", "moves", "now")

    def __init__(self, execute: Callable[[str, Sequence[Any]], sqlite3.Cursor], now: int) -> None:
        self._execute = execute
        self._statements = statements.load(PACKAGE)
        self.announced = False
        self.moves: Moves | None = None
        self.now = now

    def rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        parameters["now"] = self.now
        statement = self._statements[name]
        return self._fetch(statement.before, statement.bind(parameters))

    def row(self, name: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self.rows(name, **parameters)
        return rows[0] if rows else None

    def run(self, name: str, /, **parameters: Any) -> int:
        parameters["now"] = self.now
        statement = self._statements[name]
        try:
            return self._execute(statement.before, statement.bind(parameters)).rowcount
        except REFUSED as error:
            raise translate(error) from error

    def each(self, name: str, table: Sequence[tuple[Any, ...]], /, **parameters: Any) -> list[tuple[Any, ...]]:
        parameters["now"] = self.now
        statement = self._statements[name]
        found: list[tuple[Any, ...]] = []
        for first in range(0, len(table), MOST_ROWS):
            part = table[first : first + MOST_ROWS]
            found += self._fetch(statement.over(len(part), len(part[0])), statement.bind_over(part, parameters))
        return found

    def announce(self) -> None:
        self.announced = True

    def _fetch(self, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return self._execute(text, values).fetchall()
        except REFUSED as error:
            raise translate(error) from error
