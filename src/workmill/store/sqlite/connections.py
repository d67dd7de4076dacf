"""What one process has open of a database: a writer, readers, and the turnstile before the writer."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import finalize

from workmill import clock
from workmill.domain.errors import StoreError, StoreFailure, StoreNotReady, StoreUnavailable
from workmill.store.sqlite import schema
from workmill.store.sqlite.session import translate
from workmill.store.sqlite.turnstile import Turnstile

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST: Final = (3, 35)
"""The first with RETURNING."""
STATEMENTS: Final = 512
"""Prepared statements kept: a set-based one is another for each number of rows up to `session.MOST_ROWS`."""
SETTINGS: Final = ("synchronous=FULL", "temp_store=MEMORY", "journal_size_limit=67108864")
RETRY_SECONDS: Final = 0.02
log = logging.getLogger(__name__)
_warned = threading.Event()


def resets_safely(version: tuple[int, ...]) -> bool:
    """Whether this SQLite has the mend of the WAL-reset bug: a checkpoint beside another's write can corrupt the file without it."""
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)


def warn_of_company() -> None:
    """Said once, when another process turns out to write to the file too."""
    if not _warned.is_set() and not resets_safely(sqlite3.sqlite_version_info):
        _warned.set()
        log.warning(
            "several processes write to this SQLite file, and SQLite %s has the WAL-reset bug that can corrupt it (rarely, and only"
            " through programs that do not queue as Workmill's own do): 3.51.3 mends it",
            sqlite3.sqlite_version,
        )


def named(error: sqlite3.Error, path: str | None) -> StoreError:
    """What kept a database from being opened, and which."""
    return type(translate(error))(f"cannot open {path}: {error}")


def close_each(connections: list[sqlite3.Connection]) -> None:
    """Close all of them, and let go of them."""
    while connections:
        connections.pop().close()


class Connections:
    """Opened at once, with the schema brought up to date; closed once. `closed`: whoever comes now must open anew."""

    def __init__(self, path: str | None, busy_seconds: float, now: int) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._lending = threading.Condition()
        self._lent = 0
        self._withheld = self.closed = False
        self._writer: sqlite3.Connection | None = None
        self._all: list[sqlite3.Connection] = []
        finalize(self, close_each, self._all).atexit = False  # a store that is dropped is closed
        self._idle: list[sqlite3.Connection] = []
        self._watch: sqlite3.Connection | None = None
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreNotReady(f"SQLite {'.'.join(map(str, OLDEST))} or newer is needed (this Python has {sqlite3.sqlite_version})")
        try:
            self.turnstile = Turnstile(path, busy_seconds, warn_of_company)
        except OSError as error:
            raise StoreUnavailable(f"cannot open {path}: {error}") from error
        try:
            with self.turnstile:
                self._writer = self._connect()
                if path is not None:
                    self._use_wal(self._writer)
                self.migrated = schema.apply(self._writer, now)
        except BaseException as error:
            self._close()
            if isinstance(error, sqlite3.Error):
                raise named(error, path) from error
            raise

    @contextmanager
    def to_write(self) -> Iterator[sqlite3.Connection | None]:
        """The writer, in turn; None when all has been closed."""
        with self.turnstile:
            yield None if self.closed else self._writer

    @contextmanager
    def to_read(self) -> Iterator[sqlite3.Connection | None]:
        """A reader; None when all has been closed."""
        with self._loan():
            if self.closed:
                yield None
                return
            reader = self._idle.pop() if self._idle else self._connect(reading=True)
            try:
                yield reader
            finally:
                self._idle.append(reader)

    def version(self) -> object:
        """A value that is another one after any other connection's commit."""
        with self._loan():
            if self.closed:
                return None
            if self._watch is None:
                self._watch = self._connect(reading=True)
            return (id(self), self._watch.execute("PRAGMA data_version").fetchall())

    def close(self, patience: float | None = None) -> None:
        """Close everything as soon as nobody uses it.

        Raises:
            StoreUnavailable: somebody still did after `patience` seconds; nothing was closed.

        """
        patience = self._busy_seconds if patience is None else patience
        self.turnstile.enter(patience)
        try:
            with self._all_returned(patience):
                self._close()
        finally:
            self.turnstile.leave()

    def _close(self) -> None:
        self.closed = True
        close_each(self._all)
        self.turnstile.close()

    @contextmanager
    def _loan(self) -> Iterator[None]:
        with self._lending:
            self._lending.wait_for(lambda: not self._withheld)
            self._lent += 1
        try:
            yield
        finally:
            with self._lending:
                self._lent -= 1
                self._lending.notify_all()

    @contextmanager
    def _all_returned(self, patience: float) -> Iterator[None]:
        """Lend nothing, wait until all has come back."""
        with self._lending:
            self._withheld = True
            returned = self._lending.wait_for(lambda: not self._lent, patience)
        try:
            if not returned:
                raise StoreUnavailable(f"a read has been open for {patience:g} s")
            yield
        finally:
            with self._lending:
                self._withheld = False
                self._lending.notify_all()

    def _connect(self, *, reading: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path or ":memory:",
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
        )
        self._all.append(connection)
        try:
            for setting in (*SETTINGS, "query_only=ON") if reading else SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise named(error, self._path) from error
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Readers then never wait for the writer. The switch does not wait for others by itself, so it is tried again."""
        until = clock.monotonic() + self._busy_seconds
        while True:
            try:
                ((mode,),) = connection.execute("PRAGMA journal_mode=WAL").fetchall()
            except sqlite3.OperationalError as error:
                if clock.monotonic() > until or not isinstance(translate(error), StoreUnavailable):
                    raise
                clock.sleep(RETRY_SECONDS)
                continue
            if mode != "wal":
                raise StoreFailure(f"{self._path}: SQLite cannot keep a write-ahead log there (a network file system?)")
            return
