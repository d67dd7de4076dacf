"""What a worker costs while it has nothing to do, how fast it wakes up, and whether it grows with the jobs it has run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import psutil

from workmill import clock
from workmill.bench.ceiling import PAYLOAD
from workmill.bench.handlers import NOOP, NOTE
from workmill.bench.probe import probing
from workmill.bench.result import Goal, Round, figures_of
from workmill.bench.samples import curve, spread
from workmill.bench.stand import Alike, rate, submit, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.probe import Probe
    from workmill.bench.stand import Stand, Timing
    from workmill.store.base import Store

MIB: Final = 2**20
APART: Final = 0.1
"""Seconds between two submissions to a sleeping worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(Alike):
    """One worker process: left alone, woken now and then by submissions from this process, then given many jobs."""

    name: ClassVar[str] = "idle"
    durations: ClassVar[str] = "from a submission in another process to the start of the handler in a worker that had nothing to do"
    asked: ClassVar[Sequence[Goal]] = (
        Goal("memory of an idle worker in MiB", "idle_mib", "≤", 80.0),
        Goal("an idle worker's share of a core in %", "idle_cpu_percent", "≤", 1.0),
        Goal("waking up at another process's submission: p95 in ms", "p95_ms", "≤", 50.0),
        Goal("growth from a tenth of the jobs to all of them in MiB", "growth_mib", "≤", 10.0),
    )

    seconds: float = 10.0
    wakings: int = 50
    jobs: int = 200_000
    settle: float = 2.0
    """Seconds for the worker to come to rest before it is looked at."""

    def round(self, stand: Stand) -> Round:
        """Rest, wake-ups, a tenth of the jobs, the rest of them; memory after each."""
        few = self.jobs // 10
        with stand.store() as store, probing(stand.new_file(".notes")) as probe, stand.workers(store, concurrency=8) as worker:
            process = psutil.Process(worker.pid)
            clock.sleep(self.settle)
            busy = share_of_a_core(process, self.seconds)
            idle = self._resident(process)
            woke = self._wake(store, probe)
            self._drain(stand, store, few, self.wakings)
            after_few = self._resident(process)
            done = self._drain(stand, store, self.jobs - few, self.wakings + few)
            growth = self._resident(process) - after_few
        figures = figures_of(
            rate(done), spread(woke), idle_mib=round(idle, 1), idle_cpu_percent=round(busy, 3), growth_mib=round(growth, 1)
        )
        return Round(figures, {"wake_ms": curve(woke)})

    def _resident(self, process: psutil.Process) -> float:
        """The resident memory of a process that has come to rest, in MiB."""
        clock.sleep(self.settle)
        return float(process.memory_info().rss / MIB)

    def _wake(self, store: Store, probe: Probe) -> list[int]:
        """Microseconds of each wake-up."""
        for number in range(self.wakings):
            submit(store, NOTE, [json.dumps({"group": 0, "number": clock.wall()})])
            wait_until(lambda number=number: len(probe) > number, "the handler to start")  # type: ignore[misc]
            clock.sleep(APART)
        return [note.started - note.number for note in probe.notes()]

    def _drain(self, stand: Stand, store: Store, jobs: int, before: int) -> list[Timing]:
        """The times of so many jobs, run after those before."""
        stand.fill(store, NOOP, [PAYLOAD] * jobs)
        done = stand.drained(store, before + jobs, f"running {jobs:,} jobs")
        return sorted(done, key=lambda job: job.created)[-jobs:]


def share_of_a_core(process: psutil.Process, seconds: float) -> float:
    """How much of one core a process uses over some seconds, in percent, from the processor time it is charged for."""
    before = process.cpu_times()
    clock.sleep(seconds)
    after = process.cpu_times()
    return float(after.user + after.system - before.user - before.system) / seconds * 100
