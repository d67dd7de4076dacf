"""A session on PostgreSQL: statements by name on one connection, and the driver's errors in Workmill's words."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import RawCursor
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from workmill.domain.errors import StoreError, StoreFailure, StoreNotReady, StoreUnavailable
from workmill.store.postgres import arrays, dialect
from workmill.store.session import BadData, Conflicted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.abc import AdaptContext

    from workmill.store.heads import Moves
    from workmill.store.postgres.dialect import Statement

CLOCK: Final = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
"""The store's clock, in microseconds."""
# https://www.postgresql.org/docs/18/errcodes-appendix.html
DATA: Final = frozenset({"22", "23", "54"})
"""Classes: data exception, integrity constraint violation, program limit exceeded (a value that fits no index)."""
AWAY: Final = frozenset({"08", "57"})
"""Classes: connection exception, operator intervention (shutdown, a timeout)."""
READ_ONLY: Final = "25006"
AWAY_STATES: Final = frozenset({READ_ONLY, "25P03", "25P04", "53300", "55P03"})
"""Read-only (a standby), idle too long, too long altogether, too many connections, a lock that did not come."""
CONFLICTS: Final = frozenset({"40001", "40P01"})
NOT_READY: Final = frozenset({"3F000", "42703", "42P01"})
UNENCODABLE: Final = (AttributeError, OverflowError, TypeError, UnicodeEncodeError, struct.error)
"""What the encoders raise before PostgreSQL sees a value: no text, too big a number, a lone surrogate, no number at all."""
NO_TEXT: Final = (UnicodeEncodeError, OverflowError)


def translate(error: psycopg.Error) -> StoreError:
    """The error that the rest of Workmill knows."""
    state = error.sqlstate
    text = f"PostgreSQL: {str(error).strip() or type(error).__name__}"
    if state is None:  # the driver's own
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return StoreUnavailable(text) if lost else BadData(text)
    if state in CONFLICTS:
        return Conflicted(text)
    if state[:2] in DATA:
        return BadData(text)
    if state in NOT_READY:
        return StoreNotReady(f"the database has no schema of this version of Workmill ({text}): run `workmill migrate`")
    return StoreUnavailable(text) if state[:2] in AWAY or state in AWAY_STATES else StoreFailure(text)


def is_read_only(error: BaseException) -> bool:
    """Whether it came of a server that writes nothing."""
    return any(getattr(each, "sqlstate", None) == READ_ONLY for each in (error, error.__cause__))


def adapt(context: AdaptContext) -> None:
    """Numbers as bigint and text as text whatever their size, so that a statement is prepared once; arrays by their declared types."""
    adapters = context.adapters
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    adapters.register_dumper(arrays.TextArray, arrays.TextArrayDumper)
    adapters.register_dumper(arrays.IntegerArray, arrays.IntegerArrayDumper)
    adapters.register_dumper(arrays.FloatArray, arrays.FloatArrayDumper)


class PostgresSession:
    """An open transaction."""

    __slots__ = ("_cursor", "_statements", "announced", "moves", "now")

    def __init__(self, cursor: RawCursor[tuple[Any, ...]], schema: str, now: int) -> None:
        self._cursor = cursor
        self._statements = dialect.load(schema)
        self.announced = False
        self.moves: Moves | None = None
        self.now = now

    def rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        parameters["now"] = self.now
        statement = self._statements[name]
        self._execute(statement, statement.bind(parameters))
        return self._cursor.fetchall()

    def row(self, name: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self.rows(name, **parameters)
        return rows[0] if rows else None

    def run(self, name: str, /, **parameters: Any) -> int:
        parameters["now"] = self.now
        statement = self._statements[name]
        self._execute(statement, statement.bind(parameters))
        return self._cursor.rowcount

    def each(self, name: str, table: Sequence[tuple[Any, ...]], /, **parameters: Any) -> list[tuple[Any, ...]]:
        if not table:
            return []
        parameters["now"] = self.now
        statement = self._statements[name]
        try:
            values = statement.bind_over(table, parameters)
        except UNENCODABLE as error:
            raise BadData(str(error)) from error
        self._execute(statement, values)
        return self._cursor.fetchall() if self._cursor.description is not None else []

    def announce(self) -> None:
        self.announced = True

    def _execute(self, statement: Statement, values: Sequence[Any]) -> None:
        try:
            self._cursor.execute(statement.text, values)
        except psycopg.Error as error:
            raise translate(error) from error
        except NO_TEXT as error:
            raise BadData(str(error)) from error
