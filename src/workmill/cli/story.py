"""The story of one job, for people: its facts, what happened when, its attempts, payload and result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from workmill.cli.screen import STYLES, Cell, Column, fact, say, say_table, width
from workmill.cli.wording import ago, moment, plural, say_stored, span, visible, visible_lines
from workmill.domain.states import FINAL, State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from workmill.domain.job import Attempt, History, Job

SHOWN_CHARACTERS: Final = 4_000
"""So much of a payload or result is shown on a terminal; a pipe gets it whole."""
TIMELINE: Final = (
    Column("TIME", right=True),
    Column("AFTER", right=True),
    Column("FOR", right=True),
    Column("WHAT", least=20, wrapped=True),
)
ATTEMPTS: Final = (
    Column("TRY", right=True),
    Column("LEASE", right=True, rank=3),
    Column("OUTCOME"),
    Column("RAN", right=True),
    Column("WORKER", least=8, rank=2),
    Column("ERROR", least=16, rank=1, wrapped=True),
)
_OUTCOME_STYLES: Final = {"succeeded": "green", "running": "blue", "released": "dim"}
_FAILURES: Final = {"error", "timeout", "worker_lost"}


class Happening(NamedTuple):
    """One line of the timeline. `seconds` is how long it took, None for a moment; `open` says that it still goes on."""

    at: datetime
    seconds: float | None
    what: Text


def tell(job: Job, history: History, at: datetime, *, tracebacks: bool) -> None:
    """Print the story of a job."""
    _facts(job)
    say()
    _timeline(job, history, at)
    if history.attempts:
        say()
        _attempts(history, at)
    _texts(job)
    if tracebacks:
        _tracebacks(history)


def _facts(job: Job) -> None:
    fact("job", job.id)
    fact("state", Text(_state_words(job), STYLES[job.state]))
    fact("type", job.type)
    fact("queue", job.queue + (f", priority {job.priority}" if job.priority else ""))
    fact("attempts", _counters(job))
    for name, value in _rarer_facts(job):
        fact(name, value)


def _state_words(job: Job) -> str:
    words = str(job.state)
    if job.aside:
        words += f", set aside: {job.aside.replace('_', ' ')}"
    if job.cancel_requested_at and job.state not in FINAL:
        words += ", asked to stop"
    return words


def _counters(job: Job) -> str:
    losses = f", {job.losses} of {plural(job.max_losses, 'loss', 'losses')}" if job.losses else ""
    snoozes = f", {plural(job.snoozes, 'snooze')}" if job.snoozes else ""
    return f"{job.attempt} of {job.max_attempts}{losses}{snoozes}"


def _rarer_facts(job: Job) -> Iterator[tuple[str, str]]:
    if job.unique_key is not None:
        yield "key", job.unique_key
    if job.tags:
        yield "tags", ", ".join(job.tags)
    if job.timeout is not None:
        yield "timeout", f"{span(job.timeout)} a run"
    if job.expires_at is not None:
        yield "expires", f"{moment(job.expires_at)} unless it has started"
    if job.traceparent is not None:
        yield "trace", job.traceparent.split("-")[1]
    if job.progress is not None:
        fraction = "" if job.progress.fraction is None else f"{job.progress.fraction:.0%} "
        yield "progress", f"{fraction}{job.progress.message or ''}".strip()
    if job.meta is not None:
        yield "meta", job.meta


def _timeline(job: Job, history: History, at: datetime) -> None:
    rows: list[tuple[Cell, ...]] = []
    date = ""
    for event in happenings(job, history, at):
        before, (date, time) = date, moment(event.at).split(" ")
        after = "" if event.at <= job.created_at else span((event.at - job.created_at).total_seconds())
        rows.append((time if date == before else f"{date} {time}", after, "" if event.seconds is None else span(event.seconds), event.what))
    say_table(TIMELINE, rows)


def happenings(job: Job, history: History, at: datetime) -> Iterator[Happening]:
    """What happened to a job, in order, from the times that it and its attempts have kept."""
    yield Happening(job.created_at, None, Text("submitted"))
    ready = job.created_at
    if history.omitted:
        yield Happening(job.created_at, None, Text(f"({plural(history.omitted, 'older attempt')} left out)", "dim"))
    elif job.run_at > job.created_at and _never_failed(history):
        yield from _wait(ready, job.run_at, ("waited", "waits", "for its time"), at)
        ready = job.run_at
    previous: Attempt | None = None
    for attempt in history.attempts:
        if previous is not None and _was_revived(previous):
            yield Happening(attempt.started_at or ready, None, Text("retried by hand, its counters anew"))
            ready = attempt.started_at or ready
        yield from _run(attempt, ready, at)
        ready = attempt.next_run_at or attempt.ended_at or at
        previous = attempt
    yield from _ending(job, ready, at)


def _never_failed(history: History) -> bool:
    return all(attempt.kind in {"succeeded", "running"} for attempt in history.attempts)


def _was_revived(attempt: Attempt) -> bool:
    return attempt.kind in _FAILURES and attempt.next_run_at is None


def _run(attempt: Attempt, ready: datetime, at: datetime) -> Iterator[Happening]:
    started = attempt.started_at
    if started is None:
        yield Happening(attempt.ended_at or at, None, Text(f"attempt {attempt.number}: {_outcome(attempt)}"))
        return
    if started > ready:
        yield Happening(ready, (started - ready).total_seconds(), Text("waited for a worker", "dim"))
    end = attempt.ended_at or at
    what = Text(f"attempt {attempt.number}: ")
    what.append(_outcome(attempt), _outcome_style(attempt))
    yield Happening(started, (end - started).total_seconds(), what)
    if attempt.ended_at is not None and attempt.next_run_at is not None:
        yield from _wait(attempt.ended_at, attempt.next_run_at, ("backed", "backs", "off"), at)


def _wait(begin: datetime, due: datetime, words: tuple[str, str, str], at: datetime) -> Iterator[Happening]:
    was, still, what = words
    text = f"{was} {what}" if due <= at else f"{still} {what}, due {ago(due, at)}"
    if due > begin:
        yield Happening(begin, (min(due, at) - begin).total_seconds(), Text(text, "dim"))


def _outcome(attempt: Attempt) -> str:
    words = {"error": "failed", "timeout": "timed out", "worker_lost": "lost with its worker", "released": "given back"}
    text = words.get(attempt.kind, attempt.kind)
    detail = ": ".join(filter(None, (attempt.error_class, attempt.message)))
    return f"{text}: {visible(detail)}" if detail else text


def _outcome_style(attempt: Attempt) -> str:
    return _OUTCOME_STYLES.get(attempt.kind, "red")


def _ending(job: Job, ready: datetime, at: datetime) -> Iterator[Happening]:
    if job.finished_at is not None:
        what = Text.assemble(
            (str(job.state), STYLES[job.state]), f" {span((job.finished_at - job.created_at).total_seconds())} after it was submitted"
        )
        yield Happening(job.finished_at, None, what)
    elif job.state is State.QUEUED and ready <= at:
        yield Happening(ready, (at - ready).total_seconds(), Text("waits for a worker", "dim"))


def _attempts(history: History, at: datetime) -> None:
    rows: list[tuple[Cell, ...]] = [
        (
            str(attempt.number),
            str(attempt.lease),
            Text(visible(attempt.kind.replace("_", " ")), _outcome_style(attempt)),
            "" if attempt.started_at is None else span(((attempt.ended_at or at) - attempt.started_at).total_seconds()),
            attempt.worker or attempt.worker_id or "",
            ": ".join(filter(None, (attempt.error_class, attempt.message))),
        )
        for attempt in history.attempts
    ]
    say_table(ATTEMPTS, rows)


def _texts(job: Job) -> None:
    for name, text in (("payload", job.payload), ("result", job.result)):
        if text is not None:
            say()
            say(Text(name, "dim"))
            _say_whole(text)


def _say_whole(text: str) -> None:
    if width() is not None and len(text) > SHOWN_CHARACTERS:
        say_stored(text[:SHOWN_CHARACTERS] + "…")
        say(Text(f"({len(text):,} characters; a pipe and --json get them all)", "dim"))
    else:
        say_stored(text)


def _tracebacks(history: History) -> None:
    for attempt in history.attempts:
        if attempt.traceback:
            say()
            say(Text(f"attempt {attempt.number}, lease {attempt.lease}", "dim"))
            for line in visible_lines(attempt.traceback.rstrip("\n")):
                say(line)
