"""What a job costs a PostgreSQL server: statements, commits, bytes of its log, and row versions to clean up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workmill.bench.drain import payload_of
from workmill.bench.handlers import NOOP
from workmill.bench.result import Round, figures_of
from workmill.bench.samples import spread
from workmill.bench.stand import QUEUE, Alike, on_server, rate

if TYPE_CHECKING:
    from workmill.bench.postgres import Work
    from workmill.bench.stand import Stand


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Alike):
    """`jobs` no-ops are submitted in thousands, then worked off by one process; after each the server is asked what it has done."""

    name: ClassVar[str] = "cost"
    durations: ClassVar[str] = "a job's time from its claim to the commit of its end"

    jobs: int = 50_000
    payload_bytes: int = 60
    concurrency: int = 10

    def round(self, stand: Stand) -> Round:
        """Submit, then work off."""
        server = on_server(stand)
        from workmill.bench.postgres import work  # noqa: PLC0415 - the driver is loaded when it is needed

        with stand.store() as store:
            store.pause(QUEUE, actor="bench")
            store.close()  # what it did before is told
            begin = work(server, stand.schema)
            stand.fill(store, NOOP, [payload_of(self.payload_bytes)] * self.jobs)
            store.close()
            submitted = work(server, stand.schema)
            with stand.workers(store, concurrency=self.concurrency):
                store.resume(QUEUE, actor="bench")
                done = stand.drained(store, self.jobs, "draining")
            store.close()
            ended = work(server, stand.schema)
        figures = {
            **self._figures("submit", submitted.since(begin)),
            **self._figures("run", ended.since(submitted)),
            **self._figures("job", ended.since(begin)),
        }
        return Round(figures_of(rate(done), spread([job.finished - job.claimed for job in done]), **figures))

    def _figures(self, what: str, done: Work) -> dict[str, float]:
        """What was done for each job."""
        figures = {
            "wal_bytes": done.wal / self.jobs,
            "commits": done.commits / self.jobs,
            "dead_tuples": (done.updated + done.deleted) / self.jobs,
        }
        if done.updated:
            figures["hot_share"] = done.hot / done.updated
        if done.statements >= 0:
            figures["statements"] = done.statements / self.jobs
        return {f"{what}_{name}": round(value, 4) for name, value in figures.items()}
