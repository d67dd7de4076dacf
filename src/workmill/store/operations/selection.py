"""Finding the jobs that a selection means: by ids, along the index of a state that has few jobs, or newest first under a time limit."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill import clock
from workmill.domain.errors import InvalidInput
from workmill.domain.names import RESERVED, check_name
from workmill.domain.payload import check_storable
from workmill.domain.states import State
from workmill.domain.submission import check_key, check_moment

if TYPE_CHECKING:
    from workmill.domain.job import Selection
    from workmill.store.session import Session

LOOK_SECONDS: Final = 0.2
FEW: Final = 250_000
"""States with no more jobs than this are read along their index; others are frequent enough to be met by going through the newest."""
EVERYWHERE: Final = "everywhere"
FIRST_LOOK: Final = 200
LARGEST_LOOK: Final = 10_000
ABOVE_EVERY_ID: Final = "~"
PATHS: Final = {
    State.QUEUED: "queued",
    State.SCHEDULED: "waiting",
    State.RETRYING: "waiting",
    State.RUNNING: "running",
    State.DEAD: "dead",
    State.CANCELLED: "stopped",
    State.EXPIRED: "stopped",
    State.SKIPPED: "stopped",
}


class Found(NamedTuple):
    """Ids, newest first, and the cursor to go on with, when there may be more."""

    ids: list[str]
    next: str | None


def check_selection(selection: Selection) -> None:
    """Refuse what cannot be a field of a job.

    Raises:
        InvalidInput: names the field and the rule.

    """
    for field in fields(selection):
        value = getattr(selection, field.name)
        if value not in (None, ()):
            CHECKS[field.name](field.name, value)


def find(session: Session, selection: Selection, limit: int, cursor: str | None, seconds: float = LOOK_SECONDS) -> Found:
    """Up to `limit` ids below the cursor. Those given by name need not exist. After `seconds` of looking it returns what it has."""
    before = decode_cursor(cursor)
    if selection.ids:
        return _page(sorted({job_id for job_id in selection.ids if job_id < before}, reverse=True), limit)
    parameters = _parameters(selection, _paths(session, selection))
    found: list[str] = []
    until, look = clock.monotonic() + seconds, FIRST_LOOK
    while True:
        seen = sorted(session.rows("find_jobs", before=before, look=look, **parameters), reverse=True)
        found += [job_id for job_id, matches in seen if matches]
        if len(found) > limit:
            return _page(found, limit)
        if len(seen) < look:
            return Found(found, None)
        before, look = seen[-1][0], min(4 * look, LARGEST_LOOK)
        if clock.monotonic() >= until:
            return Found(found, encode_cursor(before))


def counts(session: Session) -> dict[tuple[str, State], int]:
    """The maintained counts with what is not folded yet, where they are not zero."""
    return {(queue, State(state)): jobs for queue, state, jobs in session.rows("read_counts") if jobs}


def count(session: Session, selection: Selection, limit: int) -> int:
    """How many jobs match, as far as `limit`: from the maintained counts where they tell, otherwise by looking."""
    if selection.ids:
        return min(limit, len(session.each("find_by_id", [(job_id,) for job_id in set(selection.ids)])))
    if any(value for name, value in _filters(selection) if name not in {"queue", "states"}):
        return len(find(session, selection, limit, None, float("inf")).ids)
    return min(limit, sum(jobs for (queue, state), jobs in counts(session).items() if _counted(selection, queue, state)))


def _counted(selection: Selection, queue: str, state: State) -> bool:
    means = not queue.startswith(RESERVED) if selection.queue is None else queue == selection.queue
    return means and (not selection.states or state in selection.states)


def _page(ids: list[str], limit: int) -> Found:
    return Found(ids[:limit], encode_cursor(ids[limit - 1]) if len(ids) > limit else None)


def _paths(session: Session, selection: Selection) -> set[str]:
    """The indexes that together hold all jobs of the states, when they are few; otherwise every job, since its match is then soon met."""
    if not selection.states:
        return {EVERYWHERE}
    held = counts(session)
    present = {state for (_, state) in held if state in selection.states}
    paths = {PATHS.get(state, EVERYWHERE) for state in present}
    queue = selection.queue if paths == {"queued"} else None
    entries = sum(jobs for (name, state), jobs in held.items() if PATHS.get(state) in paths and queue in (None, name))
    by_class = paths == {"dead"} and selection.error_class is not None
    return paths if EVERYWHERE not in paths and (by_class or entries <= FEW) else {EVERYWHERE}


def _filters(selection: Selection) -> list[tuple[str, Any]]:
    return [(field.name, getattr(selection, field.name)) for field in fields(selection) if field.name != "ids"]


def _parameters(selection: Selection, paths: set[str]) -> dict[str, Any]:
    return {
        **dict(_filters(selection)),
        **{path: path in paths for path in (EVERYWHERE, *PATHS.values())},
        "states": json.dumps(selection.states) if selection.states else None,
        "first_queue": selection.queue or "",
        "last_queue": selection.queue or ABOVE_EVERY_ID,
    }


def encode_cursor(job_id: str) -> str:
    """A cursor is the last id that has been looked at, in a shape that invites nobody to build one."""
    return urlsafe_b64encode(job_id.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> str:
    """The inverse of `encode_cursor`; None begins above every id."""
    if cursor is None:
        return ABOVE_EVERY_ID
    try:
        job_id = urlsafe_b64decode(cursor.encode("ascii") + b"==").decode("ascii")
        check_name("cursor", job_id)
    except (ValueError, AttributeError):
        raise InvalidInput("cursor", "must be the `next` of an earlier page") from None
    return job_id


def _check_ids(field: str, value: Any) -> None:
    for job_id in value:
        check_storable(field, job_id)


def _check_states(field: str, value: Any) -> None:
    for state in value:
        if state not in tuple(State):
            raise InvalidInput(field, f"must be of {', '.join(State)} (got {state!r:.120})")


CHECKS: Final[dict[str, Any]] = {
    "ids": _check_ids,
    "states": _check_states,
    "queue": check_name,
    "type": check_name,
    "tag": check_name,
    "unique_key": lambda _, value: check_key(value),
    "error_class": check_storable,
    "worker_id": check_storable,
    "trace_id": check_storable,
    "created_after": check_moment,
    "created_before": check_moment,
}
