"""How fast jobs come in: many in one call, and one by one from one thread and from several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final

from workmill.bench.ceiling import PAYLOAD, ceiling_of
from workmill.bench.handlers import NOOP, noop
from workmill.bench.result import Goal, Place, Round, figures_of, floor_and_goal
from workmill.bench.samples import curve, spread
from workmill.bench.stand import CHUNK, QUEUE, Alike, submit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.stand import Stand
    from workmill.store.base import Store

MANY_THREADS: Final = 64
URL: Final = "https://example.com/video/1.mp4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue(Alike):
    """`jobs` by `enqueue_many`, then `calls` submissions of one job each from one thread and again from all `threads`."""

    name: ClassVar[str] = "enqueue"
    durations: ClassVar[str] = "one submission of one job, while all threads submit"

    jobs: int = 50_000
    calls: int = 2_000
    threads: int = 8
    group_commit: bool = True
    delay: float = 0.0

    def goals(self, place: Place) -> Sequence[Goal]:
        """The switches are there to be compared: only the defaults have goals."""
        if not self.group_commit or self.delay:
            return []
        many = Goal("enqueue_many in thousands, of the ceiling's insert", "many_of_ceiling", "≥", 0.4)
        if place.store == "sqlite":
            return [many, Goal(f"one by one from {self.threads} threads, against one thread", "threads_gain", "≥", 3.0)]
        if self.threads < MANY_THREADS:
            return [many]
        return [many, *floor_and_goal(f"one by one from {self.threads} threads, jobs a second", "threads_per_second", "≥", 3_000, 5_000)]

    def round(self, stand: Stand) -> Round:
        """The ceiling, then many, one thread, all threads."""
        ceiling = ceiling_of(stand).insert
        many = self._many(stand)
        with stand.store(group_commit=self.group_commit, group_delay=self.delay) as store:
            alone, _ = self._one_by_one(store, 1)
        with stand.store(group_commit=self.group_commit, group_delay=self.delay) as store:
            together, took = self._one_by_one(store, self.threads)
        figures = figures_of(
            many,
            spread(took),
            ceiling_insert=ceiling,
            many_of_ceiling=round(many / ceiling, 4),
            one_thread_per_second=round(alone, 1),
            threads_per_second=round(together, 1),
            threads_gain=round(together / alone, 3),
        )
        return Round(figures, {"call_ms": curve(took)})

    def _many(self, stand: Stand) -> float:
        """Jobs a second through the library, from arguments to handles."""
        with stand.application() as mill:
            job = mill.job(name="bench.many", queue=QUEUE)(noop)
            begin = perf_counter()
            for _ in stand.progress.track(range(0, self.jobs, CHUNK), description="enqueue_many"):
                mill.enqueue_many([job.job(id=number, url=URL) for number in range(CHUNK)])
            return self.jobs / (perf_counter() - begin)

    def _one_by_one(self, store: Store, threads: int) -> tuple[float, list[float]]:
        """Jobs a second, and the microseconds that each call took."""

        def call(_: int) -> float:
            begin = perf_counter()
            submit(store, NOOP, [PAYLOAD])
            return (perf_counter() - begin) * 1e6

        with ThreadPoolExecutor(threads) as pool:
            begin = perf_counter()
            took = list(pool.map(call, range(self.calls * threads)))
            return len(took) / (perf_counter() - begin), took
