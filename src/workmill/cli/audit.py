"""`workmill audit`: who did what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from workmill.cli.screen import Column, say, say_table
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import audit_shape, say_json
from workmill.cli.wording import command_of, moment

if TYPE_CHECKING:
    from workmill.domain.queue import AuditEntry

COLUMNS = (
    Column("WHEN"),
    Column("ACTOR", least=8),
    Column("ACTION"),
    Column("TARGET", least=36, wrapped=True),
    Column("JOBS", right=True, rank=1),
    Column("DETAIL", least=10, rank=2),
)
"""A target is an id, a name, or words, and an id is never cut: it has 36 characters."""


@click.command(short_help="Who did what: the latest lines of the audit.")
@takes_store()
@click.option("--limit", type=click.IntRange(1, 1_000), metavar="N", default=50, help="How many lines.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def audit(session: Session, limit: int, as_json: bool) -> None:
    """Show who did what to which jobs, queues and workers, newest first."""
    entries = session.store.audit(limit=limit)
    if as_json:
        say_json({"audit": [audit_shape(entry) for entry in entries]})
    elif not entries:
        say("Nobody has done anything yet.")
    else:
        say_table(COLUMNS, [_row(entry) for entry in entries])


def _row(entry: AuditEntry) -> tuple[str, ...]:
    when, target = moment(entry.at).partition(".")[0], entry.target.removeprefix("job ")
    return when, entry.actor, command_of(entry.action), target, f"{entry.count:,}" if entry.count else "–", _words(entry.detail)


def _words(detail: str) -> str:
    """`skipped ended=2, ids …`: the detail of an entry without the marks of JSON."""
    found = json.loads(detail)
    return ", ".join(f"{name} {_value(value)}" for name, value in found.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={number}" for name, number in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)
