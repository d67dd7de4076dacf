"""Heads of queues for tests: everything that is claimed has come through the dispatcher, unless only the store can know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill.dispatch.heads import DispatchedHeads
from workmill.domain.states import State

if TYPE_CHECKING:
    from workmill.dispatch.redis import RedisDispatch
    from workmill.domain.worker import Wants
    from workmill.store.base import Store

MOST: Final = 1_000


class Watchful(DispatchedHeads):
    """Look in the `store` only when asked to, or when something is set aside there, or has passed its deadline.

    Real ones look once a second, which a test can neither wait for nor use to tell one from the other.
    """

    store: Store

    def __init__(self, dispatch: RedisDispatch) -> None:
        self._asked = False
        super().__init__(dispatch)

    def look(self) -> None:
        self._asked = True

    def due(self, worker_id: str, wants: Wants) -> bool:  # noqa: ARG002 - whoever it is
        asked, self._asked = self._asked, False
        queued = {queue: jobs for (queue, state), jobs in self.store.counts().items() if state is State.QUEUED}
        return asked or sum(queued.values()) > len(self.store.heads(sorted(queued), room=MOST))
