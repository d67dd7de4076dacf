"""`workmill jobs retry|cancel|discard|reschedule`: the operators' verbs, for ids or for all that match a filter, batch by batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from workmill import clock
from workmill.cli.exits import DONE, FAILED, WORK_LEFT
from workmill.cli.parameters import DURATION, MOMENT
from workmill.cli.progress import bar
from workmill.cli.screen import interactive, say
from workmill.cli.selection import FILTERS, filters, is_given, selection
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import bulk_shape, say_json
from workmill.cli.wording import plural, visible
from workmill.domain.errors import NotFound
from workmill.domain.job import Bulk, Selection
from workmill.domain.limits import microseconds
from workmill.domain.states import LIVE, State

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from workmill.store.base import Store

BATCH: Final = 1_000
REASONS: Final = {
    "ended": "already ended",
    "not_revivable": "live or succeeded, so there is nothing to retry",
    "not_discardable": "live or succeeded, so they are kept",
    "not_waiting": "not waiting",
    "key_taken": "their unique key is taken",
    "not_found": "unknown",
    "cancel_requested": "asked to stop before",
}


class Verb(NamedTuple):
    """An action: its name, what it has done to a job, and the states it looks at when filters name none."""

    name: str
    past: str
    states: tuple[State, ...]


class Request(NamedTuple):
    """What the command line asks for."""

    verb: Verb
    apply: Callable[..., Bulk]
    filters: dict[str, Any]
    ids: tuple[str, ...]
    everything: bool
    dry_run: bool
    yes: bool
    as_json: bool


ASKED: Final = ("ids", "everything", "dry_run", "yes", "as_json")
RETRY: Final = Verb("retry", "queued again", (State.DEAD,))
CANCEL: Final = Verb("cancel", "cancelled", tuple(state for state in State if state in LIVE))
DISCARD: Final = Verb("discard", "discarded", (State.DEAD,))
RESCHEDULE: Final = Verb("reschedule", "rescheduled", (State.SCHEDULED, State.RETRYING, State.QUEUED))


def takes_jobs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ids or filters, and the options of everything that acts on many jobs."""
    options = (
        click.argument("ids", metavar="[ID]...", nargs=-1),
        filters,
        click.option("--all", "everything", is_flag=True, help="All jobs, when no filter is given."),
        click.option("--dry-run", is_flag=True, help="Only say how many jobs there are."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--json", "as_json", is_flag=True, help="One JSON object: done, and skipped by reason."),
    )
    for option in reversed(options):
        command = option(command)
    return takes_store()(command)


@click.command(short_help="Queue ended jobs again.")
@takes_jobs
def retry(session: Session, **given: Any) -> int:
    """Queue dead, cancelled, expired or skipped jobs again, their counters anew, their history kept.

    By filter only dead ones, unless --state names others.
    """
    return _run(session, RETRY, session.store.revive, given)


@click.command(short_help="Cancel waiting jobs, ask running ones to stop.")
@takes_jobs
def cancel(session: Session, **given: Any) -> int:
    """Cancel waiting jobs at once, and ask running ones to stop."""
    return _run(session, CANCEL, session.store.cancel, given)


@click.command(short_help="Remove ended jobs for good.")
@takes_jobs
def discard(session: Session, **given: Any) -> int:
    """Remove dead, cancelled, expired or skipped jobs for good; the audit keeps a line.

    By filter only dead ones, unless --state names others.
    """
    return _run(session, DISCARD, session.store.discard, given)


@click.command(short_help="Move waiting jobs to another time.")
@takes_jobs
@click.option("--at", type=MOMENT, help="Due at this time.")
@click.option("--in", "delay", type=DURATION, help="Due after this duration.")
def reschedule(session: Session, *, at: datetime | None, delay: float | None, **given: Any) -> int:
    """Move scheduled, retrying and queued jobs to another time; without --at and --in, to now."""
    if at is not None and delay is not None:
        raise click.UsageError("--at and --in cannot be used together", click.get_current_context())
    run_at = None if at is None else clock.from_datetime(at)
    if delay is not None:
        run_at = clock.wall() + microseconds(delay)
    return _run(session, RESCHEDULE, partial(session.store.reschedule, run_at=run_at), given)


def _run(session: Session, verb: Verb, action: Callable[..., Bulk], given: dict[str, Any]) -> int:
    request = Request(verb, partial(action, actor=session.actor), given, **{name: given.pop(name) for name in ASKED})
    store, chosen = session.store, _chosen(request)
    if request.dry_run:
        return _show_dry_run(store, request, chosen)
    total = len(chosen.ids) or store.count(chosen)
    if not chosen.ids and not _confirmed(request, total):
        raise click.Abort
    bulk, complete = _apply(request, chosen, total)
    return _report(store, request, bulk, complete=complete)


def _chosen(request: Request) -> Selection:
    """The jobs that are meant, in the states that the verb is for when no filter names others."""
    filtered = any(is_given(request.filters[name]) for name in FILTERS)
    context = click.get_current_context()
    if request.ids and (filtered or request.everything):
        raise click.UsageError("ids, filters and --all cannot be used together", context)
    if request.ids:
        return Selection(ids=tuple(dict.fromkeys(request.ids)))
    if not filtered and not request.everything:
        raise click.UsageError("say which jobs: ids, a filter, or --all", context)
    chosen = selection(request.filters)
    return chosen if chosen.states else replace(chosen, states=request.verb.states)


def _show_dry_run(store: Store, request: Request, chosen: Selection) -> int:
    count = store.count(chosen)
    if request.as_json:
        say_json({**bulk_shape(request.verb.name, Bulk(0), dry_run=True), "matching": count})
    else:
        say(f"{plural(count, 'job')} would be looked at; nothing was changed")
    return DONE


def _confirmed(request: Request, total: int) -> bool:
    if request.yes or not total:
        return True
    if not interactive():
        raise click.UsageError(f"{plural(total, 'job')} would be touched and nobody can be asked: add --yes", click.get_current_context())
    return click.confirm(f"{request.verb.name} {plural(total, 'job')}?", err=True)


def _apply(request: Request, chosen: Selection, total: int) -> tuple[Bulk, bool]:
    """Act on batch after batch, newest first, so that what comes in meanwhile is not touched; whether Ctrl-C did not end it early."""
    done, skipped, cursor = 0, Counter[str](), None
    with bar(f"{request.verb.name} jobs", total) as advance:
        try:
            while True:
                bulk = request.apply(chosen, limit=BATCH, cursor=cursor)
                done += bulk.done
                skipped.update(bulk.skipped)
                advance(bulk.done + sum(bulk.skipped.values()))
                cursor = bulk.next
                if cursor is None:
                    return Bulk(done, dict(skipped)), True
        except KeyboardInterrupt:
            return Bulk(done, dict(skipped)), False


def _report(store: Store, request: Request, bulk: Bulk, *, complete: bool) -> int:
    failed = bool(request.ids and bulk.skipped)
    if request.as_json:
        say_json(bulk_shape(request.verb.name, bulk))
    elif len(request.ids) == 1:
        failed = not _say_one(store, request, bulk)
    else:
        say(f"{plural(bulk.done, 'job')} {request.verb.past}{_skips(bulk)}")
    if not complete:
        say("interrupted: there may be more", stderr=True)
        return WORK_LEFT
    return FAILED if failed else DONE


def _say_one(store: Store, request: Request, bulk: Bulk) -> bool:
    """Say what became of the one job that was named, or on stderr why nothing did."""
    job_id = request.ids[0]
    if bulk.done:
        say(f"{visible(job_id)} {_became(store, request, job_id)}")
    else:
        say(f"{visible(job_id)}: {', '.join(REASONS.get(reason, reason) for reason in bulk.skipped) or 'unknown'}", stderr=True)
    return bool(bulk.done)


def _became(store: Store, request: Request, job_id: str) -> str:
    if request.verb is not CANCEL:
        return request.verb.past
    try:
        return "cancelled" if store.job(job_id).state is State.CANCELLED else "is running and asked to stop"
    except NotFound:
        return request.verb.past


def _skips(bulk: Bulk) -> str:
    return "".join(f"; {count:,} left: {REASONS.get(reason, reason)}" for reason, count in sorted(bulk.skipped.items()))
