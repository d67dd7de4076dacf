"""Heads of queues for tests: everything that is claimed has come through the dispatcher, unless only the store can know of it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Identifier

from workmill.dispatch.heads import DispatchedHeads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import psycopg

    from workmill.dispatch.redis import RedisDispatch
    from workmill.domain.worker import Exchange, Wants
    from workmill.store.heads import Ready
    from workmill.testing.clock import MovableClock

UNKNOWN = "SELECT 1 FROM {} WHERE state = 'queued' AND (aside IS NOT NULL OR expires_at <= %s) LIMIT 1"


class Watchful(DispatchedHeads):
    """Look in the store only when something is set aside there, or has passed its deadline.

    Real ones look once a second, which a test can neither wait for nor use to tell one from the other.
    """

    def __init__(self, dispatch: RedisDispatch, connection: psycopg.Connection[Any], clock: MovableClock) -> None:
        super().__init__(dispatch, look_seconds=inf)
        self._look_at = inf
        self._connection = connection
        self._clock = clock
        self.schema = "none"

    def lend(self, wants: Wants, exchange: Callable[[Sequence[Ready] | None], Exchange], *, needed: bool) -> Exchange:
        query = SQL(UNKNOWN).format(Identifier(self.schema, "jobs"))
        if self._connection.execute(query, (self._clock(),)).fetchone():
            self.look()
        return super().lend(wants, exchange, needed=needed)
