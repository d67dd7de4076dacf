"""A real worker while PostgreSQL is away for longer than its lease: it keeps what runs."""

import os
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
