"""The SQLite store: the operations over a SQLite database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workmill.domain.errors import ConfigurationError
from workmill.store.operations.exchange import Exchanging
from workmill.store.operations.operating import Verbs
from workmill.store.operations.queues import Settings
from workmill.store.operations.reads import Reads
from workmill.store.operations.submit import Submitting
from workmill.store.operations.upkeep import Keeping
from workmill.store.operations.workers import Beating
from workmill.store.sqlite.database import BUSY_SECONDS, SQLiteDatabase

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "sqlite://"


def path_of(url: str) -> str | None:
    """The file a URL names, None for a database in memory: `sqlite:///relative`, `sqlite:////absolute`, `sqlite://`."""
    if not url.startswith(PREFIX):
        raise ConfigurationError(f"not an SQLite URL: {url}")
    rest = url.removeprefix(PREFIX)
    if rest in {"", "/:memory:"}:
        return None
    if not rest.startswith("/") or rest == "/":
        raise ConfigurationError(f"{url}: write sqlite:///file for a relative path, sqlite:////file for an absolute one")
    return str(Path(rest[1:]).absolute())


class SQLiteStore(Submitting, Exchanging, Beating, Keeping, Verbs, Settings, Reads):
    """A store in one file, or in memory. Implements `store.base.Store`; constructing it opens nothing."""

    _database: SQLiteDatabase

    def __init__(
        self,
        url: str,
        clock: Callable[[], int] | None = None,
        *,
        busy_seconds: float = BUSY_SECONDS,
        group_commit: bool = True,
        group_delay: float = 0.0,
    ) -> None:
        self.url = url
        super().__init__(SQLiteDatabase(path_of(url), clock, busy_seconds), group_commit=group_commit, group_delay=group_delay)

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.changes.subscribe(wake)

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def pending_migrations(self) -> list[str]:
        return [migration.name for migration in self._database.pending()]

    def migration_sql(self) -> str:
        return "\n".join(migration.text for migration in self._database.pending())

    def close(self) -> None:
        self._group.close()
        self._database.close()
