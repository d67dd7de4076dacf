"""The audit: who did what to what, written in the transaction that did it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workmill.clock import to_datetime
from workmill.domain.errors import InvalidInput, shown
from workmill.domain.payload import check_storable
from workmill.domain.queue import AuditEntry
from workmill.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workmill.domain.job import Selection
    from workmill.store.session import Session

ACTOR_CHARACTERS: Final = 200


class Line(NamedTuple):
    """What a line of the audit says. `jobs`: how many were changed."""

    actor: str
    action: str
    target: str
    jobs: int
    detail: Mapping[str, Any]


def check_actor(actor: object) -> None:
    """Whoever acts has a name that can be stored and read."""
    if not isinstance(actor, str) or not 1 <= len(actor) <= ACTOR_CHARACTERS or "\x00" in actor:
        raise InvalidInput("actor", f"must be text of 1 to {ACTOR_CHARACTERS} characters without NUL (got {shown(actor)})")
    check_storable("actor", actor)


def append(session: Session, line: Line) -> None:
    """Write a line; of the detail, what says something is kept as JSON text."""
    detail = json.dumps({name: value for name, value in line.detail.items() if value not in ({}, [])}, ensure_ascii=False)
    session.run("append_audit", id=new_id(), **{**line._asdict(), "detail": detail})


def latest(session: Session, limit: int) -> list[AuditEntry]:
    """The latest lines, newest first."""
    return [
        AuditEntry(id=id, at=to_datetime(at), actor=actor, action=action, target=target, count=jobs, detail=detail)
        for id, at, actor, action, target, jobs, detail in session.rows("read_audit", limit=limit)
    ]


def target_of(selection: Selection) -> str:
    """A selection in words."""
    if selection.ids:
        return f"job {selection.ids[0]}" if len(selection.ids) == 1 else f"{len(selection.ids)} jobs"
    chosen = [(field.name, getattr(selection, field.name)) for field in fields(selection)]
    words = [f"{name}={','.join(value) if isinstance(value, tuple) else value}" for name, value in chosen if value not in (None, ())]
    return "jobs with " + " ".join(words) if words else "every job"
