"""Heads of queues for tests: everything that is claimed has come through the dispatcher, unless only the store can know of it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from workmill.dispatch.heads import DispatchedHeads
from workmill.domain.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.dispatch.redis import RedisDispatch
    from workmill.domain.worker import Exchange, Wants
    from workmill.store.base import Store
    from workmill.store.heads import Ready

MOST: Final = 1_000


class Watchful(DispatchedHeads):
    """Look in the `store` only when something is set aside there, or has passed its deadline.

    Real ones look once a second, which a test can neither wait for nor use to tell one from the other.
    """

    store: Store

    def __init__(self, dispatch: RedisDispatch) -> None:
        super().__init__(dispatch, look_seconds=inf)
        self._look_at = inf

    def lend(self, wants: Wants, exchange: Callable[[Sequence[Ready] | None], Exchange], *, needed: bool) -> Exchange:
        queued = {queue: jobs for (queue, state), jobs in self.store.counts().items() if state is State.QUEUED}
        if sum(queued.values()) > len(self.store.heads(sorted(queued), room=MOST)):
            self.look()
        return super().lend(wants, exchange, needed=needed)
