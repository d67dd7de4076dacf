"""Where sessions on SQLite come from: one writer a process, readers of their own, and callers' connections."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from workmill import clock
from workmill.domain.errors import StoreUnavailable
from workmill.store.changes import Changes
from workmill.store.migrate import Migration, migrations
from workmill.store.sqlite import schema
from workmill.store.sqlite.connections import Connections
from workmill.store.sqlite.joined import join
from workmill.store.sqlite.session import PACKAGE, SQLiteSession, translate
from workmill.store.sqlite.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workmill.store.heads import Heads

BUSY_SECONDS: Final = 30.0
"""How long anybody waits for another program that holds the file."""
FORK_SECONDS: Final = 5.0
"""How long a fork waits for the transactions of other threads."""
Lender = Callable[[Connections], AbstractContextManager[sqlite3.Connection | None]]


class SQLiteDatabase:
    """A database file, or a database in memory of this object's own. Constructing it opens nothing."""

    def __init__(self, path: str | None, now: Callable[[], int] | None = None, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.changes = Changes(*[] if path is None else [lambda tell: Watcher(path, lambda: self._connections().version(), tell)])
        self._now = now or clock.wall
        self._busy_seconds = busy_seconds
        self.heads: Heads | None = None
        self.lock_retries = 0
        self._opening = threading.Lock()
        self._opened: Connections | None = None
        self._held = self._resting = self._torn = False
        _DATABASES.add(self)

    @contextmanager
    def write(self) -> Iterator[SQLiteSession]:
        """A write transaction, in turn with those of all other threads and processes."""
        with self._session(Connections.to_write, "BEGIN IMMEDIATE") as session:
            yield session
        if session.announced:
            self.changes.tell()

    def read(self) -> AbstractContextManager[SQLiteSession]:
        """A snapshot. In memory there is one connection, so readers take turns with the writer."""
        return self._session(Connections.to_read if self.path else Connections.to_write, "BEGIN")

    def join(self, connection: Any) -> AbstractContextManager[SQLiteSession]:
        """A session inside the caller's open transaction: no turn, which would lock both out."""
        return join(connection, self._now(), self.path)

    def migrate(self) -> list[str]:
        """Open the database if need be, which migrates it, and return what that did."""
        return [] if self._opened is not None else self._connections().migrated

    def pending(self) -> list[Migration]:
        """What opening it would do to the schema, without doing it."""
        if self.path is None or not Path(self.path).exists():
            return list(migrations(PACKAGE)) if self._opened is None else []
        try:
            with closing(sqlite3.connect(self.path, timeout=self._busy_seconds)) as connection:
                return schema.pending(connection)
        except sqlite3.Error as error:
            raise translate(error) from error

    def close(self) -> None:
        """Close everything of this process; a later use opens it again. A database in memory is then empty."""
        self.changes.close()
        with self._opening:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @contextmanager
    def _session(self, lend: Lender, begin: str) -> Iterator[SQLiteSession]:
        while True:
            with lend(self._connections()) as connection:
                if connection is None:
                    continue  # closed while it waited
                with transaction(connection, begin, self._now) as session:
                    yield session
                return

    def _connections(self) -> Connections:
        opened = self._opened
        if opened is None:
            with self._opening:
                if self._torn:
                    raise StoreUnavailable(f"this process was forked while a transaction was open on {self.path}")
                if self._opened is None:
                    self._opened = Connections(self.path, self._busy_seconds, self._now())
                opened = self._opened
        return opened

    def before_fork(self) -> None:
        """Close the file: SQLite's record of the locks that a process holds would be wrong in the child. Nobody opens it meanwhile."""
        self._held = self._opening.acquire(timeout=FORK_SECONDS)
        opened = self._opened
        if opened is None:
            return
        with suppress(StoreUnavailable):
            if self.path is None:
                opened.turnstile.enter(FORK_SECONDS)
                self._resting = True
            else:
                opened.close(FORK_SECONDS)
                self._opened = None

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._resting and self._opened is not None:
            self._resting = False
            self._opened.turnstile.leave()
        if self._held:
            self._opening.release()

    def after_fork_in_child(self) -> None:
        """Begin anew. What could not be closed is never touched: it is kept, so that nothing closes it."""
        self._torn = self.path is not None and (self._opened is not None or not self._held)
        if self._torn:
            _TORN.append(self._opened)
        self._opening, self._opened, self._resting = threading.Lock(), None, False
        self.changes.forget()


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str, now: Callable[[], int]) -> Iterator[SQLiteSession]:
    """From `begin` to COMMIT, or to ROLLBACK when the block raises. The clock is read once the transaction has begun."""
    begun = False
    try:
        connection.execute(begin)
        begun = True
        session = SQLiteSession(connection.execute, now())
        yield session
        connection.execute("COMMIT")
    except BaseException as error:  # the beginning, too: a signal that came while it waited raises when it has begun
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise translate(error, committing=begun) from error
        raise


_DATABASES: Final[WeakSet[SQLiteDatabase]] = WeakSet()
_TORN: Final[list[Connections | None]] = []


def _for_all(step: Callable[[SQLiteDatabase], None]) -> Callable[[], None]:
    def run() -> None:
        for database in list(_DATABASES):
            step(database)

    return run


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_for_all(SQLiteDatabase.before_fork),
        after_in_parent=_for_all(SQLiteDatabase.after_fork_in_parent),
        after_in_child=_for_all(SQLiteDatabase.after_fork_in_child),
    )
