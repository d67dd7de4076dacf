"""The heads of the queues as one process uses them: ids are taken from the dispatcher, claimed in the store, and given back when refused.

Once a second an exchange claims from the store itself: so it finds what is set aside, what the dispatcher has lost, and new rules. As
long as there is something set aside that the worker may take, each does.
"""

from __future__ import annotations

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
NO_RULES: Final = Exchange((), ())


class DispatchedHeads:
    """Implements `store.heads.Heads`, and remembers the rules it has met. Any thread.

    `look_seconds`: how often an exchange claims from the store itself.
    """

    def __init__(self, dispatch: RedisDispatch, look_seconds: float = LOOK_SECONDS) -> None:
        self.dispatch = dispatch
        self._look_seconds = look_seconds
        self._look_at = -inf
        self._rules = NO_RULES

    def lend(self, wants: Wants, exchange: Callable[[Sequence[Ready] | None], Exchange], *, needed: bool) -> Exchange:
        jobs = self._take(wants)
        if jobs == [] and not needed and not self._rules.limited:
            return Exchange((), (), paused=self._rules.paused, limited=self._rules.limited, looked=False)
        refused: Sequence[Ready] = jobs or ()
        try:
            answer = exchange(jobs)
            if answer.known:
                self._rules, refused = answer, _refused(refused, answer)
            if answer.apart:
                self.look()
        finally:
            if refused:
                self.dispatch.put(refused)
        stale = bool(jobs) and not refused and not answer.claimed
        return exchange(None) if stale else answer

    def tell(self, moves: Moves, *, announced: bool) -> bool:
        if moves.look:
            self.look()
        told = not (moves.ready or moves.left) or self.dispatch.put(moves.ready, moves.left)
        if told and (moves.look or (announced and not moves.ready)):
            told = self.dispatch.hint(look=moves.look)
        return told

    def look(self) -> None:
        self._look_at = -inf

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

    def _take(self, wants: Wants) -> list[Ready] | None:
        """None: claim from the store."""
        now = monotonic()
        if not wants or now >= self._look_at:
            self._look_at = now + self._look_seconds if wants else self._look_at
            return None
        return self.dispatch.take(wants, self._rules.paused | self._rules.limited)


def _refused(jobs: Sequence[Ready], answer: Exchange) -> list[Ready]:
    """What stays claimable: what a pause, a limit or the worker's state has stopped. The others that were not claimed are stale."""
    if answer.draining:
        return list(jobs)
    claimed, closed = {job.id for job in answer.claimed}, answer.paused | answer.limited
    return [job for job in jobs if job.queue in closed and job.id not in claimed]
