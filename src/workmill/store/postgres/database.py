"""Where sessions on PostgreSQL come from: a few connections of this process's own, and callers' connections."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import psycopg

from workmill.domain.errors import StoreError
from workmill.ids import new_id
from workmill.store.changes import CLOSE_SECONDS, Changes
from workmill.store.heads import Moves
from workmill.store.postgres import schema as schemas
from workmill.store.postgres.connections import PROMPT_SECONDS, Connection, Pool, connect
from workmill.store.postgres.joined import join
from workmill.store.postgres.listener import Listener, Notifier
from workmill.store.postgres.session import CLOCK, PostgresSession, is_read_only, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from workmill.store.heads import Heads
    from workmill.store.migrate import Migration

WRITERS: Final = 3
"""More transactions at once around the heads of the queues are slower, not faster."""
READERS: Final = 4
_BOUNDS: Final = b"""; SET LOCAL statement_timeout = '30s'; SET LOCAL lock_timeout = '5s';
SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL jit = off; """
WRITE: Final = (
    b"BEGIN ISOLATION LEVEL READ COMMITTED"
    + _BOUNDS
    + b"SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; "
    b"SET LOCAL enable_mergejoin = off; "
)
"""Every statement of a write goes along indexes for few rows: other plans come from statistics that are missing or old."""
READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" + _BOUNDS


class PostgresDatabase:
    """A schema in a PostgreSQL database. Constructing it opens nothing. `notify`: whether processes tell each other, or poll only."""

    def __init__(
        self, url: str, schema: str, now: Callable[[], int] | None = None, *, notify: bool = True, heads: Heads | None = None
    ) -> None:
        self._url = url
        self._schema = schema
        self._now = now
        self._notify = notify
        self._sender = new_id()
        self.lock_retries = 0
        self.heads = heads
        self.changes = Changes(*[self._listener] if notify else [], *[] if heads is None else [heads.watch])
        self._begin()
        _DATABASES.add(self)

    def _begin(self) -> None:
        self._opening = threading.Lock()
        self._checked = False
        self._writers, self._readers = Pool(self._connect, WRITERS), Pool(self._connect, READERS)
        self._notifier: Notifier | None = None

    @contextmanager
    def write(self) -> Iterator[PostgresSession]:
        """A write transaction, READ COMMITTED."""
        with self._session(self._writers, WRITE) as session:
            if self.heads is not None:
                session.moves = Moves()
            yield session
        told = session.moves is not None and self.heads is not None and self.heads.tell(session.moves, announced=session.announced)
        if session.announced:
            self.changes.tell()
            if not told:
                self._tell_others()

    def read(self) -> AbstractContextManager[PostgresSession]:
        """A snapshot."""
        return self._session(self._readers, READ)

    def join(self, connection: Any) -> AbstractContextManager[PostgresSession]:
        """A session inside the caller's open transaction."""
        return join(connection, self._schema, self._now)

    def migrate(self) -> list[str]:
        """Bring the schema up to date and return what that did."""
        with self._aside() as connection:
            return schemas.apply(connection, self._schema)

    def pending(self) -> list[Migration]:
        """What `migrate` would do."""
        with self._aside() as connection:
            return schemas.pending(connection, self._schema)

    def close(self) -> None:
        """Close everything of this process; a later use opens it again."""
        self.changes.close()
        with self._opening:
            notifier, writers, readers = self._notifier, self._writers, self._readers
            self._begin()
        if notifier is not None:
            notifier.stop()
            if notifier.join(CLOSE_SECONDS):
                with suppress(StoreError, psycopg.Error):
                    notifier.run_once()  # what it had not yet told
                notifier.close()
        writers.close()
        readers.close()
        if self.heads is not None:
            self.heads.close()

    def after_fork_in_child(self) -> None:
        """Begin anew. The parent's connections are kept, untouched: to close one would end it for the parent."""
        _PARENTS.append((self._writers, self._readers, self._notifier))
        self._begin()
        self.changes.forget()
        if self.heads is not None:
            self.heads.forget()

    @contextmanager
    def _session(self, pool: Pool, begin: bytes) -> Iterator[PostgresSession]:
        with pool.lend(lambda connection: self._start(connection, begin)) as (connection, now):
            try:
                yield PostgresSession(connection.cursor(binary=True), self._schema, now)  # type: ignore[arg-type]
                connection.commit()
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.rollback()
                    if is_read_only(error):
                        connection.close()  # a standby, or what was the primary: the next may find the new one
                if isinstance(error, psycopg.Error):
                    raise translate(error) from error
                raise

    def _start(self, connection: Connection, begin: bytes) -> int:
        """Begin a transaction in one exchange with the server, and read the store's clock."""
        if self._now is not None:
            connection.execute(begin, prepare=False)
            return self._now()
        cursor = connection.execute(begin + CLOCK, prepare=False)
        while cursor.nextset():
            pass
        ((now,),) = cursor.fetchall()
        return int(now)

    def _connect(self) -> Connection:
        connection = connect(self._url, prepare=self._notify)
        if not self._checked:
            try:
                schemas.check(connection, self._schema)
            except BaseException:
                connection.close()
                raise
            self._checked = True
        return connection

    @contextmanager
    def _aside(self) -> Iterator[Connection]:
        """A connection for the schema, which need not be there."""
        connection = connect(self._url, prepare=False)
        try:
            yield connection
        except psycopg.Error as error:
            raise translate(error) from error
        finally:
            connection.close()

    def _listener(self, tell: Callable[[], None]) -> Listener:
        """What it hears has not gone through the dispatcher: a caller's own transaction, or a process that knows of none."""

        def heard() -> None:
            if self.heads is not None:
                self.heads.look()
            tell()

        return Listener(lambda: connect(self._url, prepare=False, name="workmill listener", patience=PROMPT_SECONDS), heard, self._sender)

    def _tell_others(self) -> None:
        """What has been committed stays so, whether or not others can be told: they poll, too."""
        if not self._notify:
            return
        with suppress(RuntimeError):  # no thread can be started
            with self._opening:
                notifier = self._notifier
                if notifier is None:
                    notifier = Notifier(
                        lambda: connect(self._url, prepare=False, name="workmill notifier", patience=PROMPT_SECONDS), self._sender
                    )
                    notifier.start()
                    self._notifier = notifier
            notifier.tell()


_DATABASES: Final[WeakSet[PostgresDatabase]] = WeakSet()
_PARENTS: Final[list[Any]] = []


def _forget_all() -> None:
    for database in list(_DATABASES):
        database.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
