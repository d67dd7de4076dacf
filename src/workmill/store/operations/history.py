"""The history of a job: one row for each run that did not succeed, at most 1,000 a job; `omitted` counts the older ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workmill.domain.limits import HISTORY_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.domain.outcome import AttemptKind
    from workmill.store.session import Session


class Entry(NamedTuple):
    """One run that did not succeed: the columns that `record_attempts` is given."""

    job_id: str
    lease: int
    number: int
    kind: AttemptKind
    worker_id: str | None
    started_at: int | None
    ended_at: int
    error_class: str | None
    message: str | None
    traceback: str | None
    next_run_at: int | None


def record(session: Session, entries: Sequence[Entry]) -> None:
    """Add entries to the histories of their jobs, and drop what is beyond the limit."""
    session.each("record_attempts", entries)
    for entry in entries:
        if entry.lease > HISTORY_ROWS:  # each entry has a lease of its own, so fewer leases are fewer entries
            dropped = session.run("trim_attempts", id=entry.job_id, keep=HISTORY_ROWS)
            if dropped:
                session.run("omit_attempts", id=entry.job_id, lease=entry.lease, dropped=dropped)
