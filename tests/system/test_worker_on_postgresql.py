"""A real worker while PostgreSQL goes away, comes back, or stays away: it keeps what runs, goes on at once, and ends when it is told."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.errors import StoreError
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job
from workmill.testing.servers import PostgresServer

PATIENCE = 60.0
NUMBERS = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A durable server of this module's own, to be broken."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def schema() -> str:
    return f"system_{next(NUMBERS)}"


@pytest.fixture
def store(server: PostgresServer, schema: str) -> Iterator[Store]:
    with closing(open_store(server.url, schema=schema)) as store:
        store.migrate()
        yield store


@pytest.fixture
def start(server: PostgresServer, schema: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `workmill worker`; its log goes to a file."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*options: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "WORKMILL_STORE": server.url, "WORKMILL_SCHEMA": schema}
        with (tmp_path / "log").open("ab") as log:
            command = [sys.executable, "-m", "workmill", "worker", "--lease", "3", *options]
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def until(condition: Callable[[], Any]) -> Any:
    """Wait until it holds, and return what it returned; a bound, not a measure. An error of the store is a no."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(StoreError):
            if found := condition():
                return found
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)


def states(store: Store) -> dict[State, int]:
    found: dict[State, int] = {}
    for (_, state), jobs in store.counts().items():
        found[state] = found.get(state, 0) + jobs
    return found


def test_immediate_restarts_under_load_lose_no_job_and_charge_none(
    server: PostgresServer, store: Store, start: Callable[..., subprocess.Popen[bytes]], rounds: Callable[..., int]
) -> None:
    start("-c", "4")
    until(store.workers)
    jobs = 0
    for _ in range(rounds(3, soak=20)):
        store.submit([a_job("sleep", '{"ms": 20}') for _ in range(200)])
        jobs += 200
        time.sleep(0.2)
        server.restart(signal.SIGQUIT)

    until(lambda: states(store) == {State.SUCCEEDED: jobs})

    assert {job.losses for job in store.jobs(Selection(), limit=1_000).jobs} == {0}
    until(lambda: not store.fold())
    assert store.invariants() == []


def test_jobs_that_run_while_the_server_is_away_for_three_leases_are_not_lost(
    server: PostgresServer, store: Store, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    start("-c", "2")
    until(store.workers)
    (receipt,) = store.submit([a_job("sleep", '{"ms": 4000}')])
    until(lambda: store.job(receipt.id).state is State.RUNNING)

    server.stop()
    time.sleep(9)
    server.start()

    until(lambda: store.job(receipt.id).state is State.SUCCEEDED)
    assert (store.job(receipt.id).losses, store.job(receipt.id).attempt) == (0, 1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGSTOP], ids=["the server is stopped", "the server hangs"])
def test_a_worker_that_is_told_to_end_while_the_server_is_away_ends_within_its_grace_and_five_seconds(
    server: PostgresServer, store: Store, start: Callable[..., subprocess.Popen[bytes]], how: signal.Signals, tmp_path: Path
) -> None:
    process = start("-c", "2", "--grace", "2")
    until(store.workers)
    (receipt,) = store.submit([a_job("sleep", '{"ms": 500}')])
    until(lambda: store.job(receipt.id).state is State.RUNNING)

    stopped = freeze(server) if how is signal.SIGSTOP else server.stop()
    try:
        process.send_signal(signal.SIGTERM)
        code = process.wait(2 + 5)
    finally:
        thaw(stopped) if stopped else server.start()

    assert code in {3, 4}
    assert not re.search("Traceback", (tmp_path / "log").read_text())


def freeze(server: PostgresServer) -> list[int]:
    """Stop the server's processes without a word to anybody; returns them."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.pid)], check=True, capture_output=True, text=True).stdout.split()
    pids = [server.pid, *map(int, listed)]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return pids


def thaw(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
