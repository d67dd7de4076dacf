"""How fast a real worker empties a queue of jobs that do nothing, beside the same exchanges on a bare table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from workmill.bench.ceiling import PAYLOAD, ceiling_of
from workmill.bench.handlers import NOOP, NOOP_ASYNC
from workmill.bench.result import Goal, Place, Round, figures_of, floor_and_goal
from workmill.bench.samples import curve, spread
from workmill.bench.stand import QUEUE, Alike, rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.stand import Stand

HANDLERS: Final = {"sync": NOOP, "async": NOOP_ASYNC}
BOUNDS: Final = {
    ("sqlite", "sync"): (0.4, 0.6),
    ("sqlite", "async"): (0.3,),
    ("postgresql", "sync"): (0.5, 1.0),
    ("postgresql", "async"): (0.5,),
}
"""The floor, and where there is one the goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(Alike):
    """`jobs` no-ops wait in a paused queue; the workers start, the queue is resumed, and the clock runs from the first claim."""

    name: ClassVar[str] = "drain"
    durations: ClassVar[str] = "a job's time from its claim to the commit of its end"

    jobs: int = 50_000
    handler: Literal["sync", "async"] = "sync"
    processes: int = 1
    concurrency: int = 10
    payload_bytes: int = len(PAYLOAD)
    log_level: str = "warning"

    def goals(self, place: Place) -> Sequence[Goal]:
        """The plain drains have a floor; what more processes, larger payloads and a line of log for each job do is for information."""
        if self.processes > 1 or self.payload_bytes != len(PAYLOAD) or self.log_level != "warning":
            return []
        what = f"{self.handler} handlers, one process: of the ceiling's exchange"
        return floor_and_goal(what, "of_ceiling", "≥", *BOUNDS[place.store, self.handler])

    def round(self, stand: Stand) -> Round:
        """The ceiling, then the worker."""
        ceiling = ceiling_of(stand).exchange
        with stand.store() as store:
            store.pause(QUEUE, actor="bench")
            stand.fill(store, HANDLERS[self.handler], [payload_of(self.payload_bytes)] * self.jobs)
            with stand.workers(store, concurrency=self.concurrency, processes=self.processes, log_level=self.log_level):
                store.resume(QUEUE, actor="bench")
                done = stand.drained(store, self.jobs, "draining")
        held = [job.finished - job.claimed for job in done]
        figures = figures_of(speed := rate(done), spread(held), ceiling_exchange=ceiling, of_ceiling=round(speed / ceiling, 4))
        return Round(figures, {"held_ms": curve(held)})


def payload_of(size: int) -> str:
    """The ceiling's payload, with its text made longer (never shorter) so that it has `size` bytes."""
    fields = json.loads(PAYLOAD)
    fields["url"] += "x" * max(0, size - len(PAYLOAD))
    return json.dumps(fields, separators=(",", ":"))
