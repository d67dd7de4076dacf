"""The seam between the operations, written once, and the SQL, written for each database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager


class Session(Protocol):
    """An open transaction. Statements are named after their `.sql` files; `:now` is bound to `now` in each."""

    now: int
    """The store's clock at the beginning of the transaction, microseconds since the epoch."""

    def rows(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def run(self, name: str, **parameters: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def each(self, name: str, table: Sequence[tuple[Any, ...]], **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a set-based statement over `table`, whose tuples are the rows of its relation `given`; return what it returns."""


class Database(Protocol):
    """Where sessions come from."""

    def write(self) -> AbstractContextManager[Session]:
        """A write transaction: committed and durable at the end of the block, rolled back when it raises."""

    def read(self) -> AbstractContextManager[Session]:
        """A read transaction: one snapshot."""

    def join(self, connection: Any) -> AbstractContextManager[Session]:
        """A session inside the caller's open transaction."""

    def after_commit(self, ready: Callable[[], None]) -> None:
        """Call `ready` when the current write has committed."""


__all__ = ["Database", "Session"]
