"""`workmill workers`: who works, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from workmill.cli.screen import Cell, Column, say, say_table
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import say_json, worker_shape
from workmill.cli.wording import ago, now, span
from workmill.domain.errors import Conflict, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from workmill.domain.worker import Worker
    from workmill.store.base import Store

COLUMNS = (
    Column("ID"),
    Column("NAME", least=8, rank=1),
    Column("STATE"),
    Column("QUEUES", least=6),
    Column("RUNNING", right=True),
    Column("SEEN", right=True),
    Column("UP", right=True, rank=2),
    Column("HOST", least=6, rank=3),
    Column("PID", right=True, rank=4),
    Column("VERSION", rank=5),
)


@click.group(short_help="List, drain and resume workers.")
def workers() -> None:
    """Look at the worker processes, and tell them to drain or to go on."""


@workers.command("list", short_help="Show the workers.")
@takes_store()
@click.option("--gone", is_flag=True, help="Also those that are gone but still named by running jobs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_workers(session: Session, gone: bool, as_json: bool) -> None:
    """Show every live worker process: what it serves, how much it runs, when it was last heard of."""
    found = session.store.workers(gone=gone)
    if as_json:
        say_json({"workers": [worker_shape(worker) for worker in found]})
    elif not found:
        say("No worker is running. Start one: workmill worker TARGET")
    else:
        say_table(COLUMNS, [_row(worker, now()) for worker in found])


def _row(worker: Worker, at: datetime) -> tuple[Cell, ...]:
    pools = ",".join(f"{name}={count}" for name, count in worker.queues.items()) or "all"
    return (
        worker.id,
        worker.name,
        str(worker.state),
        pools,
        f"{worker.running}/{worker.concurrency}",
        ago(worker.seen_at, at),
        span((at - worker.joined_at).total_seconds()),
        worker.host,
        str(worker.pid),
        worker.version,
    )


@workers.command(short_help="Tell workers to claim nothing more.")
@takes_store()
@click.argument("worker", nargs=-1, required=True)
def drain(session: Session, worker: tuple[str, ...]) -> None:
    """Tell each WORKER (an id or a name) to claim nothing more, give back what has not started, end what runs, and stay."""
    for found in _named(session.store, worker):
        session.store.drain(found.id, actor=session.actor)
        say(f"{found.name} ({found.id}) drains; {found.running} running")


@workers.command(short_help="Undo drain.")
@takes_store()
@click.argument("worker", nargs=-1, required=True)
def resume(session: Session, worker: tuple[str, ...]) -> None:
    """Tell each drained WORKER (an id or a name) to claim again."""
    for found in _named(session.store, worker):
        session.store.undrain(found.id, actor=session.actor)
        say(f"{found.name} ({found.id}) works again")


def _named(store: Store, names: tuple[str, ...]) -> list[Worker]:
    """The workers meant by ids or names: all of them are known before the first is told."""
    live = store.workers()
    return [_find(live, name) for name in names]


def _find(live: list[Worker], name: str) -> Worker:
    found = [worker for worker in live if name in {worker.id, worker.name}]
    if not found:
        raise NotFound("worker", name)
    if len(found) > 1:
        raise Conflict("ambiguous", f"{len(found)} workers are named {name}: say which by id ({', '.join(worker.id for worker in found)})")
    return found[0]
