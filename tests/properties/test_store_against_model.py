"""L1: whatever is done to a store in whatever order, it does what the model says; and everything has been done to it at least once."""

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.machine import StoreMachine

MOST_ROUNDS = 20


class SQLiteMachine(StoreMachine):
    @staticmethod
    def open_store(clock: MovableClock) -> Store:
        return open_store("sqlite://", clock)


def walk(machine: type[StoreMachine], walks: int, seed: int) -> None:
    """Walks go on in rounds until everything has been seen at least once, and at least for one round."""
    how = settings(
        max_examples=walks,
        stateful_step_count=50,
        deadline=None,
        database=None,
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

    walk(PostgresMachine, rounds(12, soak=1_000), seed)

    assert PostgresMachine.never_happened() == set()
