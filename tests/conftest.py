"""How much a run does, and from which seed: small named counts, or the long forms with WORKMILL_SOAK=1; both are printed."""

import os
import random
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from redis import Redis

from workmill.dispatch.heads import DispatchedHeads
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.servers import PostgresServer, RedisServer

SOAK = os.environ.get("WORKMILL_SOAK") == "1"
SEED = int(os.environ.get("WORKMILL_SEED") or random.SystemRandom().randrange(10**9))
SCHEMAS = count(1)
COUNTS = pytest.StashKey[list[str]]()

settings.register_profile("small", max_examples=60, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=10_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if SOAK else "small")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[COUNTS] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script starts with &, and by all that it starts in turn
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = SEED


def pytest_report_header() -> str:
    form = "long forms" if SOAK else "small counts (WORKMILL_SOAK=1 for the long forms)"
    return f"workmill: seed {SEED} (WORKMILL_SEED={SEED} replays), {form}, SQLite {sqlite3.sqlite_version}, {sys.platform}"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """This test's own seed: the run's seed and the test's name, so that a test replays alone as it ran among others."""
    return random.Random(f"{SEED} {request.node.nodeid}").randrange(10**9)


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Callable[..., int]:
    """`rounds(50, soak=10_000)`: how often to try here and now; the closing lines of the run say so."""

    def choose(small: int, *, soak: int) -> int:
        count = soak if SOAK else small
        request.config.stash[COUNTS].append(f"{count:>7,} rounds  {request.node.nodeid}")
        return count

    return choose


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash[COUNTS]
    if counts:
        terminalreporter.section(f"counts, seed {SEED}")
        terminalreporter.write_line("\n".join(sorted(counts)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests that break nothing; it spares the disk."""
    server = PostgresServer(durable=False)
    yield server
    server.remove()


@pytest.fixture
def postgres_store(postgres: PostgresServer) -> Iterator[Callable[..., Store]]:
    """`postgres_store(clock)`: a new, empty, migrated store on PostgreSQL; with `beside`, another way into that store."""
    opened: list[Store] = []

    def make(
        clock: MovableClock | None = None, *, beside: Store | None = None, parameters: str = "", heads: DispatchedHeads | None = None
    ) -> Store:
        schema = f"test_{next(SCHEMAS)}" if beside is None else str(vars(beside)["_schema"])
        store = open_store(postgres.url + parameters, clock, schema=schema, heads=heads)
        store.migrate()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for all tests that do not stop it."""
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture
def redis(redis_server: RedisServer) -> Iterator[Redis]:
    """A client of the test's own; the server is empty."""
    with Redis.from_url(redis_server.url, decode_responses=True) as client:
        client.flushall()
        yield client
