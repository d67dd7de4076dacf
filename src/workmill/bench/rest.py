"""What many workers that have nothing to do ask of a PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final

from workmill import clock
from workmill.bench.handlers import NOTE
from workmill.bench.probe import probing
from workmill.bench.result import Goal, Round, figures_of
from workmill.bench.samples import spread
from workmill.bench.stand import Alike, on_server, submit, wait_until
from workmill.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.bench.stand import Stand

APART: Final = 0.1
"""Seconds between two submissions to workers that sleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest(Alike):
    """`workers` processes with a pool for each of `queues` queues, left alone; then woken now and then through one of them."""

    name: ClassVar[str] = "rest"
    durations: ClassVar[str] = "from a submission to the start of its handler in one of the workers"
    asked: ClassVar[Sequence[Goal]] = (Goal("statements a second of all idle workers", "statements_per_second", "≤", 20.0),)

    workers: int = 10
    queues: int = 40
    seconds: float = 10.0
    settle: float = 5.0
    """Seconds for the workers to come to rest before they are looked at."""
    wakings: int = 20

    def round(self, stand: Stand) -> Round:
        """Rest, then wake-ups."""
        server = on_server(stand)
        from workmill.bench.postgres import work  # noqa: PLC0415 - the driver is loaded when it is needed

        names = [f"queue{number}" for number in range(self.queues)]
        with (
            stand.store() as store,
            probing(stand.new_file(".notes")) as probe,
            stand.workers(store, concurrency=1, processes=self.workers, queues=names),
        ):
            store.close()
            clock.sleep(self.settle)
            before, begin = work(server, stand.schema), perf_counter()
            clock.sleep(self.seconds)
            done, lasted = work(server, stand.schema).since(before), perf_counter() - begin
            for number in range(self.wakings):
                submit(store, NOTE, [f'{{"group":0,"number":{clock.wall()}}}'], queue=names[number % len(names)])
                wait_until(lambda number=number: len(probe) > number, "the handler to start")  # type: ignore[misc]
                clock.sleep(APART)
            woke = [note.started - note.number for note in probe.notes()]
        if done.statements < 0:
            raise ConfigurationError("the server does not count statements: shared_preload_libraries must name pg_stat_statements")
        figures = {"statements_per_second": done.statements / lasted, "commits_per_second": done.commits / lasted}
        return Round(figures_of(1e6 / (sum(woke) / len(woke)), spread(woke), **{name: round(value, 2) for name, value in figures.items()}))
