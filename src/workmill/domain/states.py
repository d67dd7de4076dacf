"""The ten states of a job."""

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a job is in its life. The value is what every store, API and page shows."""

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SKIPPED = "skipped"


WAITING: Final = frozenset({State.BLOCKED, State.SCHEDULED, State.QUEUED, State.RETRYING})
"""Not running and not ended: a cancel or a deadline ends these at once."""

LIVE: Final = WAITING | {State.RUNNING}
"""Not ended. A unique key is held by a job in one of these."""

FINAL: Final = frozenset(State) - LIVE
"""Ended. Left only by a revival (which raises the lease) or by removal."""

REVIVABLE: Final = frozenset({State.DEAD, State.CANCELLED, State.EXPIRED, State.SKIPPED})
"""Ended without success: may be retried by hand or discarded."""
