"""What a transaction changes in the maintained counts and stats: gathered, netted, appended in the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from workmill.domain.histogram import Histogram, merge, tally
from workmill.domain.limits import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workmill.domain.states import State
    from workmill.store.session import Session

MINUTE: Final = 60 * SECOND


class Figures:
    """What happened in one minute to one type in one queue. Histograms are kept as JSON objects of bucket to count."""

    __slots__ = ("dead", "failed", "ran", "ran_max", "succeeded", "waited", "waited_max")

    def __init__(self) -> None:
        self.succeeded = self.failed = self.dead = 0
        self.waited: Histogram = {}
        self.ran: Histogram = {}
        self.waited_max = self.ran_max = 0

    def time(self, waited: Sequence[int], ran: Sequence[int]) -> None:
        """Runs that ended: how long each job was due before its start, and how long it ran (microseconds)."""
        self.waited, self.waited_max = merge([self.waited, tally(waited)]), max(self.waited_max, *waited)
        self.ran, self.ran_max = merge([self.ran, tally(ran)]), max(self.ran_max, *ran)


class Deltas:
    """The changes of one transaction; `append` writes them, once, at its end."""

    __slots__ = ("_counts", "_figures")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._figures: dict[tuple[str, str], Figures] = {}

    def move(self, queue: str, source: State | None, target: State | None, jobs: int = 1) -> None:
        """So many jobs of a queue went from one state to another (None: they are new, or removed)."""
        counts = self._counts
        if source is not None:
            counts[queue, source] = counts.get((queue, source), 0) - jobs
        if target is not None:
            counts[queue, target] = counts.get((queue, target), 0) + jobs

    def figures(self, queue: str, type: str) -> Figures:
        """The figures of a type in a queue, to add to."""
        found = self._figures.get((queue, type))
        if found is None:
            found = self._figures[queue, type] = Figures()
        return found

    def append(self, session: Session) -> None:
        """Write what has gathered; what cancels out is not written."""
        session.each("append_counts", [(*key, jobs) for key, jobs in self._counts.items() if jobs])
        if self._figures:
            session.each("append_stats", list(self._stat_rows(session.now // MINUTE * MINUTE)))

    def _stat_rows(self, start: int) -> Iterable[tuple[int | str, ...]]:
        for (queue, type), each in self._figures.items():
            wait, run = encode(each.waited), encode(each.ran)
            yield (start, queue, type, each.succeeded, each.failed, each.dead, wait, each.waited_max, run, each.ran_max)


def encode(histogram: Histogram) -> str:
    """The text a store keeps."""
    return msgspec.json.encode(histogram).decode()


def decode(text: str) -> Histogram:
    """The inverse of `encode`."""
    return msgspec.json.decode(text, type=Histogram)
