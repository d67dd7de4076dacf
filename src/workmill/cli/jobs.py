"""`workmill jobs list` and `show`: look at jobs. What acts on them is in `bulk`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from workmill.cli import bulk
from workmill.cli.screen import Cell, Column, say, say_table, state_text
from workmill.cli.selection import filters, selection
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import job_shape, say_json, whole_job_shape
from workmill.cli.story import tell
from workmill.cli.wording import ago, now, span
from workmill.domain.job import Page
from workmill.domain.states import State

if TYPE_CHECKING:
    from datetime import datetime

    from workmill.domain.job import Job, Selection
    from workmill.store.base import Store

COLUMNS: Final = (
    Column("ID"),
    Column("STATE"),
    Column("WHEN", right=True),
    Column("TYPE", least=8),
    Column("QUEUE", least=6),
    Column("TRY", right=True, rank=1),
    Column("PRIORITY", right=True, rank=3),
    Column("NOTE", least=14, rank=2),
)
PAGE: Final = 200


@click.group(short_help="Look at jobs, and retry, cancel, discard or reschedule them.")
def jobs() -> None:
    """Look at jobs, and retry, cancel, discard or reschedule them: one, several, or all that match a filter."""


jobs.add_command(bulk.retry)
jobs.add_command(bulk.cancel)
jobs.add_command(bulk.discard)
jobs.add_command(bulk.reschedule)


@jobs.command("list", short_help="Show jobs, newest first.")
@takes_store()
@filters
@click.option("--limit", type=click.IntRange(1, 10_000), metavar="N", default=50, help="How many.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier list ended.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: jobs, and the cursor to go on with as next.")
def list_jobs(session: Session, limit: int, cursor: str | None, as_json: bool, **given: Any) -> None:
    """Show the jobs that match all the filters, newest first."""
    page = read_page(session.store, selection(given), limit, cursor)
    if as_json:
        say_json({"jobs": [job_shape(job) for job in page.jobs], "next": page.next})
        return
    if page.jobs:
        say_table(COLUMNS, [_row(job, now()) for job in page.jobs])
    else:
        say("No job matches.")
    if page.next:
        say(f"There are more: add --cursor {page.next}", stderr=True)


def read_page(store: Store, chosen: Selection, limit: int, cursor: str | None = None) -> Page:
    """`limit` jobs, or all there are: a store may answer with few and a cursor when a filter is rare."""
    found: list[Job] = []
    while True:
        page = store.jobs(chosen, limit=min(PAGE, limit - len(found)), cursor=cursor)
        found += page.jobs
        cursor = page.next
        if cursor is None or len(found) >= limit:
            return Page(tuple(found), cursor)


@jobs.command("show", short_help="Tell the whole story of a job.")
@takes_store()
@click.argument("job_id", metavar="ID")
@click.option("--traceback", is_flag=True, help="With the traceback of each failed attempt.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(session: Session, job_id: str, traceback: bool, as_json: bool) -> None:
    """Tell the whole story of a job: what it is, what happened to it when, its attempts, payload and result."""
    job, history = session.store.job(job_id), session.store.history(job_id)
    if as_json:
        say_json(whole_job_shape(job, history))
    else:
        tell(job, history, now(), tracebacks=traceback)


def _row(job: Job, at: datetime) -> tuple[Cell, ...]:
    return (
        job.id,
        state_text(job.state),
        when(job, at),
        job.type,
        job.queue,
        f"{job.attempt}/{job.max_attempts}",
        str(job.priority) if job.priority else "–",
        note(job),
    )


def when(job: Job, at: datetime) -> str:
    """The time that matters in the job's state: how long it runs or waits, when it is due, when it ended."""
    if job.finished_at is not None:
        return ago(job.finished_at, at)
    match job.state:
        case State.RUNNING:
            return f"for {span((at - (job.started_at or job.claimed_at or at)).total_seconds())}"
        case State.SCHEDULED | State.RETRYING:
            return ago(job.run_at, at) if job.run_at > at else "due"
    return f"for {span(max(0.0, (at - job.run_at).total_seconds()))}"


def note(job: Job) -> str:
    """What else is worth a word: set aside, asked to stop, how far it is, what went wrong."""
    if job.aside:
        return f"set aside: {job.aside.replace('_', ' ')}"
    if job.state is State.RUNNING and job.cancel_requested_at:
        return "asked to stop"
    if job.state is State.RUNNING and job.progress:
        fraction = "" if job.progress.fraction is None else f"{job.progress.fraction:.0%} "
        return f"{fraction}{job.progress.message or ''}".strip()
    return f"{job.error.type}: {job.error.message}" if job.error and job.state is not State.SUCCEEDED else ""
