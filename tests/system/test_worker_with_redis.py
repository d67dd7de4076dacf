"""Real workers whose jobs are handed out by Redis, while it is flushed, restarted, killed, hangs, or comes back with old news."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis, RedisError

from workmill.client import Workmill
from workmill.dispatch.open import open_heads
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job, join
from workmill.testing.servers import PostgresServer, RedisServer
from workmill.testing.steps import ACTOR

PATIENCE = 60.0
NUMBERS = count(1)
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(params=[False, True], ids=["keeps nothing", "saves"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A Redis of the test's own, to be broken; one keeps a snapshot when it is told to stop."""
    server = RedisServer(saves=request.param)
    yield server
    server.remove()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture
def schema() -> str:
    return f"dispatched_{next(NUMBERS)}"


@pytest.fixture
def open_beside(postgres: PostgresServer, schema: str) -> Iterator[Callable[[RedisServer | None], Store]]:
    """Another way into the test's store, with the dispatcher on that server."""
    opened: list[Store] = []

    def begin(server: RedisServer | None) -> Store:
        opened.append(open_store(postgres.url, schema=schema, heads=open_heads(server.url) if server else None))
        opened[-1].migrate()
        return opened[-1]

    yield begin
    for store in opened:
        store.close()


@pytest.fixture
def start(postgres: PostgresServer, schema: str, tmp_path: Path) -> Iterator[Start]:
    """Start `workmill worker` with a dispatcher on that server; its log goes to a file."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(server: RedisServer, *options: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "WORKMILL_STORE": postgres.url, "WORKMILL_SCHEMA": schema, "WORKMILL_DISPATCH": server.url}
        with (tmp_path / "log").open("ab") as log:
            command = [sys.executable, "-m", "workmill", "worker", "--lease", "3", *options]
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def until(condition: Callable[[], Any]) -> Any:
    """Wait until it holds, and return what it returned; a bound, not a measure."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)
    return found


def states(store: Store) -> dict[State, int]:
    found: dict[State, int] = {}
    for (_, state), jobs in store.counts().items():
        found[state] = found.get(state, 0) + jobs
    return found


def assert_each_ran_once(store: Store, jobs: int) -> None:
    until(lambda: states(store) == {State.SUCCEEDED: jobs})
    page = store.jobs(Selection(), limit=1_000)
    assert {(job.attempt, job.losses, job.lease) for job in page.jobs} == {(1, 0, 1)}
    until(lambda: not store.fold())
    assert store.invariants() == []


def run_one(store: Store) -> None:
    (receipt,) = store.submit([a_job("noop")])
    until(lambda: store.job(receipt.id).state is State.SUCCEEDED)


def noop() -> None: ...


def flush(server: RedisServer) -> None:
    with Redis.from_url(server.url) as redis:
        redis.flushall()


def restart(server: RedisServer) -> None:
    server.stop()
    server.start()


def kill(server: RedisServer) -> None:
    server.kill()
    time.sleep(0.3)
    server.start()


def test_redis_that_is_flushed_restarted_and_killed_under_load_loses_no_job_and_runs_none_twice(
    server: RedisServer, open_beside: Callable[..., Store], start: Start, rng: random.Random, rounds: Callable[..., int], tmp_path: Path
) -> None:
    store = open_beside(server)
    for _ in range(2):
        start(server, "-c", "4")
    until(lambda: len(store.workers()) == 2)
    jobs = 0
    for _ in range(rounds(4, soak=40)):
        store.submit([a_job("sleep", '{"ms": 10}', queue=rng.choice(("mail", "video"))) for _ in range(200)])
        jobs += 200
        time.sleep(rng.uniform(0, 0.2))
        rng.choice((flush, restart, kill))(server)

    assert_each_ran_once(store, jobs)
    assert "in the way of another" not in (tmp_path / "log").read_text()


def test_while_redis_is_away_for_good_jobs_are_started(open_beside: Callable[..., Store], start: Start, own_redis: RedisServer) -> None:
    store = open_beside(own_redis)
    start(own_redis)
    until(store.workers)
    own_redis.kill()

    for _ in range(5):
        run_one(store)


def test_a_redis_that_hangs_holds_nobody_up(open_beside: Callable[..., Store], start: Start, own_redis: RedisServer) -> None:
    store = open_beside(own_redis)
    worker = start(own_redis, "--grace", "2")
    until(store.workers)
    with Redis.from_url(own_redis.url) as redis:
        pid = int(redis.info("server")["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            run_one(store)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(2 + 5) == 0
    finally:
        os.kill(pid, signal.SIGCONT)


def test_ids_that_a_killed_worker_had_taken_come_back(
    open_beside: Callable[..., Store], start: Start, own_redis: RedisServer, rounds: Callable[..., int]
) -> None:
    """Killed at random moments, some with ids in their hands, all with jobs."""
    store = open_beside(own_redis)
    store.submit([a_job("sleep", '{"ms": 5}', max_losses=50) for _ in range(400)])
    for _ in range(rounds(3, soak=30)):
        victim = start(own_redis, "-c", "4")
        until(lambda: any(worker.pid == victim.pid for worker in store.workers()))  # noqa: B023 - asked in this round
        time.sleep(0.1)
        with Redis.from_url(own_redis.url) as redis:
            redis.zpopmin("workmill:queue:default", 20)  # as one that dies between Redis and the store
        victim.kill()
    start(own_redis, "-c", "4")

    until(lambda: states(store) == {State.SUCCEEDED: 400})
    until(lambda: not store.fold())
    assert store.invariants() == []


def test_pause_limit_and_resume_from_elsewhere_hold_for_workers_with_redis(
    open_beside: Callable[..., Store], start: Start, own_redis: RedisServer
) -> None:
    """The operator's process knows of no Redis."""
    store, operator = open_beside(own_redis), open_beside(None)
    start(own_redis, "-c", "8")
    until(store.workers)
    operator.pause("default", actor=ACTOR)
    store.submit([a_job("sleep", '{"ms": 50}') for _ in range(20)])
    time.sleep(1.5)
    assert states(store) == {State.QUEUED: 20}
    operator.limit("default", 2, actor=ACTOR)
    operator.resume("default", actor=ACTOR)

    most = 0
    while states(store) != {State.SUCCEEDED: 20}:
        most = max(most, states(store).get(State.RUNNING, 0))
    assert 1 <= most <= 2


def test_a_job_from_a_callers_own_transaction_is_started_after_its_commit_only(
    open_beside: Callable[..., Store],
    start: Start,
    own_redis: RedisServer,
    postgres: PostgresServer,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = open_beside(own_redis)
    start(own_redis)
    until(store.workers)
    monkeypatch.setenv("WORKMILL_SCHEMA", schema)
    with closing(Workmill(postgres.url)) as mill, psycopg.connect(postgres.url) as connection:
        job = mill.job(name="noop")(noop).using(connection=connection).enqueue()
        time.sleep(0.5)
        assert states(store) == {}
        connection.commit()

        until(lambda: store.job(job.id).state is State.SUCCEEDED)


def test_a_burst_ends_when_nothing_is_left_in_redis_or_in_the_store(
    open_beside: Callable[..., Store], start: Start, own_redis: RedisServer
) -> None:
    store = open_beside(own_redis)
    store.submit([a_job("noop") for _ in range(300)])
    flush(own_redis)

    assert start(own_redis, "--burst", "-c", "4").wait(PATIENCE) == 0

    assert states(store) == {State.SUCCEEDED: 300}


def test_a_flushed_redis_is_filled_again_by_upkeep_alone(
    open_beside: Callable[..., Store], own_redis: RedisServer, postgres: PostgresServer, schema: str
) -> None:
    store = open_beside(own_redis)
    join(store)
    store.submit([a_job("noop") for _ in range(30)])
    flush(own_redis)
    environment = {**os.environ, "WORKMILL_STORE": postgres.url, "WORKMILL_SCHEMA": schema, "WORKMILL_DISPATCH": own_redis.url}
    upkeep = subprocess.Popen([sys.executable, "-m", "workmill", "upkeep"], env=environment, stdout=subprocess.DEVNULL)
    try:
        with Redis.from_url(own_redis.url) as redis, suppress(RedisError):
            until(lambda: redis.zcard("workmill:queue:default") == 30)
    finally:
        upkeep.terminate()
        assert upkeep.wait(PATIENCE) == 0
