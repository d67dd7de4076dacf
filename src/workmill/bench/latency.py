"""How long a job takes from the moment it was meant to be sent to the start of its handler, at a steady rate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from workmill import clock
from workmill.bench.handlers import NOTE
from workmill.bench.probe import probing
from workmill.bench.result import Goal, Place, Round, figures_of, floor_and_goal
from workmill.bench.samples import curve, spread
from workmill.bench.stand import QUEUE, Alike, wait_until
from workmill.engine.worker import WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from workmill import Workmill
    from workmill.bench.stand import Stand

CONCURRENCY: Final = 8
BOUNDS: Final = {"direct": (15.0, 3.0), "redis": (10.0, 2.0)}
"""On PostgreSQL."""
WITH: Final = {"direct": "", "redis": ", with Redis"}
LEAD: Final = 200_000
"""Microseconds before the first job is due, for the senders to get ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Alike):
    """An open loop: job n is due at n / rate whatever became of those before it, so a sender that is held up shows in the figures."""

    name: ClassVar[str] = "latency"
    durations: ClassVar[str] = "from the time a job was meant to be sent to the start of its handler"

    rate: int = 200
    seconds: float = 10.0
    same_process: bool = False
    senders: int = 8

    def goals(self, place: Place) -> Sequence[Goal]:
        """Both rates for a worker in the same process on SQLite, the lower one for a worker elsewhere."""
        if place.store == "postgresql":
            what = f"worker in another process, {self.rate} jobs a second{WITH[place.dispatch]}: p95 in ms"
            return [] if self.same_process or self.rate > 200 else floor_and_goal(what, "p95_ms", "≤", *BOUNDS[place.dispatch])
        if self.same_process:
            where = f"worker in the same process, {self.rate} jobs a second"
            return [Goal(f"{where}: p95 in ms", "p95_ms", "≤", 5.0), Goal(f"{where}: p99 in ms", "p99_ms", "≤", 15.0)]
        return [Goal(f"worker in another process, {self.rate} jobs a second: p95 in ms", "p95_ms", "≤", 30.0)] if self.rate <= 200 else []

    def round(self, stand: Stand) -> Round:
        """Send for some seconds, wait for the last handler, and compare what was meant with what was."""
        jobs = round(self.rate * self.seconds)
        with stand.application() as mill, probing(stand.new_file(".notes")) as probe, self._worker(stand, mill):
            self._send(mill, jobs)
            wait_until(lambda: len(probe) >= jobs, "the last handler to start")
            notes = probe.notes()
        late = [note.started - note.number for note in notes]
        lasted = max(note.started for note in notes) - min(note.number for note in notes)
        return Round(figures_of(jobs / lasted * 1e6, spread(late)), {"late_ms": curve(late)})

    def _worker(self, stand: Stand, mill: Workmill) -> AbstractContextManager[object]:
        if self.same_process:
            return mill.run_worker(WorkerOptions(concurrency=CONCURRENCY))
        return stand.workers(mill.store, concurrency=CONCURRENCY)

    def _send(self, mill: Workmill, jobs: int) -> None:
        """Send job n at its time, or at once when that has passed; each thread takes the next job that nobody has."""
        begin = clock.wall() + LEAD

        def send(number: int) -> None:
            due = begin + number * 1_000_000 // self.rate
            clock.sleep(max(0, due - clock.wall()) / 1e6)
            mill.enqueue(NOTE, {"group": 0, "number": due}, queue=QUEUE)

        with ThreadPoolExecutor(self.senders) as pool:
            for sent in [pool.submit(send, number) for number in range(jobs)]:
                sent.result()
