"""Whether what matters goes first when there is more work than can be done, and whether equals keep their order."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

from workmill import clock
from workmill.bench.handlers import NOTE
from workmill.bench.probe import probing
from workmill.bench.result import Goal, Round, figures_of
from workmill.bench.samples import curve, spread
from workmill.bench.stand import Alike, rate, submit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.probe import Note
    from workmill.bench.stand import Stand
    from workmill.store.base import Store

LOW: Final = -10
HIGH: Final = 10
HANDFUL: Final = 10
PAUSE: Final = 0.05
"""Seconds between two handfuls of urgent jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority(Alike):
    """A backlog of `low` jobs of 1 ms for one thread; while it lasts, `high` urgent ones come in, ten at a time."""

    name: ClassVar[str] = "priority"
    durations: ClassVar[str] = "the wait of an urgent job, from its submission to the start of its handler"
    asked: ClassVar[Sequence[Goal]] = (
        Goal("median wait of urgent jobs, of the others' median", "high_of_low", "≤", 0.1),
        Goal("jobs of one level that started out of order (one claimer)", "out_of_order", "≤", 0),
    )

    low: int = 3_000
    high: int = 300

    def round(self, stand: Stand) -> Round:
        """Submit the backlog, start the worker, and submit the urgent jobs while it is busy."""
        with stand.store() as store, probing(stand.new_file(".notes")) as probe:
            stand.fill(store, NOTE, payloads(LOW, range(self.low)), priority=LOW)
            with stand.workers(store, concurrency=1):
                self._interrupt(store)
                done = stand.drained(store, self.low + self.high, "working off the backlog")
            notes = probe.notes()
        waits = {level: [job.started - job.created for job in done if job.priority == level] for level in (LOW, HIGH)}
        medians = {level: statistics.median(waits[level]) for level in waits}
        figures = figures_of(
            rate(done),
            spread(waits[HIGH]),
            low_p50_ms=round(medians[LOW] / 1_000, 3),
            high_of_low=round(medians[HIGH] / medians[LOW], 4),
            out_of_order=out_of_order(notes),
        )
        return Round(figures, {"high_ms": curve(waits[HIGH]), "low_ms": curve(waits[LOW])})

    def _interrupt(self, store: Store) -> None:
        for first in range(0, self.high, HANDFUL):
            submit(store, NOTE, payloads(HIGH, range(first, min(first + HANDFUL, self.high))), priority=HIGH)
            clock.sleep(PAUSE)


def payloads(level: int, numbers: range) -> list[str]:
    """The payload of each job: its level and its place in it."""
    return [json.dumps({"group": level, "number": number, "milliseconds": 1}) for number in numbers]


def out_of_order(notes: Sequence[Note]) -> int:
    """How many jobs started before one of their own level that was submitted earlier."""
    levels = {level: [note.number for note in notes if note.group == level] for level in (LOW, HIGH)}
    return sum(later < earlier for numbers in levels.values() for earlier, later in pairwise(numbers))
