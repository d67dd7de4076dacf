"""Maintained counts and stats: deltas folded into minutes, minutes rolled up to hours, and what a window of them says."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from workmill.domain.histogram import Histogram, quantile
from workmill.domain.limits import SECOND
from workmill.domain.queue import Distribution, QueueStats
from workmill.store.operations.deltas import MINUTE, Figures, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workmill.store.session import Session

HOUR: Final = 60 * MINUTE
MINUTES_KEPT: Final = 2 * HOUR
HOURS_KEPT: Final = 30 * 24 * HOUR

Key = tuple[int, str, str]
"""The start of a period, a queue and a type."""


def anything_to_fold(session: Session) -> bool:
    """Whether `fold` would write."""
    (found,) = session.row("has_deltas", minutes_before=_minutes_before(session), hours_before=session.now - HOURS_KEPT) or (0,)
    return bool(found)


def fold(session: Session, limit: int) -> int:
    """Fold up to `limit` deltas of counts and as many of stats; returns how many."""
    session.rows("lock_upkeep")  # one at a time: figures are read, merged and written back
    counts = session.rows("take_count_deltas", limit=limit)
    totals: Counter[tuple[str, str]] = Counter()
    for queue, state, jobs in counts:
        totals[queue, state] += jobs
    session.each("fold_counts", [(*key, jobs) for key, jobs in totals.items()])
    deltas = session.rows("take_stat_deltas", limit=limit)
    _add(session, 60, deltas)
    _roll_up(session, limit)
    session.run("drop_hours", cutoff=session.now - HOURS_KEPT)
    return len(counts) + len(deltas)


def window(session: Session, seconds: float) -> list[QueueStats]:
    """What each queue did in the last whole minutes of the window and in the current one. Beyond two hours: hours instead of minutes."""
    first = session.now // MINUTE * MINUTE - round(seconds * SECOND)
    rows = session.rows("window_stats", minutes_from=first, hours_from=first // HOUR * HOUR)
    queues: dict[str, Figures] = defaultdict(Figures)
    for queue, *figures in rows:
        _merge(queues[queue], figures)
    span = (session.now - first) / SECOND
    return [_summary(queue, seconds, span, queues[queue]) for queue in sorted(queues)]


def _minutes_before(session: Session) -> int:
    return (session.now - MINUTES_KEPT) // HOUR * HOUR


def _roll_up(session: Session, limit: int) -> None:
    minutes = session.rows("take_minutes", cutoff=_minutes_before(session), limit=limit)
    _add(session, 3600, [(start // HOUR * HOUR, *rest) for start, *rest in minutes])


def _add(session: Session, period: int, rows: Iterable[Sequence[Any]]) -> None:
    """Merge figures into those that are kept for their period, queue and type."""
    added: dict[Key, Figures] = defaultdict(Figures)
    for start, queue, type, *figures in rows:
        _merge(added[start, queue, type], figures)
    for start, queue, type, *figures in session.each("read_stats", [(period, *key) for key in added]):
        _merge(added[start, queue, type], figures)
    session.each("write_stats", [(period, *key, *_columns(figures)) for key, figures in added.items()])


def _merge(total: Figures, figures: Sequence[Any]) -> None:
    succeeded, failed, dead, waited, waited_max, ran, ran_max = figures
    total.succeeded += succeeded
    total.failed += failed
    total.dead += dead
    for histogram, more in ((total.waited, waited), (total.ran, ran)):
        for index, samples in decode(more).items():
            histogram[index] = histogram.get(index, 0) + samples
    total.waited_max = max(total.waited_max, waited_max)
    total.ran_max = max(total.ran_max, ran_max)


def _columns(figures: Figures) -> tuple[Any, ...]:
    waited, ran = encode(figures.waited), encode(figures.ran)
    return (figures.succeeded, figures.failed, figures.dead, waited, figures.waited_max, ran, figures.ran_max)


def _summary(queue: str, seconds: float, span: float, figures: Figures) -> QueueStats:
    ended = figures.succeeded + figures.failed
    return QueueStats(
        queue=queue,
        window_seconds=seconds,
        succeeded=figures.succeeded,
        failed=figures.failed,
        dead=figures.dead,
        per_second=ended / span,
        error_rate=figures.failed / ended if ended else None,
        wait=_distribution(figures.waited, figures.waited_max),
        run=_distribution(figures.ran, figures.ran_max),
    )


def _distribution(histogram: Histogram, maximum: int) -> Distribution:
    p50, p95, p99 = (_seconds(quantile(histogram, fraction, maximum)) for fraction in (0.5, 0.95, 0.99))
    samples = sum(histogram.values())
    return Distribution(count=samples, p50=p50, p95=p95, p99=p99, max=maximum / SECOND if samples else None)


def _seconds(value: int | None) -> float | None:
    return None if value is None else value / SECOND
