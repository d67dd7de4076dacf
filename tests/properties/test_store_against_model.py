"""L1: whatever is done to a store in whatever order, it does what the model says; and everything has been done to it at least once."""

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import invariant, run_state_machine_as_test
from redis import Redis

from workmill.dispatch.redis import RedisDispatch
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.machine import QUEUES, StoreMachine
from workmill.testing.servers import RedisServer
from workmill.testing.watchful import Watchful

MOST_ROUNDS = 20


class SQLiteMachine(StoreMachine):
    @staticmethod
    def open_store(clock: MovableClock) -> Store:
        return open_store("sqlite://", clock)


QUICK = (Phase.generate,)
"""With a server a failure is reported as it was met: to look for a shorter one would outlast the limit for a test."""


def walk(machine: type[StoreMachine], walks: int, seed: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    """Walks go on in rounds until everything has been seen at least once, and at least for one round."""
    how = settings(
        max_examples=walks,
        stateful_step_count=50,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    for number in range(MOST_ROUNDS):
        run_state_machine_as_test(seeded(seed + number)(machine), settings=how)
        if not machine.never_happened():
            break


def test_a_store_does_what_the_model_says(rounds: Callable[..., int], seed: int) -> None:
    walk(SQLiteMachine, rounds(80, soak=5_000), seed)

    assert SQLiteMachine.never_happened() == set()


def test_a_store_on_postgresql_does_what_the_model_says(
    postgres_store: Callable[[MovableClock], Store], rounds: Callable[..., int], seed: int
) -> None:
    class PostgresMachine(StoreMachine):
        @staticmethod
        def open_store(clock: MovableClock) -> Store:
            return postgres_store(clock)

    walk(PostgresMachine, rounds(12, soak=1_000), seed, QUICK)

    assert PostgresMachine.never_happened() == set()


def test_a_store_whose_jobs_are_handed_out_by_redis_does_what_the_model_says(
    postgres_store: Callable[..., Store],
    redis_server: RedisServer,
    redis: Redis,
    rounds: Callable[..., int],
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis orders by the millisecond, so that backoffs are spread coarsely here."""
    monkeypatch.setattr("workmill.store.operations.exchange.spread", lambda: random.choice((-1.0, 0.0, 1.0)))

    class DispatchedMachine(StoreMachine):
        @staticmethod
        def open_store(clock: MovableClock) -> Store:
            redis.flushall()
            heads = Watchful(RedisDispatch(redis_server.url))
            heads.store = postgres_store(clock, heads=heads)
            return heads.store

        @invariant()
        def redis_has_what_can_be_claimed(self) -> None:
            self.expire()
            for queue in QUEUES:
                there = redis.zrange(f"workmill:queue:{queue}", 0, -1)
                assert there == [job.id for job in self.store.heads([queue], room=1_000)]

    walk(DispatchedMachine, rounds(12, soak=1_000), seed, QUICK)

    assert DispatchedMachine.never_happened() == set()
