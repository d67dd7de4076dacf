"""How throughput follows threads and processes, for work that does nothing, waits, or computes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from workmill.bench.result import Goal, Round, figures_of
from workmill.bench.samples import spread
from workmill.bench.stand import QUEUE, Alike, rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.stand import Stand, Timing

SAMPLES: Final = "workmill.samples:mill"
MILLISECONDS: Final = 5


class Load(NamedTuple):
    """One kind of work on so many threads and processes; `jobs` of it take a few seconds."""

    type: str
    payload: dict[str, Any]
    threads: int
    processes: int
    jobs: int

    @property
    def figure(self) -> str:
        """The name of its throughput among the figures."""
        return f"{self.type}_{self.processes}x{self.threads}"


def loads(size: float, iterations: int) -> list[Load]:
    """No-ops, sleeps and sums on one, four and eight threads, then on two processes."""
    sleep, hashes = {"ms": MILLISECONDS}, {"iterations": iterations}
    shapes = [(1, 1), (4, 1), (8, 1), (1, 2)]
    return [
        *(Load("noop", {}, threads, processes, round(20_000 * size)) for threads, processes in shapes),
        *(Load("sleep", sleep, threads, processes, round(400 * threads * processes * size)) for threads, processes in shapes),
        *(Load("cpu_hash", hashes, threads, processes, round(400 * processes * size)) for threads, processes in shapes),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads(Alike):
    """Each load by itself on an empty store, from the first claim to the last commit."""

    name: ClassVar[str] = "workloads"
    durations: ClassVar[str] = "a sleeping job on eight threads, from the start of its handler to the commit of its end"
    asked: ClassVar[Sequence[Goal]] = (
        Goal("sleeping jobs: eight threads against one", "sleep_threads_gain", "≥", 7.5),
        Goal("computing jobs: two processes against one", "cpu_processes_gain", "≥", 1.7),
    )

    size: float = 1.0
    iterations: int = 20_000

    def round(self, stand: Stand) -> Round:
        """Every load once."""
        done = {load.figure: self._run(stand, load) for load in loads(self.size, self.iterations)}
        rates = {figure: rate(timings) for figure, timings in done.items()}
        slept = [job.finished - job.started for job in done["sleep_1x8"]]
        return Round(
            figures_of(
                rates["noop_1x8"],
                spread(slept),
                sleep_threads_gain=rates["sleep_1x8"] / rates["sleep_1x1"],
                cpu_processes_gain=rates["cpu_hash_2x1"] / rates["cpu_hash_1x1"],
                **{figure: round(speed, 1) for figure, speed in rates.items()},
            )
        )

    def _run(self, stand: Stand, load: Load) -> list[Timing]:
        with stand.store() as store:
            store.pause(QUEUE, actor="bench")
            stand.fill(store, load.type, [json.dumps(load.payload)] * load.jobs)
            with stand.workers(store, SAMPLES, concurrency=load.threads, processes=load.processes):
                store.resume(QUEUE, actor="bench")
                return stand.drained(store, load.jobs, f"{load.type} on {load.processes} × {load.threads} threads")
