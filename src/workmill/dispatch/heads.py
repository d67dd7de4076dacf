"""The heads of the queues as one process uses them: ids are taken from the dispatcher, claimed in the store, and given back when refused.

Once a second each worker claims from the store itself, from each of its queues: so it finds what is set aside, what the dispatcher has
lost, and new rules. As long as there is something set aside that the worker may take, each exchange does.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic
from workmill.domain.worker import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workmill.dispatch.redis import RedisDispatch
    from workmill.domain.worker import Wants
    from workmill.store.changes import Watcher
    from workmill.store.heads import Moves, Ready

LOOK_SECONDS: Final = 1.0
ANYWHERE: Final = ("",)
"""In the place of a queue, for those who want from all."""
PLACES: Final = 10_000
"""So many workers and queues are remembered at most; when all are forgotten, each looks once more."""


class DispatchedHeads:
    """Implements `store.heads.Heads`, and remembers the rules it has met. Any thread.

    `look_seconds`: how often a worker claims from the store itself.
    """

    def __init__(self, dispatch: RedisDispatch, look_seconds: float = LOOK_SECONDS) -> None:
        self.dispatch = dispatch
        self._look_seconds = look_seconds
        self._look_at: dict[tuple[str, str], float] = {}
        self._paused: frozenset[str] = frozenset()
        self._limited: frozenset[str] = frozenset()

    def lend(self, worker_id: str, wants: Wants, exchange: Callable[[Sequence[Ready] | None], Exchange], *, needed: bool) -> Exchange:
        look = not wants or self.due(worker_id, wants)
        jobs = None if look else self.dispatch.take(wants, self._paused | self._limited)
        if jobs == [] and not needed and not self._limits(wants):
            return Exchange((), (), paused=self._paused, limited=self._limited, looked=False)
        refused: Sequence[Ready] = jobs or ()
        try:
            answer = exchange(jobs)
            if answer.known:
                self._paused, self._limited = answer.paused, answer.limited
                refused = _refused(refused, wants, answer)
        finally:
            if refused:  # without a hint: those who hear it would take them, and be refused as well
                self.dispatch.put(refused, hint=False)
        if answer.apart or (jobs and not refused and not answer.claimed):
            self.look()
        return answer if jobs is None else replace(answer, looked=False)

    def tell(self, moves: Moves, *, announced: bool) -> bool:
        if moves.look:
            self.look()
        told = not (moves.ready or moves.left) or self.dispatch.put(moves.ready, moves.left)
        if told and (moves.look or (announced and not moves.ready)):
            told = self.dispatch.hint(look=moves.look)
        return told

    def look(self) -> None:
        self._look_at = {}

    def watch(self, tell: Callable[[], None]) -> Watcher:
        def heard(look: bool) -> None:  # noqa: FBT001 - called by the dispatcher
            if look:
                self.look()
            tell()

        return self.dispatch.watch(heard)

    def close(self) -> None:
        self.dispatch.close()

    def forget(self) -> None:
        self.dispatch.forget()

    def due(self, worker_id: str, wants: Wants) -> bool:
        """Whether it is time for this worker to claim from the store: it has not looked at one of these queues for so long."""
        now, look_at = monotonic(), self._look_at
        places = [(worker_id, queue) for queue in wants.queues or ANYWHERE]
        if all(now < look_at.get(place, -inf) for place in places):
            return False
        if len(look_at) >= PLACES:
            self._look_at = look_at = {}
        look_at.update(dict.fromkeys(places, now + self._look_seconds))
        return True

    def _limits(self, wants: Wants) -> bool:
        """Whether a wanted queue has a limit: of such the store has what the dispatcher is not asked for."""
        return bool(self._limited & wants.queues.keys() if wants.queues else self._limited)


def _refused(jobs: Sequence[Ready], wants: Wants, answer: Exchange) -> list[Ready]:
    """What stays claimable: what a pause, a limit or the worker's state has stopped, or what came before it.

    The others that were not claimed are stale.
    """
    if answer.draining:
        return list(jobs)
    claimed, closed = {job.id for job in answer.claimed}, answer.paused | answer.limited
    full = len(claimed) >= wants.total
    return [job for job in jobs if (full or job.queue in closed) and job.id not in claimed]
