"""Pools of slots: one for all queues, or one for each queue that the worker names; and who in a pool may start when.

A pool hands its runs to an executor for each kind of handler, its lanes. While all that is out is of one kind, the executor bounds it
and takes what waits as well; while kinds are mixed the pool lets out only as many as it has slots, so that its concurrency holds over all.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING, Final

from workmill.domain.worker import Wants
from workmill.engine.context import RunningJob
from workmill.engine.prefetch import MOST, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from workmill.engine.executors.base import Executor
    from workmill.engine.handlers import Kind

LIMITED: Final = 5.0
"""Seconds for which a pool that got a job of a limited queue claims nothing ahead."""


class Lane:
    """The runs of one kind that a pool has let out: until its outcome is committed, and its handler has returned, a run is out."""

    __slots__ = ("executor", "kind", "out", "pool")

    def __init__(self, pool: Pool, kind: Kind) -> None:
        self.pool = pool
        self.kind = kind
        self.out = 0
        self.executor: Executor | None = None

    def start(self, runs: Sequence[RunningJob]) -> None:
        """Let them out."""
        if self.executor is None:
            self.executor = self.pool.make(self.kind, self.pool.concurrency)
            self.executor.resize(self.pool.concurrency)  # an order may have changed it while the executor was made
        self.executor.start(runs)
        self.out += len(runs)

    def recall(self) -> list[RunningJob]:
        """Take back those that have not begun."""
        runs = self.executor.recall() if self.executor is not None else []
        self.out -= len(runs)
        return runs

    def interrupt(self, run: RunningJob) -> None:
        """End a run that has begun, as far as its executor can."""
        if self.executor is not None:
            self.executor.interrupt(run)


class Pool:
    """So many slots, and the runs that fill them or wait. Only the exchange thread lets out, takes back and counts."""

    def __init__(self, concurrency: int, make: Callable[[Kind, int], Executor]) -> None:
        self.concurrency = concurrency
        self.make = make
        self.pace = Pace()
        self.limited_until = 0.0
        self.lanes: dict[Kind, Lane] = {}
        self._configured = concurrency
        self._waiting: deque[RunningJob] = deque()

    def lane(self, kind: Kind) -> Lane:
        """The lane of that kind."""
        lane = self.lanes.get(kind)
        if lane is None:
            lane = self.lanes[kind] = Lane(self, kind)
        return lane

    @property
    def out(self) -> int:
        """How many runs have been let out."""
        return sum(lane.out for lane in self.lanes.values())

    @property
    def held(self) -> int:
        """How many runs fill a slot or wait for one."""
        return self.out + len(self._waiting)

    def room(self, ending: int, exchange_seconds: float, now: float) -> int:
        """How many to claim in an exchange that commits so many endings of this pool."""
        ahead = 0 if now < self.limited_until else self._ahead(now, exchange_seconds)
        most = max(self.concurrency, min(MOST, self.concurrency + ahead))
        return max(0, min(MOST, most - self.held + ending))

    def accept(self, runs: Sequence[RunningJob], now: float) -> None:
        """Take in new runs, in the order in which they are to start."""
        if not self.held:
            self.pace.resume(now)
        for run in runs:
            run.lane = self.lane(run.handler.kind)
        self._waiting.extend(runs)

    def put_back(self, run: RunningJob) -> None:
        """Take in a run that was here already: it goes before all others."""
        self._waiting.appendleft(run)

    def let_out(self) -> None:
        """Hand to the executors what may start there, or wait there."""
        while self._waiting:
            lane = self._waiting[0].lane
            runs = self._next(lane, self._openings(lane))
            if not runs:
                return
            try:
                lane.start(runs)
            except BaseException:  # no thread could be started, say: what was not let out must not be forgotten
                self._waiting.extendleft(reversed(runs))
                raise

    def recall(self) -> list[RunningJob]:
        """Take back, in order, everything that has not begun."""
        runs = [run for lane in self.lanes.values() for run in lane.recall()]
        runs.extend(self._waiting)
        self._waiting.clear()
        return runs

    def resize(self, concurrency: int | None) -> bool:
        """Run so many at once from now on (None: as configured). Any thread; whether that is new."""
        wanted = self._configured if concurrency is None else concurrency
        changed, self.concurrency = wanted != self.concurrency, wanted
        if changed:
            for lane in tuple(self.lanes.values()):
                if lane.executor is not None:
                    lane.executor.resize(wanted)
        return changed

    def close(self) -> None:
        """Release threads and processes."""
        for lane in self.lanes.values():
            if lane.executor is not None:
                lane.executor.close()

    def _ahead(self, now: float, exchange_seconds: float) -> int:
        busy = [lane.kind for lane in self.lanes.values() if lane.out]
        if self._waiting or len(busy) > 1 or "isolated" in busy:
            return 0
        return self.pace.ahead(now, exchange_seconds)

    def _openings(self, lane: Lane) -> int:
        """How many runs of a lane may go out now."""
        out = self.out
        if out == lane.out and lane.kind != "isolated":
            return len(self._waiting)
        return self.concurrency - out

    def _next(self, lane: Lane, most: int) -> list[RunningJob]:
        """Take the first of those that wait, while they are of this lane."""
        waiting, runs = self._waiting, list[RunningJob]()
        while waiting and len(runs) < most and waiting[0].lane is lane:
            runs.append(waiting.popleft())
        return runs


class Pools:
    """All pools of a worker: by queue, or one under None that serves every queue."""

    def __init__(self, pools: Mapping[str | None, Pool]) -> None:
        self._pools = dict(pools)
        self._anywhere = self._pools.get(None)

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._pools.values())

    def wants(self, ending: Sequence[RunningJob], exchange_seconds: float, now: float, most: float) -> Wants:
        """What to claim, at most `most`, in an exchange that commits these endings."""
        if self._anywhere is not None:
            return Wants(anywhere=int(min(most, self._anywhere.room(len(ending), exchange_seconds, now))))
        queues, counts = {}, by_pool(ending)
        for name, pool in self._pools.items():
            room = int(min(most, pool.room(counts.get(pool, 0), exchange_seconds, now)))
            if name is not None and room > 0:
                queues[name] = room
                most -= room
        return Wants(queues=queues)

    def accept(self, runs: Sequence[RunningJob], limited: frozenset[str], now: float) -> None:
        """Take in new runs, in the order in which they are to start; `limited` names queues whose jobs are not to be claimed ahead."""
        if self._anywhere is not None:
            self._anywhere.accept(runs, now)
        else:
            for queue, some in groupby(runs, key=lambda run: run.queue):
                self._pools[queue].accept(list(some), now)
        if limited:
            for run in runs:
                if run.queue in limited:
                    run.lane.pool.limited_until = now + LIMITED

    def put_back(self, runs: Sequence[RunningJob]) -> None:
        """Take in runs that were here already, to start before all others, in this order."""
        for run in reversed(runs):
            run.lane.pool.put_back(run)

    def behind(self) -> int:
        """How many are out beyond the slots: those wait in their executors, or have ended."""
        return sum(max(0, pool.out - pool.concurrency) for pool in self)

    def crowded(self) -> bool:
        """Whether a pool holds more than it has slots."""
        return any(pool.held > pool.concurrency for pool in self)

    def let_out(self) -> None:
        """Let every pool let out what may start."""
        for pool in self:
            pool.let_out()

    def recall(self) -> list[RunningJob]:
        """Take back everything that has not begun."""
        return [run for pool in self for run in pool.recall()]

    def resize(self, concurrency: int | None) -> bool:
        """Change the concurrency of the pool for all queues; whether there is one and that is new."""
        return self._anywhere is not None and self._anywhere.resize(concurrency)

    def close(self) -> None:
        """Release all threads and processes, at the same time: each may wait a moment for what does not end."""
        closing = [threading.Thread(target=pool.close, daemon=True) for pool in self]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


def by_pool(runs: Sequence[RunningJob]) -> dict[Pool, int]:
    """How many of the runs are each pool's."""
    counts: dict[Pool, int] = {}
    for run in runs:
        pool = run.lane.pool
        counts[pool] = counts.get(pool, 0) + 1
    return counts
