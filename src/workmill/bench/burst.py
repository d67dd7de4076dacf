"""A burst: very many jobs at once, then several worker processes until all are done, with the books checked all the way."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from workmill import clock
from workmill.bench.ceiling import PAYLOAD
from workmill.bench.handlers import NOOP
from workmill.bench.result import Goal, Round, figures_of
from workmill.bench.samples import curve, spread
from workmill.bench.stand import QUEUE, Alike, Stuck, every_job, rate, timing
from workmill.dispatch.open import open_heads
from workmill.domain.states import State
from workmill.engine.prefetch import MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.result import Place
    from workmill.bench.stand import Stand, Timing
    from workmill.domain.job import Job
    from workmill.store.base import Store

EVERY: Final = 0.1
"""Seconds between two samples."""
STUCK: Final = 60.0
"""Seconds without a job that ends."""
HISTORIES: Final = 200
"""Of so many jobs, evenly chosen, the history is read."""
SHOWN: Final = 25


class Sample(NamedTuple):
    """The counts at one moment, in seconds since the burst began to be worked off; `heads`: ids in the dispatcher, read just after."""

    seconds: float
    queued: int
    running: int
    succeeded: int
    total: int
    heads: int | None


class Worked(NamedTuple):
    """What became of a burst."""

    speed: float
    done: list[Timing]
    wrong: int
    samples: list[Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst(Alike):
    """`jobs` no-ops wait in a paused queue; `workers` processes start, the queue is resumed. First `beside` processes do the same."""

    name: ClassVar[str] = "burst"
    durations: ClassVar[str] = "the wait of a job, from its submission to its claim"

    jobs: int = 100_000
    workers: int = 10
    beside: int = 0
    concurrency: int = 10

    def goals(self, place: Place) -> Sequence[Goal]:
        """Nothing may be lost or done twice, and more processes may not be slower than fewer."""
        asked = [
            Goal(f"{self.jobs:,} jobs, {self.workers} processes: jobs without exactly one run, which succeeded", "wrong_jobs", "≤", 0),
            Goal(f"{self.jobs:,} jobs, {self.workers} processes: samples whose counts are not all jobs", "wrong_samples", "≤", 0),
        ]
        if self.beside:
            asked.append(Goal(f"speed of {self.workers} processes, of that of {self.beside}", "of_beside", "≥", 1.0))
        if place.dispatch == "redis":
            asked.append(Goal("ids left in the dispatcher", "heads_left", "≤", 0))
            asked.append(
                Goal("most that the dispatcher's depth and the count of queued jobs differed", "heads_apart", "≤", 2 * MOST * self.workers)
            )
        return asked

    def round(self, stand: Stand) -> Round:
        """The few first, when they are asked for."""
        fewer = self._run(stand, self.beside)[0].speed if self.beside else 0.0
        worked, submitted = self._run(stand, self.workers)
        compared = {"beside_per_second": round(fewer, 1), "of_beside": round(worked.speed / fewer, 4)} if fewer else {}
        waits = [job.claimed - job.created for job in worked.done]
        samples = worked.samples
        figures = figures_of(
            worked.speed,
            spread(waits),
            mean_wait_ms=round(statistics.fmean(waits) / 1_000, 1),
            submitted_per_second=round(submitted, 1),
            wrong_jobs=worked.wrong,
            wrong_samples=sum(sample.total != self.jobs for sample in samples),
            **compared,
            **_heads(samples),
        )
        return Round(figures, {"wait_ms": curve(waits), **_columns(samples)})

    def _run(self, stand: Stand, workers: int) -> tuple[Worked, float]:
        """What became of it, and how many a second were submitted."""
        with stand.store() as store:
            store.pause(QUEUE, actor="bench")
            begin = perf_counter()
            stand.fill(store, NOOP, [PAYLOAD] * self.jobs)
            submitted = self.jobs / (perf_counter() - begin)
            with stand.workers(store, concurrency=self.concurrency, processes=workers):
                store.resume(QUEUE, actor="bench")
                samples = self._watch(stand, store, workers)
            jobs = list(every_job(store))
            done = [timing(job) for job in jobs if job.state is State.SUCCEEDED]
            wrong = self.jobs - len(jobs) + sum(not _ran_once(job) for job in jobs) + _odd_histories(store, jobs)
            return Worked(rate(done), done, wrong, samples), submitted

    def _watch(self, stand: Stand, store: Store, workers: int) -> list[Sample]:
        """Samples until all are done, and one of the end."""
        heads = open_heads()
        task = stand.progress.add_task(f"{workers} processes", total=self.jobs)
        begin = changed = clock.monotonic()
        samples: list[Sample] = []
        while not samples or samples[-1].succeeded < self.jobs:
            now = clock.monotonic()
            samples.append(_sample(store, now - begin, None if heads is None else heads.dispatch.depth(QUEUE)))
            stand.progress.update(task, completed=samples[-1].succeeded)
            if len(samples) > 1 and samples[-1].succeeded > samples[-2].succeeded:
                changed = now
            if now - changed > STUCK:
                raise Stuck(f"no job has ended for {STUCK:g} s: {samples[-1]}")
            clock.sleep(EVERY)
        stand.progress.remove_task(task)
        if heads is not None:
            heads.close()
        return samples


def _sample(store: Store, seconds: float, depth: int | None) -> Sample:
    counts = store.counts()
    states = {state: sum(jobs for (_, other), jobs in counts.items() if other is state) for state in State}
    moved = (states[State.QUEUED], states[State.RUNNING], states[State.SUCCEEDED])
    return Sample(round(seconds, 2), *moved, sum(states.values()), depth)


def _ran_once(job: Job) -> bool:
    return job.state is State.SUCCEEDED and job.attempt == job.lease == 1 and job.losses == 0


def _odd_histories(store: Store, jobs: Sequence[Job]) -> int:
    """How many of some jobs have another history than one attempt."""
    some = islice(jobs, 0, None, max(1, len(jobs) // HISTORIES))
    return sum(len(store.history(job.id).attempts) != 1 for job in some)


def _heads(samples: Sequence[Sample]) -> dict[str, float]:
    """How well the dispatcher's depth followed the count, and what it held in the end."""
    apart = [abs(sample.heads - sample.queued) for sample in samples if sample.heads is not None]
    return {"heads_apart": max(apart), "heads_left": samples[-1].heads or 0} if apart else {}


def _columns(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Some of the samples, the last among them, as a list for each field."""
    step = max(1, len(samples) // SHOWN)
    some = [*samples[:-1:step], samples[-1]]
    fields = [field for field in Sample._fields if field != "heads" or samples[-1].heads is not None]
    return {field: [float(getattr(sample, field) or 0) for sample in some] for field in fields}
