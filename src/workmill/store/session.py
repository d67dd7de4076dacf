"""The seam between the operations, written once, and the SQL, written for each database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from workmill.domain.errors import StoreFailure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


class BadData(StoreFailure):
    """A value of some row was refused (constraint, too big, not storable): that row is at fault, and the others can go on without it."""


class Session(Protocol):
    """An open transaction. Statements are named after their `.sql` files; `:now` is bound to `now` in each."""

    now: int
    """The store's clock at the beginning of the transaction, microseconds since the epoch."""

    def rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def row(self, name: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        """Run a statement and return its first row, or None."""

    def run(self, name: str, /, **parameters: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def each(self, name: str, table: Sequence[tuple[Any, ...]], /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a set-based statement over `table`, whose tuples are the rows of its relation `given`; return what it returns.

        A large table is given in several parts, so the statement must not depend on seeing all of it at once. An empty one runs nothing.
        """

    def announce(self) -> None:
        """Jobs have become claimable, or have ended: wake whoever subscribed, once this transaction has committed."""


class Database(Protocol):
    """Where sessions come from."""

    def write(self) -> AbstractContextManager[Session]:
        """A write transaction: committed and durable at the end of the block, rolled back when it raises."""

    def read(self) -> AbstractContextManager[Session]:
        """A read transaction: one snapshot."""

    def join(self, connection: Any) -> AbstractContextManager[Session]:
        """A session inside the caller's open transaction."""


class Operations:
    """What each group of operations stands on. A store is composed of the groups."""

    def __init__(self, database: Database) -> None:
        self._database = database


__all__ = ["BadData", "Database", "Operations", "Session"]
