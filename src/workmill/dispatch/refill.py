"""What keeps a dispatcher in line with the store: each second one process compares the heads of the queues, and puts right what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill.domain.errors import StoreError
from workmill.domain.states import State
from workmill.loops import Loop
from workmill.telemetry import INFO, WARNING, Telemetry

if TYPE_CHECKING:
    from workmill.dispatch.redis import RedisDispatch
    from workmill.store.base import Reading
    from workmill.store.heads import Ready

TURN_SECONDS: Final = 1.0
HEAD: Final = 1_000
"""Rows of each queue that are compared in each turn."""
LOAD: Final = 50_000
"""Rows that a turn reads behind the head of a queue of which many are missing, as after a flush."""


class Refiller(Loop):
    """Adds what is claimable and missing, removes from the head what is not claimable. Any process may; one a second does."""

    name = "refill"

    def __init__(self, store: Reading, dispatch: RedisDispatch, telemetry: Telemetry) -> None:
        super().__init__(telemetry)
        self._store = store
        self._dispatch = dispatch
        self._walked: dict[str, int] = {}
        """How far behind the head of a queue the walk has come."""
        self._apart: dict[str, int] = {}
        """How many more a queue has than can be dispatched, as the last whole walk has shown: what is set aside, or in somebody's hand."""

    def run_once(self) -> float:
        """Take a turn, if nobody has."""
        if self._dispatch.win_turn(TURN_SECONDS * 0.9):
            try:
                self.refill()
            except StoreError as error:
                self.telemetry.emit("refill.failed", WARNING, error=repr(error))
        return TURN_SECONDS

    def refill(self) -> int:
        """Compare every queue; returns how many ids were put in."""
        names = self._dispatch.names()
        if names is None:
            return 0
        counts = {queue: jobs for (queue, state), jobs in self._store.counts().items() if state is State.QUEUED and jobs}
        put = 0
        for queue in sorted(names | counts.keys()):
            put += self._mend_head(queue)
            put += self._load(queue, counts.get(queue, 0))
        if put > HEAD:
            self.telemetry.emit("refill.loaded", INFO, jobs=put)
        return put

    def _mend_head(self, queue: str) -> int:
        """What is there is read first: what the later snapshot of the store does not have by then is stale."""
        there = {job.id: job for job in self._dispatch.head(queue, HEAD)}
        rows = self._store.heads([queue], room=HEAD)
        claimable = {job.id: job for job in rows}
        end = _place(rows[-1]) if len(rows) == HEAD else None
        missing = [job for job in rows if job.id not in there or _place(there[job.id]) != _place(job)]
        stale = [(queue, job.id) for job in there.values() if job.id not in claimable and (end is None or _place(job) < end)]
        if missing or stale:
            self._dispatch.put(missing, stale)
        return len(missing)

    def _load(self, queue: str, queued: int) -> int:
        """Walk on through a queue of which far more are missing than can be in anybody's hand, a part in each turn."""
        depth = self._dispatch.depth(queue)
        if depth is None or queued - depth <= self._apart.get(queue, 0) + HEAD:
            self._walked.pop(queue, None)
            return 0
        past = self._walked.get(queue, 0)
        rows = self._store.heads([queue], room=LOAD, past=past)
        self._dispatch.put(rows)
        if len(rows) == LOAD:
            self._walked[queue] = past + LOAD
        else:
            self._walked.pop(queue, None)
            self._apart[queue] = queued - (self._dispatch.depth(queue) or 0)
        return len(rows)


def _place(job: Ready) -> tuple[int, int]:
    """Where a job stands, as far as a dispatcher can tell."""
    return -job.priority, job.run_at // 1_000
