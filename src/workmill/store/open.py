"""From a URL to a store. The only file that names a backend, and it imports one only when it is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workmill.config import from_environment
from workmill.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from workmill.store.base import Store
    from workmill.store.heads import Heads

POSTGRES: Final = ("postgresql://", "postgres://")


def open_store(
    url: str,
    clock: Callable[[], int] | None = None,
    *,
    schema: str | None = None,
    heads: Heads | None = None,
    group_commit: bool = True,
    group_delay: float = 0.0,
) -> Store:
    """The store a URL names; nothing is opened before its first use. `schema` is PostgreSQL's, else WORKMILL_SCHEMA says which.

    `heads` are those of its queues in a dispatcher; None: workers claim from the store. The switches of the group commit are for
    measuring what it gains.

    Raises:
        ConfigurationError: the URL names no store, or one that takes no dispatcher.

    """
    if url.startswith("sqlite:"):
        if heads is not None:
            raise ConfigurationError(
                "WORKMILL_DISPATCH: must be direct with an SQLite store, which has one machine's workers: they hear of jobs from its file"
            )
        from workmill.store.sqlite.store import SQLiteStore  # noqa: PLC0415 - a backend is loaded when it is named

        return SQLiteStore(url, clock, group_commit=group_commit, group_delay=group_delay)
    if url.startswith(POSTGRES):
        if find_spec("psycopg") is None:
            raise ConfigurationError("WORKMILL_STORE: a PostgreSQL store needs the extra: pip install 'workmill[postgres]'")
        from workmill.store.postgres.store import PostgresStore  # noqa: PLC0415 - see above

        schema = schema or from_environment().schema
        return PostgresStore(url, schema, clock, group_commit=group_commit, group_delay=group_delay, heads=heads)
    raise ConfigurationError(f"WORKMILL_STORE: must be sqlite:///path or postgresql://… (got {url!r:.120})")


def same_store(one: str, other: str) -> bool:
    """Whether two URLs name one store, as two spellings of one file's path do."""
    if one == other or not (one.startswith("sqlite:") and other.startswith("sqlite:")):
        return one == other
    from workmill.store.sqlite.store import path_of  # noqa: PLC0415 - see above

    path, other_path = path_of(one), path_of(other)
    return path is not None and other_path is not None and Path(path).resolve() == Path(other_path).resolve()


def exists(url: str) -> bool:
    """Whether the store is there, as far as can be told without opening it (which makes one): an SQLite file may not be.

    Raises:
        ConfigurationError: the URL names no store.

    """
    if url.startswith("sqlite:"):
        from workmill.store.sqlite.store import path_of  # noqa: PLC0415 - see above

        path = path_of(url)
        return path is None or Path(path).exists()
    return True
