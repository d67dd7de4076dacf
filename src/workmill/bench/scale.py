"""Whether a claim stays as fast when millions of jobs that it does not want lie around it."""

from __future__ import annotations

import os
import platform
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, ClassVar, Final

from workmill.bench.ceiling import PAYLOAD
from workmill.bench.handlers import NOOP
from workmill.bench.result import Goal, Place, Round, figures_of
from workmill.bench.samples import curve, spread
from workmill.bench.stand import CHUNK, QUEUE
from workmill.domain.outcome import Succeeded
from workmill.domain.submission import new_job
from workmill.domain.worker import Hello, Wants
from workmill.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from workmill.bench.stand import Stand
    from workmill.domain.job import Claimed
    from workmill.domain.outcome import Outcome
    from workmill.store.base import Store

ELSEWHERE: Final = "elsewhere"
A_DAY: Final = 86_400.0
STRETCH: Final = 50
"""Claims in a row on one store before it is the other's turn, so that both see the same minute of the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Two stores, one empty and one that holds `rows` jobs of each kind; the same claims on both, by turns."""

    name: ClassVar[str] = "scale"
    durations: ClassVar[str] = "one transaction that finishes a batch and claims the next, on the full store"
    asked: ClassVar[Sequence[Goal]] = (Goal("p99 of a claim on the full store, of that on an empty one", "p99_of_empty", "≤", 1.5),)

    rows: int = 1_000_000
    finished: int | None = None
    """As many as of the others, unless it says how many."""
    claims: int = 2_000
    batch: int = 10

    def goals(self, place: Place) -> Sequence[Goal]:  # noqa: ARG002 - the same everywhere
        return self.asked

    def rounds(self, stand: Stand) -> Generator[Round]:
        """Fill one store through its own operations, once; then measure as often as asked."""
        with ExitStack() as stores:
            empty, full = (Claimer(stores.enter_context(stand.store())) for _ in range(2))
            if stand.server is None:
                crowd(stand, full, self.rows, self.finished or self.rows)
            else:
                self._crowd_server(stand, stand.server)
            while True:
                yield self._round(stand, empty, full)

    def _crowd_server(self, stand: Stand, server: str) -> None:
        from workmill.bench.crowd import AT_ONCE, crowd  # noqa: PLC0415 - the driver is loaded when it is needed

        finished = self.finished or self.rows
        steps = crowd(server, stand.schema, NOOP, PAYLOAD, queue=QUEUE, elsewhere=ELSEWHERE, rows=self.rows, finished=finished)
        for _ in stand.progress.track(steps, total=(2 * self.rows + finished) // AT_ONCE, description=f"{finished + 2 * self.rows:,} jobs"):
            pass

    def _round(self, stand: Stand, empty: Claimer, full: Claimer) -> Round:
        for claimer in (empty, full):
            stand.fill(claimer.store, NOOP, [PAYLOAD] * (self.claims * self.batch))
        took: dict[Claimer, list[float]] = {empty: [], full: []}
        for _ in stand.progress.track(range(0, self.claims, STRETCH), description="claiming by turns"):
            for claimer in (empty, full):
                took[claimer] += [claimer.timed_exchange(self.batch) for _ in range(STRETCH)]
        for claimer in (empty, full):
            claimer.finish()
        here, there = spread(took[full]), spread(took[empty])
        speed = self.batch * len(took[full]) / sum(took[full]) * 1_000_000
        figures = figures_of(speed, here, empty_p50_ms=there.p50_ms, empty_p99_ms=there.p99_ms, p99_of_empty=here.p99_ms / there.p99_ms)
        return Round(figures, {"full_ms": curve(took[full]), "empty_ms": curve(took[empty])})


class Claimer:
    """A worker without handlers: what it claims has succeeded by the next exchange."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._id = store.join(Hello(name="bench", host=platform.node(), pid=os.getpid(), version="", lease_seconds=3_600.0))
        self._held: Sequence[Claimed] = ()

    def exchange(self, batch: int) -> int:
        """Finish what is held and claim `batch` more; returns how many came."""
        outcomes: list[Outcome] = [Succeeded(job.fence, "null", 1_000, 1_000) for job in self._held]
        self._held = self.store.exchange(self._id, outcomes, Wants(queues={QUEUE: batch})).claimed
        return len(self._held)

    def timed_exchange(self, batch: int) -> float:
        """The microseconds that an exchange took."""
        begin = perf_counter_ns()
        self.exchange(batch)
        return (perf_counter_ns() - begin) / 1_000

    def finish(self) -> None:
        """Take all that is left through to its end."""
        while self.exchange(CHUNK):
            pass


def crowd(stand: Stand, claimer: Claimer, rows: int, finished: int) -> None:
    """Jobs that have succeeded, `rows` that wait in another queue and `rows` scheduled, by submissions and exchanges like any others."""
    for what, jobs, options in (
        ("that will have succeeded", finished, {"queue": QUEUE}),
        ("in another queue", rows, {"queue": ELSEWHERE}),
        ("for tomorrow", rows, {"queue": QUEUE, "delay": A_DAY}),
    ):
        like = new_job(new_id(), NOOP, PAYLOAD, options)
        for _ in stand.progress.track(range(0, jobs, CHUNK), description=f"{jobs:,} jobs {what}"):
            claimer.store.submit([like._replace(id=new_id()) for _ in range(CHUNK)])
        claimer.finish()
    while claimer.store.fold():
        pass
