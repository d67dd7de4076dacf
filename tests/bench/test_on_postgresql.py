"""The benchmarks on PostgreSQL: in schemas of their own, with and without Redis; how fast is no matter, but for what idle workers ask."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from redis import Redis
from rich.progress import Progress

from workmill.bench.burst import Burst
from workmill.bench.ceiling import Ceiling
from workmill.bench.cost import Cost
from workmill.bench.drain import Drain
from workmill.bench.enqueue import Enqueue
from workmill.bench.latency import Latency
from workmill.bench.rest import Rest
from workmill.bench.result import Place, Result
from workmill.bench.scale import Scale
from workmill.bench.stand import Alike, Benchmark, run
from workmill.config import DISPATCH, SCHEMA
from workmill.domain.errors import ConfigurationError
from workmill.testing.servers import PostgresServer, RedisServer

SMALL: list[Benchmark] = [
    Burst(jobs=300, workers=2),
    Ceiling(jobs=300),
    Drain(jobs=300),
    Enqueue(jobs=1_000, calls=5, threads=64),
    Latency(rate=50, seconds=0.2),
    Scale(rows=1_000, finished=2_000, claims=50),
]
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'workmill_bench%'"


@pytest.fixture(scope="module")
def counting() -> Iterator[PostgresServer]:
    """A server that counts statements."""
    server = PostgresServer(durable=False, settings=("shared_preload_libraries=pg_stat_statements",))
    yield server
    server.remove()


@pytest.fixture
def dispatcher(redis: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """An empty dispatcher that the environment names."""
    monkeypatch.setenv(DISPATCH, redis_server.url)
    return redis


def small(benchmark: Benchmark, server: PostgresServer) -> Result:
    return run(benchmark, command="a test", progress=Progress(disable=True), rounds=1, url=server.url)


@pytest.mark.parametrize("benchmark", SMALL, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_runs_on_postgresql_and_leaves_no_schema(benchmark: Benchmark, postgres: PostgresServer) -> None:
    result = small(benchmark, postgres)

    assert (result.store, result.dispatch, result.durability["fsync"]) == ("postgresql", "direct", "off")
    assert [goal.what for goal in result.goals] == [goal.what for goal in benchmark.goals(Place("postgresql"))]
    assert SCHEMA not in os.environ
    with psycopg.connect(postgres.url) as database:
        assert database.execute(SCHEMAS).fetchall() == []


def test_a_burst_with_redis_sees_its_depth_fall_to_nothing(postgres: PostgresServer, dispatcher: Redis) -> None:
    result = small(Burst(jobs=2_000, workers=2), postgres)

    assert result.dispatch == "redis"
    assert [goal.met for goal in result.goals] == [True] * 4
    assert (result.curves["heads"][0], result.curves["heads"][-1]) == (2_000, 0)
    assert set(result.curves["total"]) == {2_000}
    assert dispatcher.zcard("workmill:queue:bench") == 0


def test_a_dispatcher_that_holds_somebody_s_jobs_is_refused_and_left_alone(postgres: PostgresServer, dispatcher: Redis) -> None:
    dispatcher.zadd("workmill:queue:mail", {"an id": 1})
    dispatcher.sadd("workmill:queues", "mail")

    with pytest.raises(ConfigurationError, match="holds jobs of another store"):
        small(Drain(jobs=10), postgres)

    assert dispatcher.zcard("workmill:queue:mail") == 1


def test_each_run_of_a_job_costs_few_statements_and_two_dead_row_versions(counting: PostgresServer) -> None:
    figures = small(Cost(jobs=2_000), counting).figures

    assert figures["submit_wal_bytes"] > 60
    assert figures["submit_dead_tuples"] == 0
    assert 2 <= figures["run_dead_tuples"] < 2.5
    assert 0 < figures["job_statements"] < 1


def test_workers_that_have_nothing_to_do_ask_little_however_many_queues_they_have(counting: PostgresServer) -> None:
    figures = small(Rest(workers=2, queues=40, seconds=3.0, settle=1.0, wakings=1), counting).figures

    assert figures["statements_per_second"] < 40  # one for each queue would be 80 and more


def test_what_is_counted_on_a_server_is_not_counted_without_one(postgres: PostgresServer) -> None:
    with pytest.raises(ConfigurationError, match="PostgreSQL only"):
        run(Cost(jobs=10), command="a test", progress=Progress(disable=True), rounds=1)
    with pytest.raises(ConfigurationError, match="pg_stat_statements"):
        small(Rest(workers=1, queues=1, seconds=0.1, settle=0.1, wakings=1), postgres)


@pytest.mark.parametrize(
    ("benchmark", "place", "bounds"),
    [
        (Drain(), Place("sqlite"), [0.4, 0.6]),
        (Drain(), Place("postgresql"), [0.5, 1.0]),
        (Enqueue(), Place("sqlite"), [0.4, 3.0]),
        (Enqueue(), Place("postgresql"), [0.4]),
        (Enqueue(threads=64), Place("postgresql"), [0.4, 3_000, 5_000]),
        (Latency(), Place("sqlite"), [30.0]),
        (Latency(), Place("postgresql"), [15.0, 3.0]),
        (Latency(), Place("postgresql", "redis"), [10.0, 2.0]),
        (Latency(rate=1_000), Place("postgresql"), []),
    ],
)
def test_what_is_asked_depends_on_the_store_and_the_dispatcher(benchmark: Alike, place: Place, bounds: list[float]) -> None:
    assert [goal.bound for goal in benchmark.goals(place)] == bounds
