"""What one process has open of a PostgreSQL database: a few connections for writers, a few for readers, opened when they are needed."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import RawCursor
from psycopg.pq import TransactionStatus

from workmill.domain.errors import StoreUnavailable
from workmill.store.postgres.session import adapt, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.abc import PQGen


WAIT_SECONDS: Final = 30.0
"""How long anybody waits for a connection that others of this process use."""
ANSWER_SECONDS: Final = 35.0
"""A little more than the server gives a statement."""
CONNECT: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "client_encoding": "utf8",
}
"""Unless the URL says otherwise: whatever becomes of the network is noticed within 30 s."""
STATEMENTS: Final = 400
"""Prepared statements kept for a connection."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer for ever: the server, or the network, may hang without a word."""

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, ANSWER_SECONDS if timeout is None else timeout)
        except psycopg.errors._WaitTimeout as error:  # noqa: SLF001 - what the driver's own `wait` raises
            if timeout is not None:
                raise  # the caller's own bound, not the server's silence
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has not answered for {ANSWER_SECONDS:g} s") from error


def connect(url: str, *, prepare: bool, name: str = "workmill") -> Connection:
    """A new connection, in autocommit, shown by the server under `name`.

    Raises:
        StoreUnavailable: the server cannot be reached, or will have no more connections.

    """
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        connection = Connection.connect(**{**CONNECT, "application_name": name, **given}, autocommit=True, cursor_factory=RawCursor)
    except psycopg.Error as error:
        raise translate(error) from error
    connection.prepare_threshold = 0 if prepare else None
    connection.prepared_max = STATEMENTS
    adapt(connection)
    return connection


class Pool:
    """Lends up to `most` connections. What comes back broken, or with a transaction open, is closed."""

    def __init__(self, open_one: Callable[[], Connection], most: int) -> None:
        self._open_one = open_one
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def lend(self, begin: Callable[[Connection], int]) -> Iterator[tuple[Connection, int]]:
        """A connection on which `begin` has been done, and what that returned. One that turns out to be dead is replaced.

        Raises:
            StoreUnavailable: all have been in use for long, or none can be opened.

        """
        if not self._free.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailable(f"PostgreSQL: all connections of this process have been in use for {WAIT_SECONDS:g} s")
        try:
            connection, begun = self._begun(begin)
            try:
                yield connection, begun
            finally:
                self._take_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        self._closed = True
        self._close_idle()

    def _begun(self, begin: Callable[[Connection], int]) -> tuple[Connection, int]:
        connection = self._pop()
        if connection is not None:
            try:
                return connection, begin(connection)
            except psycopg.Error:  # it was dead, and so are the others most likely
                _close(connection)
                self._close_idle()
            except BaseException:
                _close(connection)
                raise
        try:
            connection = self._open_one()
            return connection, begin(connection)
        except BaseException as error:
            if connection is not None:
                _close(connection)
            if isinstance(error, psycopg.Error):
                raise translate(error) from error
            raise

    def _pop(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _take_back(self, connection: Connection) -> None:
        if self._closed or connection.info.transaction_status != TransactionStatus.IDLE:
            _close(connection)
        else:
            self._idle.append(connection)

    def _close_idle(self) -> None:
        while (connection := self._pop()) is not None:
            _close(connection)


def _close(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.close()
