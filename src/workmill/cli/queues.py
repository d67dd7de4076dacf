"""`workmill queues`: what waits where, pauses and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from workmill.cli.parameters import QUEUE, Duration
from workmill.cli.screen import Cell, Column, say, say_table
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import queue_shape, say_json
from workmill.cli.wording import now, rate, span
from workmill.domain.states import State

if TYPE_CHECKING:
    from datetime import datetime

    from workmill.domain.queue import Queue, QueueStats

COLUMNS = (
    Column("QUEUE", least=8),
    Column("QUEUED", right=True),
    Column("LATER", right=True),
    Column("RUNNING", right=True),
    Column("DEAD", right=True),
    Column("OLDEST", right=True),
    Column("WORKERS", right=True, rank=1),
    Column("DONE/S", right=True, rank=3),
    Column("FAILED", right=True, rank=4),
    Column("WAIT P95", right=True, rank=5),
    Column("RUN P95", right=True, rank=6),
    Column("NOTE", least=17, rank=2, wrapped=True),
)
LATER = (State.SCHEDULED, State.RETRYING, State.BLOCKED)


@click.group(short_help="List, pause, resume and limit queues.")
def queues() -> None:
    """Look at the queues, pause and resume them, and limit how many of their jobs run at once."""


@queues.command("list", short_help="Show the queues, their counts and figures.")
@takes_store()
@click.option("--window", type=Duration(60, 86_400), default="5m", help="The time that throughput, failures, p95 are taken over.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_queues(session: Session, window: float, as_json: bool) -> None:
    """Show every queue: how much waits, runs and is dead, how old the oldest waiting job is, and how fast it moves."""
    found = session.store.queues()
    stats = {figures.queue: figures for figures in session.store.stats(window)}
    if as_json:
        say_json({"queues": [queue_shape(queue, stats.get(queue.name)) for queue in found]})
    elif not found:
        say("There are no queues yet: one appears with its first job.")
    else:
        say_table(COLUMNS, [_row(queue, stats.get(queue.name), now()) for queue in found])


def _row(queue: Queue, stats: QueueStats | None, at: datetime) -> tuple[Cell, ...]:
    dead = queue.counts.get(State.DEAD, 0)
    return (
        queue.name,
        _count(queue.counts.get(State.QUEUED, 0)),
        _count(sum(queue.counts.get(state, 0) for state in LATER)),
        _count(queue.counts.get(State.RUNNING, 0)),
        Text(_count(dead), "red" if dead else ""),
        "–" if queue.oldest_waiting is None else span((at - queue.oldest_waiting).total_seconds()),
        _count(queue.workers),
        "–" if stats is None else rate(stats.per_second),
        "–" if stats is None or stats.error_rate is None else f"{stats.error_rate:.1%}",
        _p95(None if stats is None else stats.wait.p95),
        _p95(None if stats is None else stats.run.p95),
        _note(queue),
    )


def _count(number: int) -> str:
    return f"{number:,}" if number else "–"


def _p95(seconds: float | None) -> str:
    return "–" if seconds is None else span(seconds)


def _note(queue: Queue) -> Text:
    notes = [("paused", "yellow")] if queue.paused else []
    notes += [(f"at most {queue.limit} at once", "")] if queue.limit is not None else []
    notes += [(f"{queue.aside:,} set aside", "yellow")] if queue.aside else []
    return Text(", ").join(Text(text, style) for text, style in notes)


@queues.command(short_help="Let no more jobs of queues be claimed.")
@takes_store(made=True)
@click.argument("queue", nargs=-1, required=True, type=QUEUE)
def pause(session: Session, queue: tuple[str, ...]) -> None:
    """Pause each QUEUE: no claim that begins from now on takes from it. What runs goes on; submissions are still taken."""
    for name in queue:
        session.store.pause(name, actor=session.actor)
        say(f"{name} is paused")


@queues.command(short_help="Undo pause.")
@takes_store(made=True)
@click.argument("queue", nargs=-1, required=True, type=QUEUE)
def resume(session: Session, queue: tuple[str, ...]) -> None:
    """Let the jobs of each QUEUE be claimed again."""
    for name in queue:
        session.store.resume(name, actor=session.actor)
        say(f"{name} goes on")


class Limit(click.ParamType[int]):
    """A whole number from 1 up, or `none` as -1."""

    name = "n|none"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`4` as 4, `none` as -1."""
        if value in {"none", -1}:
            return -1
        if not str(value).isdecimal() or not 1 <= int(str(value)[:9]) <= 1_000_000:
            self.fail(f"must be a whole number from 1 to 1000000, or none (got {value!r:.120})", param, ctx)
        return int(value)


@queues.command(short_help="Limit how many jobs of a queue run at once.")
@takes_store(made=True)
@click.argument("queue", type=QUEUE)
@click.argument("limit", type=Limit(), metavar="N|none")
def limit(session: Session, queue: str, limit: int) -> None:
    """Let at most N jobs of QUEUE run at once, across all workers; `none` takes the limit away."""
    wanted = None if limit < 0 else limit
    session.store.limit(queue, wanted, actor=session.actor)
    say(f"{queue}: " + ("no limit" if wanted is None else f"at most {wanted} at once, across all workers"))
