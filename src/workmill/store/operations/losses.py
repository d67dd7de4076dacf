"""Runs whose worker was lost: who is charged, and where each leads. Decided in Python, applied by one statement."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from workmill.domain.outcome import WORKER_LOST
from workmill.domain.retry import loss_delay
from workmill.domain.states import FINAL, State
from workmill.domain.transitions import after_loss, is_charged
from workmill.store.operations import history
from workmill.store.operations.deltas import Deltas
from workmill.store.session import BadData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workmill.store.session import Session

LOST: Final = "the lease of its worker ended"


class Run(NamedTuple):
    """A run to take back: the columns of `lost_runs`."""

    id: str
    lease: int
    worker_id: str
    queue: str
    type: str
    attempt: int
    losses: int
    max_losses: int
    suspect: int
    cancelling: int
    started_at: int


class Loss(NamedTuple):
    """What becomes of it: the columns that `lose_jobs` is given."""

    id: str
    lease: int
    state: State
    losses: int
    run_at: int | None
    finished_at: int | None
    error_class: str | None
    error: str | None


def take_back(session: Session, ids: Sequence[str]) -> int:
    """Take back those of the jobs that still run for a worker that is gone; a step of upkeep."""
    runs = [Run(*row) for row in session.each("lost_runs", [(job_id,) for job_id in ids])]
    holders = {row[0] for row in session.each("suspect_holders", [(worker_id,) for worker_id in {run.worker_id for run in runs}])}
    lost = [decide(run, session.now, random.uniform(-1, 1), held_suspect=run.worker_id in holders) for run in runs]
    session.each("lose_jobs", lost)
    history.record(session, [_entry(run, loss, session.now) for run, loss in zip(runs, lost, strict=True)])
    _count(session, runs, lost)
    return len(lost)


def decide(run: Run, now: int, spread: float, *, held_suspect: bool) -> Loss:
    """Where a lost run leads. `held_suspect`: its worker held a suspect.

    Raises:
        BadData: the row's numbers are none.

    """
    try:
        charged = is_charged(suspect=bool(run.suspect), held_suspect=held_suspect, max_losses=run.max_losses)
        losses = run.losses + charged
        state = after_loss(losses=losses, max_losses=run.max_losses, cancelling=bool(run.cancelling))
        run_at = now + loss_delay(losses, spread) if state is State.RETRYING else None
    except TypeError as error:
        raise BadData(str(error)) from error
    return Loss(run.id, run.lease, state, losses, run_at, now if state in FINAL else None, *_reason(state, losses))


def _reason(state: State, losses: int) -> tuple[str, str] | tuple[None, None]:
    return (WORKER_LOST, f"lost with its worker {losses} times") if state is State.DEAD else (None, None)


def _entry(run: Run, loss: Loss, now: int) -> history.Entry:
    return history.Entry(
        run.id, run.lease, run.attempt, WORKER_LOST, run.worker_id, run.started_at, now, WORKER_LOST, LOST, None, loss.run_at
    )


def _count(session: Session, runs: Sequence[Run], lost: Sequence[Loss]) -> None:
    deltas = Deltas()
    for run, loss in zip(runs, lost, strict=True):
        deltas.move(run.queue, State.RUNNING, loss.state)
        if loss.state is State.DEAD:
            deltas.figures(run.queue, run.type).dead += 1
    deltas.append(session)
    if runs:
        session.announce()
