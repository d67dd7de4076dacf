"""Queues, their counts and their figures over a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workmill.domain.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue and its counts by state (maintained, exact in one snapshot). `limit` None: no cluster-wide limit."""

    name: str
    paused: bool
    limit: int | None
    counts: Mapping[State, int]
    aside: int
    oldest_waiting: datetime | None
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A distribution of durations in seconds: quantiles within 7 %, the maximum exact; all None without samples."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """What a queue did in a window: runs that ended (`per_second`: on average), how long jobs waited and ran.

    `error_rate` is failed ÷ (failed + succeeded).
    """

    queue: str
    window_seconds: float
    succeeded: int
    failed: int
    dead: int
    per_second: float
    error_rate: float | None
    wait: Distribution
    run: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit: who did what to what, and to how many."""

    id: str
    at: datetime
    actor: str
    action: str
    target: str
    count: int
    detail: str
