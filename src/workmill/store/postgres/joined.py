"""A session inside a caller's own transaction, on the caller's own connection, which is left as it was found."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import AsyncRawCursor, RawCursor
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import tuple_row

from workmill.domain.errors import InvalidInput
from workmill.store.base import OnLoop
from workmill.store.postgres.listener import NOTIFY
from workmill.store.postgres.session import CLOCK, PostgresSession, adapt, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


class Frame(NamedTuple):
    """How what is written inside another's transaction begins, ends, and is undone."""

    begin: bytes
    end: bytes
    undo: tuple[bytes, ...]


OWN: Final = Frame(b"BEGIN", b"COMMIT", (b"ROLLBACK",))
WITHIN: Final = Frame(
    b"SAVEPOINT workmill", b"RELEASE SAVEPOINT workmill", (b"ROLLBACK TO SAVEPOINT workmill", b"RELEASE SAVEPOINT workmill")
)


class Awaited:
    """A cursor that belongs to an event loop, used from another thread."""

    def __init__(self, cursor: AsyncRawCursor[tuple[Any, ...]], loop: asyncio.AbstractEventLoop) -> None:
        self._cursor = cursor
        self._loop = loop

    def execute(self, text: bytes, values: Any = None) -> Awaited:
        self._wait(self._cursor.execute(text, values))
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._wait(self._cursor.fetchall()))

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def _wait(self, awaitable: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(awaitable, self._loop).result()


@contextmanager
def join(connection: Any, schema: str, now: Callable[[], int] | None) -> Iterator[PostgresSession]:
    """Take part in what the caller's connection is doing.

    Inside a transaction, all belongs to it, and what fails here is undone without touching the caller's part. Outside of one, it is as
    with any write on that connection: usually a transaction is open afterwards that the caller ends; in autocommit it is committed at
    once, all of it or nothing. Other processes hear of it when the transaction commits.

    Raises:
        InvalidInput: `connection` is no connection of psycopg, SQLAlchemy or Django to a PostgreSQL database.
        StoreNotReady: the connection's database has no Workmill schema, or an older one.

    """
    cursor, frame = _cursor(connection)
    begun = False
    try:
        cursor.execute(frame.begin)
        begun = True
        ((at,),) = cursor.execute(CLOCK).fetchall() if now is None else (((now()),),)
        session = PostgresSession(cursor, schema, at)
        yield session
        if session.announced:
            cursor.execute(NOTIFY, [""])
        cursor.execute(frame.end)
    except BaseException as error:
        if begun:
            with suppress(psycopg.Error):
                for command in frame.undo:
                    cursor.execute(command)
        if isinstance(error, psycopg.Error):
            raise translate(error) from error
        raise


def _cursor(given: Any) -> tuple[Any, Frame]:
    """A cursor of our own on the caller's connection, and the frame for what it is doing."""
    found = driver_connection(given.connection if isinstance(given, OnLoop) else given)
    is_async = isinstance(found, psycopg.AsyncConnection)
    if not isinstance(found, psycopg.Connection | psycopg.AsyncConnection):
        raise InvalidInput("connection", f"must be a connection to PostgreSQL by psycopg, SQLAlchemy or Django (got a {_kind(given)})")
    if is_async and not isinstance(given, OnLoop):
        raise InvalidInput("connection", "belongs to an event loop: use it with enqueue_async or enqueue_many_async")
    if found.info.encoding != "utf-8":
        raise InvalidInput("connection", f"must have the client_encoding UTF8 (got {found.info.encoding})")
    frame = OWN if found.autocommit and found.info.transaction_status == TransactionStatus.IDLE else WITHIN
    make: Any = AsyncRawCursor if is_async else RawCursor
    cursor = make(found, row_factory=tuple_row)
    cursor.format = Format.BINARY
    adapt(cursor)
    return Awaited(cursor, given.loop) if isinstance(given, OnLoop) else cursor, frame


def driver_connection(given: Any) -> Any:
    """What a caller's connection or session stands on."""
    found = given
    if hasattr(found, "ensure_connection"):  # Django
        found.ensure_connection()
        found = found.connection
    if callable(getattr(found, "connection", None)):  # a SQLAlchemy session
        found = found.connection()
    if hasattr(getattr(found, "connection", None), "driver_connection"):  # a SQLAlchemy connection
        connection, found = found, found.connection.driver_connection
        if not connection.in_transaction() and not found.autocommit:
            connection.begin()  # as its own `execute` would: without it, its commit knows of nothing to commit
    return found


def _kind(given: Any) -> str:
    return type(given.connection if isinstance(given, OnLoop) else given).__name__
