"""Upkeep by several processes on one file, and by nobody who has anything to do."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from workmill.domain.states import State
from workmill.store.base import Store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim, join, submit_many
from workmill.testing.steps import ACTOR, a_dead_job, a_succeeded_job, settle

PROGRAM = """
import json, sys
from workmill.store.open import open_store

store = open_store(sys.argv[1], lambda: int(sys.argv[2]))
sys.stdin.readline()
done = {step: 0 for step in ("rescue", "promote", "expire", "prune", "fold")}
for _ in range(int(sys.argv[3])):
    for step in done:
        done[step] += store.prune(10**6, None, limit=20) if step == "prune" else getattr(store, step)(20)
store.close()
print(json.dumps(done))
"""


def test_two_upkeep_processes_do_nothing_twice_after_a_step_of_the_clock(
    file_store: Store, path: Path, clock: MovableClock, plant: Callable[..., str], rounds: Callable[..., int]
) -> None:
    many = rounds(100, soak=2_000)
    for number in range(many):
        plant(State.RUNNING, queue="lost", worker_id=f"vanished-{number % 7}")
        plant(State.SCHEDULED, queue="due")
        plant(State.QUEUED, queue="late", expires_at=clock())
        plant(State.SUCCEEDED, queue="old", finished_at=0)
    turns = str(many // 5)
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, f"sqlite:///{path}", str(clock() + step), turns], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for step in (0, 3_600_000_000)
    ]

    for program in programs:
        assert program.stdin is not None
        program.stdin.write(b"go\n")
        program.stdin.flush()
    done = [json.loads(program.communicate(timeout=120)[0]) for program in programs]

    total = {step: sum(each[step] for each in done) for step in ("rescue", "promote", "expire", "prune")}
    assert total == {"rescue": many, "promote": 2 * many, "expire": many, "prune": many}
    assert file_store.counts() == {("lost", State.QUEUED): many, ("due", State.QUEUED): many, ("late", State.EXPIRED): many}
    settle(file_store)


def test_an_idle_turn_writes_nothing_but_the_turn(file_store: Store, sql: sqlite3.Connection, clock: MovableClock) -> None:
    a_succeeded_job(file_store)
    a_dead_job(file_store)
    submit_many(file_store, 3, delay=1_000)
    submit_many(file_store, 3)
    claim(file_store, join(file_store), 2)
    file_store.pause("default", actor=ACTOR)
    settle(file_store)
    version = sql.execute("PRAGMA data_version").fetchone()

    done = [
        file_store.promote(),
        file_store.rescue(),
        file_store.expire(),
        file_store.bury(),
        file_store.prune(1_000, None),
        file_store.fold(),
    ]

    assert done == [0] * 6
    assert sql.execute("PRAGMA data_version").fetchone() == version
