"""What keeps a dispatcher in line with the store: each second one process compares the heads of the queues, and puts right what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill.domain.errors import StoreError
from workmill.domain.states import State
from workmill.loops import Loop
from workmill.telemetry import INFO, WARNING, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workmill.dispatch.redis import RedisDispatch
    from workmill.store.base import Reading
    from workmill.store.heads import Ready

TURN_SECONDS: Final = 1.0
HEAD: Final = 1_000
"""Rows of each queue that are compared in each turn."""
TOGETHER: Final = 50
"""Queues that are compared at once."""
LOAD: Final = 50_000
"""Rows that a turn reads behind the heads of queues of which many are missing, as after a flush."""


class Refiller(Loop):
    """Adds what is claimable and missing, removes from the head what is not claimable. Any process may; one a second does."""

    name = "refill"

    def __init__(self, store: Reading, dispatch: RedisDispatch, telemetry: Telemetry) -> None:
        super().__init__(telemetry)
        self._store = store
        self._dispatch = dispatch
        self._walked: dict[str, int] = {}
        """How far behind the head of a queue the walk has come."""

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
        queued = {queue: jobs for (queue, state), jobs in self._store.counts().items() if state is State.QUEUED and jobs}
        names = self._dispatch.names()
        depths = None if names is None else self._dispatch.depths(names | queued.keys())
        if names is None or depths is None:
            return 0
        self._dispatch.drop([queue for queue in names if queue not in queued and not depths.get(queue)])
        compared = sorted(queue for queue, depth in depths.items() if depth or queue in queued)
        put = sum(self._mend_heads(compared[first : first + TOGETHER]) for first in range(0, len(compared), TOGETHER))
        put += self._load([queue for queue in compared if queued.get(queue, 0) - depths[queue] > HEAD], queued)
        if put > HEAD:
            self.telemetry.emit("refill.loaded", INFO, jobs=put)
        return put

    def _mend_heads(self, queues: Sequence[str]) -> int:
        """What is there is read first: what the later snapshot of the store does not have by then is stale."""
        there = self._dispatch.heads(queues, HEAD)
        if there is None:
            return 0
        rows: dict[str, list[Ready]] = {}
        for job in self._store.heads(queues, room=HEAD):
            rows.setdefault(job.queue, []).append(job)
        missing, stale = [], []
        for queue, head in there.items():
            missing += _without(rows.get(queue, []), head)
            stale += _past(head, rows.get(queue, []))
        return len(missing) if (missing or stale) and self._dispatch.put(missing, [(job.queue, job.id) for job in stale]) else 0

    def _load(self, queues: Iterable[str], queued: dict[str, int]) -> int:
        """Walk on through queues of which far more are missing than can be in anybody's hand, a part in each turn."""
        put, walked, self._walked = 0, self._walked, {}
        for queue in queues:
            past = walked.get(queue, 0)
            if put >= LOAD:
                self._walked[queue] = past
            elif self._is_missing(queue, queued[queue]):
                rows = self._store.heads([queue], room=LOAD, past=past)
                put += len(rows)
                if self._dispatch.put(rows) and len(rows) == LOAD:
                    self._walked[queue] = past + LOAD
        return put

    def _is_missing(self, queue: str, queued: int) -> bool:
        """Whether a queue has more than can be dispatched or is in somebody's hand."""
        depth = self._dispatch.depth(queue)
        return depth is not None and queued - depth - self._store.aside(queue, limit=queued) > HEAD


def _without(rows: Sequence[Ready], head: Iterable[Ready]) -> list[Ready]:
    """The claimable rows that are not in the dispatcher's head, or not at their place."""
    there = {job.id: _place(job) for job in head}
    return [job for job in rows if there.get(job.id) != _place(job)]


def _past(head: Iterable[Ready], rows: Sequence[Ready]) -> list[Ready]:
    """What of the dispatcher's head is not claimable; behind the last of a full page of rows that is not known."""
    claimable = {job.id for job in rows}
    end = _place(rows[-1]) if len(rows) == HEAD else None
    return [job for job in head if job.id not in claimable and (end is None or _place(job) < end)]


def _place(job: Ready) -> tuple[int, int]:
    """Where a job stands, as far as a dispatcher can tell."""
    return -job.priority, job.run_at // 1_000
