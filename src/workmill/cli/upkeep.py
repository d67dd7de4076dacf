"""`workmill upkeep`: promote, rescue, expire, bury, prune and fold, and nothing else."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from workmill.cli.exits import DONE
from workmill.cli.session import Session, takes_store
from workmill.cli.worker import LEVELS, log_options
from workmill.config import from_environment
from workmill.dispatch.refill import Refiller
from workmill.loops import FOREVER, Bell, Loop
from workmill.telemetry import Telemetry, log_to
from workmill.upkeep import Keeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STEPS = ("promoted", "rescued", "expired", "buried", "pruned", "folded")


@click.command(short_help="Keep the store in order, and do nothing else.")
@takes_store(made=True)
@click.option("--once", is_flag=True, help="Take turns until there is nothing more to do, and end.")
@log_options
def upkeep(session: Session, *, once: bool, log_level: str, log_format: Any) -> int:
    """Queue what is due, take back what dead workers held, expire, bury and prune, until SIGTERM or Ctrl-C.

    Every worker takes turns at this; a process of its own is for a time without workers.
    """
    telemetry, settings = Telemetry(), from_environment()
    undo = log_to(sys.stderr, telemetry, LEVELS[log_level], log_format)
    keeper = Keeper(session.store, telemetry, retain=settings.retain, retain_dead=settings.retain_dead)
    session.store.migrate()
    try:
        if once:
            _say_turns(keeper)
        else:
            refill = [] if session.heads is None else [Refiller(session.store, session.heads.dispatch, telemetry)]
            _keep([keeper, *refill])
    finally:
        undo()
    return DONE


def _say_turns(keeper: Keeper) -> None:
    done = dict.fromkeys(STEPS, 0)
    while True:
        turn = keeper.take_turn()
        for step in STEPS:
            done[step] += getattr(turn, step)
        if not turn.busy:
            break
    what = ", ".join(f"{count:,} {step}" for step, count in done.items() if count)
    click.echo(what or ("nothing to do" if turn.won else "another process has the turn"))


def _keep(loops: Sequence[Loop]) -> None:
    with _signals() as came:
        for loop in loops:
            loop.start()
        came.wait(FOREVER)
    for loop in loops:
        loop.stop()
    for loop in loops:
        loop.join()


@contextmanager
def _signals() -> Iterator[Bell]:
    """What SIGTERM and SIGINT ring."""
    bell = Bell()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: bell.ring()) for number in numbers}
    try:
        yield bell
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
