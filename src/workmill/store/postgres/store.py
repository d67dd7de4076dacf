"""The PostgreSQL store: the operations over a PostgreSQL database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from workmill.domain.errors import ConfigurationError
from workmill.store.operations.exchange import Exchanging
from workmill.store.operations.operating import Verbs
from workmill.store.operations.queues import Settings
from workmill.store.operations.reads import Reads
from workmill.store.operations.submit import Submitting
from workmill.store.operations.upkeep import Keeping
from workmill.store.operations.workers import Beating
from workmill.store.postgres import schema as schemas
from workmill.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.store.heads import Heads

SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
NOTIFY: Final = "notify"
"""A parameter of the URL for Workmill itself: `off` makes a store that polls only and prepares nothing."""


def split_url(url: str) -> tuple[str, bool]:
    """The URL for the driver, and whether to notify and listen.

    Raises:
        ConfigurationError: our own parameter is neither on nor off, or the driver cannot read the rest.

    """
    address, _, query = url.partition("?")
    parameters = [each for each in query.split("&") if each]
    notify = next((each.partition("=")[2] for each in parameters if each.partition("=")[0] == NOTIFY), "on")
    if notify not in {"on", "off"}:
        raise ConfigurationError(f"WORKMILL_STORE: its parameter {NOTIFY} must be on or off (got {notify!r:.120})")
    others = "&".join(each for each in parameters if each.partition("=")[0] != NOTIFY)
    for_driver = f"{address}?{others}" if others else address
    try:
        conninfo_to_dict(for_driver)
    except ProgrammingError as error:
        raise ConfigurationError(f"WORKMILL_STORE: is no URL of PostgreSQL's: {str(error).strip()}") from None
    return for_driver, notify == "on"


class PostgresStore(Submitting, Exchanging, Beating, Keeping, Verbs, Settings, Reads):
    """A store in a schema of a PostgreSQL database. Implements `store.base.Store`; constructing it opens nothing."""

    _database: PostgresDatabase

    def __init__(
        self,
        url: str,
        schema: str,
        clock: Callable[[], int] | None = None,
        *,
        group_commit: bool = True,
        group_delay: float = 0.0,
        heads: Heads | None = None,
    ) -> None:
        if not SCHEMA.fullmatch(schema):
            raise ConfigurationError(f"WORKMILL_SCHEMA: must match {SCHEMA.pattern} (got {schema!r:.120})")
        self.url = url
        self._schema = schema
        driver_url, notify = split_url(url)
        database = PostgresDatabase(driver_url, schema, clock, notify=notify, heads=heads)
        super().__init__(database, group_commit=group_commit, group_delay=group_delay)

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.changes.subscribe(wake)

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def pending_migrations(self) -> list[str]:
        return [migration.name for migration in self._database.pending()]

    def migration_sql(self) -> str:
        return schemas.script(self._database.pending(), self._schema)

    def close(self) -> None:
        self._group.close()
        self._database.close()
