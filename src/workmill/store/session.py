"""The seam between the operations, written once, and the SQL, written for each database."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from workmill import clock
from workmill.domain.errors import StoreFailure, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from workmill.store.heads import Heads, Moves

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
log = logging.getLogger(__name__)

TRIES: Final = 6
FIRST_PAUSE: Final = 0.005
"""Seconds, at most, before a transaction that was undone for the sake of another is tried again; each further time twice as long."""


class BadData(StoreFailure):
    """A value of some row was refused (constraint, too big, not storable): that row is at fault, and the others can go on without it."""


class Conflicted(StoreUnavailable):
    """The database undid a transaction for the sake of another (deadlock, serialization); the same once more is likely to pass."""


class KeyBusy(BadData):
    """A unique key is held by another open transaction, and nobody can say yet whether it is taken."""


class Session(Protocol):
    """An open transaction. Statements are named after their `.sql` files; `:now` is bound to `now` in each."""

    now: int
    """The store's clock at the beginning of the transaction, microseconds since the epoch."""
    moves: Moves | None
    """To be told of every job that becomes claimable or ceases to be; None: there is no dispatcher to hear of it."""

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

    heads: Heads | None
    """The heads of the queues in a dispatcher, when there is one."""
    lock_retries: int
    """How many transactions have been tried again because they were in the way of others; 0 where all take their locks in one order."""


class Operations:
    """What each group of operations stands on. A store is composed of the groups."""

    def __init__(self, database: Database) -> None:
        self._database = database


Transaction = Callable[Concatenate[Any, Arguments], Result]


def repeated(operation: Transaction[Arguments, Result]) -> Transaction[Arguments, Result]:
    """A method of `Operations` that is one write transaction: tried again when the database undoes it for the sake of another."""

    @wraps(operation)
    def run(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for number in range(TRIES - 1):
            try:
                return operation(self, *args, **kwargs)
            except Conflicted as error:
                self._database.lock_retries += 1
                log.warning("a transaction was in the way of another, and is tried again: %s", error)
                clock.sleep(random.uniform(0, FIRST_PAUSE * 2**number))
        return operation(self, *args, **kwargs)

    return run


__all__ = ["BadData", "Conflicted", "Database", "KeyBusy", "Operations", "Session", "repeated"]
