"""`workmill audit`: who did what."""

from __future__ import annotations

import click

from workmill.cli.screen import Column, say, say_table
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import audit_shape, say_json
from workmill.cli.wording import moment

COLUMNS = (
    Column("WHEN"),
    Column("ACTOR", least=8),
    Column("ACTION"),
    Column("TARGET", least=12),
    Column("JOBS", right=True),
    Column("DETAIL", least=10, rank=1),
)


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
        rows = [
            (moment(line.at), line.actor, line.action, line.target, f"{line.count:,}" if line.count else "–", line.detail)
            for line in entries
        ]
        say_table(COLUMNS, rows)
