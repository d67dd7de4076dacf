"""The jobs of the benchmarks. `workmill.bench.handlers:mill` is the target of their workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workmill import Workmill, clock
from workmill.bench import probe

if TYPE_CHECKING:
    from collections.abc import Callable

NOOP: Final = "bench.noop"
NOOP_ASYNC: Final = "bench.noop_async"
NOTE: Final = "bench.note"


def noop(id: int, url: str) -> None:
    """Nothing, with arguments as an ordinary job has them."""


async def noop_async(id: int, url: str) -> None:
    """Nothing, on the event loop."""


def note(group: int, number: int, milliseconds: float = 0) -> None:
    """Tell the benchmark that this job has started, then take some time."""
    probe.note(group, number)
    if milliseconds:
        clock.sleep(milliseconds / 1_000)


def application(url: str | None = None) -> Workmill:
    """These jobs on a store of their own (None: the one that the environment names)."""
    made = Workmill(url)
    jobs: dict[str, Callable[..., object]] = {NOOP: noop, NOOP_ASYNC: noop_async, NOTE: note}
    for name, function in jobs.items():
        made.job(name=name, queue="bench")(function)
    return made


mill = application()
