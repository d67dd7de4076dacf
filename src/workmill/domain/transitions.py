"""The one table that decides states. Nothing else does; every statement that writes a state is tested against it."""

from enum import StrEnum
from typing import Final

from workmill.domain.errors import IllegalTransition
from workmill.domain.states import State


class Event(StrEnum):
    """What can happen to a job."""

    SUBMIT = "submit"
    UNBLOCK = "unblock"
    PROMOTE = "promote"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    RELEASE = "release"
    LOSE = "lose"
    CANCEL = "cancel"
    EXPIRE = "expire"
    SKIP = "skip"
    BURY = "bury"
    RESCHEDULE = "reschedule"
    REVIVE = "revive"
    DISCARD = "discard"


REMOVED: Final = None
"""The target of a discard: the row is gone and the audit has a line."""

TRANSITIONS: Final[dict[tuple[State | None, Event], tuple[State | None, ...]]] = {
    (None, Event.SUBMIT): (State.BLOCKED, State.SCHEDULED, State.QUEUED),
    (State.BLOCKED, Event.UNBLOCK): (State.QUEUED, State.SCHEDULED),
    (State.SCHEDULED, Event.PROMOTE): (State.QUEUED,),
    (State.RETRYING, Event.PROMOTE): (State.QUEUED,),
    (State.QUEUED, Event.CLAIM): (State.RUNNING,),
    (State.RUNNING, Event.SUCCEED): (State.SUCCEEDED,),
    (State.RUNNING, Event.FAIL): (State.RETRYING, State.QUEUED, State.DEAD, State.CANCELLED),
    (State.RUNNING, Event.RELEASE): (State.QUEUED, State.SCHEDULED, State.CANCELLED),
    (State.RUNNING, Event.LOSE): (State.RETRYING, State.DEAD, State.CANCELLED),
    (State.BLOCKED, Event.CANCEL): (State.CANCELLED,),
    (State.SCHEDULED, Event.CANCEL): (State.CANCELLED,),
    (State.QUEUED, Event.CANCEL): (State.CANCELLED,),
    (State.RETRYING, Event.CANCEL): (State.CANCELLED,),
    (State.BLOCKED, Event.EXPIRE): (State.EXPIRED,),
    (State.SCHEDULED, Event.EXPIRE): (State.EXPIRED,),
    (State.QUEUED, Event.EXPIRE): (State.EXPIRED,),
    (State.RETRYING, Event.EXPIRE): (State.EXPIRED,),
    (State.BLOCKED, Event.SKIP): (State.SKIPPED,),
    (State.QUEUED, Event.BURY): (State.DEAD,),
    (State.SCHEDULED, Event.BURY): (State.DEAD,),
    (State.RETRYING, Event.BURY): (State.DEAD,),
    (State.RUNNING, Event.BURY): (State.DEAD,),
    (State.SCHEDULED, Event.RESCHEDULE): (State.SCHEDULED, State.QUEUED),
    (State.RETRYING, Event.RESCHEDULE): (State.SCHEDULED, State.QUEUED),
    (State.QUEUED, Event.RESCHEDULE): (State.SCHEDULED, State.QUEUED),
    (State.DEAD, Event.REVIVE): (State.QUEUED, State.BLOCKED),
    (State.CANCELLED, Event.REVIVE): (State.QUEUED, State.BLOCKED),
    (State.EXPIRED, Event.REVIVE): (State.QUEUED, State.BLOCKED),
    (State.SKIPPED, Event.REVIVE): (State.QUEUED, State.BLOCKED),
    (State.DEAD, Event.DISCARD): (REMOVED,),
    (State.CANCELLED, Event.DISCARD): (REMOVED,),
    (State.EXPIRED, Event.DISCARD): (REMOVED,),
    (State.SKIPPED, Event.DISCARD): (REMOVED,),
}


def sources(event: Event) -> frozenset[State]:
    """The states in which `event` can happen (for a submission: none, there is no job yet)."""
    return frozenset(state for state, happening in TRANSITIONS if happening is event and state is not None)


def targets(state: State | None, event: Event) -> tuple[State | None, ...]:
    """The states to which `event` may lead from `state`.

    Raises:
        IllegalTransition: the table has no such entry.

    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None


def ready_state(*, due: bool, event: Event) -> State:
    """Queued when the job is due, otherwise the state in which `event` lets it wait for its time."""
    if due:
        return State.QUEUED
    return State.RETRYING if event is Event.FAIL else State.SCHEDULED


def after_failure(*, attempt: int, max_attempts: int, final: bool, cancelling: bool, delay: int) -> State:
    """Where a failed run leads: a requested cancel wins, then the attempts, then the delay (microseconds)."""
    if cancelling:
        return State.CANCELLED
    if final or attempt >= max_attempts:
        return State.DEAD
    return ready_state(due=delay == 0, event=Event.FAIL)


def after_release(*, cancelling: bool, delay: int) -> State:
    """Where a run that was given back leads; no attempt is charged."""
    return State.CANCELLED if cancelling else ready_state(due=delay == 0, event=Event.RELEASE)


def after_loss(*, losses: int, max_losses: int, cancelling: bool) -> State:
    """Where a run leads whose worker's lease ended; `losses` includes this one when it was charged."""
    if cancelling:
        return State.CANCELLED
    return State.DEAD if losses >= max_losses else State.RETRYING


def is_charged(*, suspect: bool, held_suspect: bool, max_losses: int) -> bool:
    """Whether the loss of its worker counts against a job.

    It does for the suspect that the worker held or, when it held none, for all; and always for a job that must not run again after a crash.
    """
    return suspect or not held_suspect or max_losses == 1
