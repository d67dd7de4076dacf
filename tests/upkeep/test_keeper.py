"""Turns of upkeep: who takes them, when the next is due, and that no step is stopped by another."""

from typing import Any

import pytest

from workmill.domain.errors import StoreFailure, StoreUnavailable
from workmill.store.base import UPKEEP_BATCH, Turn
from workmill.telemetry import DEBUG, Event, Telemetry
from workmill.upkeep import LOSER_WAITS, SMALLEST_BATCH, WINNER_WAITS, Keeper

STEPS = ["rescue", "promote", "expire", "bury", "prune", "fold"]


class Script:
    """A store whose steps do what a test wants: return a number, or raise."""

    def __init__(self, **does: Any) -> None:
        self.does = {"win_turn": True, **does}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def step(*args: Any) -> Any:
            self.calls.append((name, args))
            result = self.does.get(name, 0)
            if isinstance(result, Exception):
                raise result
            return result

        return step

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args in self.calls if called == name]


def keeper_of(store: Any, **options: Any) -> tuple[Keeper, list[Event]]:
    telemetry, events = Telemetry(), list[Event]()
    telemetry.subscribe(events.append, DEBUG)
    return Keeper(store, telemetry, **options), events


def test_a_winner_takes_every_step_and_tries_again_after_a_second() -> None:
    store = Script()
    keeper, _ = keeper_of(store)

    wait = keeper.run_once()

    assert [name for name, _ in store.calls] == ["win_turn", *STEPS]
    assert wait == WINNER_WAITS


def test_a_loser_does_nothing_and_tries_again_after_two_seconds() -> None:
    store = Script(win_turn=False)
    keeper, _ = keeper_of(store)

    wait = keeper.run_once()

    assert [name for name, _ in store.calls] == ["win_turn"]
    assert wait == LOSER_WAITS


def test_a_turn_tells_what_it_did() -> None:
    keeper, events = keeper_of(Script(promote=3, rescue=1, fold=7))

    turn = keeper.take_turn()

    assert turn == Turn(won=True, promoted=3, rescued=1, folded=7)
    assert [(event.name, event.fields) for event in events] == [("upkeep.turn", {"promoted": 3, "rescued": 1, "folded": 7})]


def test_a_turn_that_filled_a_batch_is_followed_by_another_at_once() -> None:
    store = Script(promote=UPKEEP_BATCH)
    keeper, _ = keeper_of(store)

    waits = [keeper.run_once(), keeper.run_once()]
    store.does["promote"] = 1
    waits.append(keeper.run_once())

    assert waits == [0.0, 0.0, WINNER_WAITS]
    assert store.named("win_turn") == [(WINNER_WAITS,), (0.0,), (0.0,)]


def test_folding_less_than_its_own_larger_batch_is_not_busy() -> None:
    keeper, _ = keeper_of(Script(fold=UPKEEP_BATCH))

    assert keeper.run_once() == WINNER_WAITS


@pytest.mark.parametrize("failing", STEPS)
@pytest.mark.parametrize(
    "error", [StoreUnavailable("slow"), StoreFailure("full"), KeyError("a bug")], ids=lambda error: type(error).__name__
)
def test_a_step_that_fails_stops_no_other(failing: str, error: Exception) -> None:
    store = Script(**{failing: error})
    keeper, events = keeper_of(store)

    turn = keeper.take_turn()

    assert turn.won
    assert [name for name, _ in store.calls] == ["win_turn", *STEPS]
    assert [(event.name, event.fields["step"]) for event in events] == [("upkeep.failed", failing)]


def test_a_store_that_is_away_is_tried_again_like_a_lost_turn() -> None:
    keeper, events = keeper_of(Script(win_turn=StoreUnavailable("away")))

    assert keeper.run_once() == LOSER_WAITS
    assert [event.name for event in events] == ["upkeep.failed"]


def test_a_batch_shrinks_when_the_store_does_not_answer_in_time_and_grows_again() -> None:
    store = Script(rescue=StoreUnavailable("slow"))
    keeper, _ = keeper_of(store)
    for _ in range(10):
        keeper.take_turn()

    store.does["rescue"] = 0
    for _ in range(3):
        keeper.take_turn()

    limits = [limit for (limit,) in store.named("rescue")]
    assert limits[:3] == [UPKEEP_BATCH, UPKEEP_BATCH // 2, UPKEEP_BATCH // 4]
    assert limits[9:] == [SMALLEST_BATCH, SMALLEST_BATCH, 2 * SMALLEST_BATCH, 4 * SMALLEST_BATCH]
    assert {limit for (limit,) in store.named("promote")} == {UPKEEP_BATCH}


def test_a_shrunken_batch_that_is_filled_is_busy() -> None:
    store = Script(rescue=StoreUnavailable("slow"))
    keeper, _ = keeper_of(store)
    keeper.take_turn()

    store.does["rescue"] = UPKEEP_BATCH // 2

    assert keeper.run_once() == 0.0


def test_pruning_is_told_what_to_retain() -> None:
    store = Script()
    keeper, _ = keeper_of(store, retain=3_600.0, retain_dead=None)

    keeper.take_turn()

    assert store.named("prune") == [(3_600.0, None, UPKEEP_BATCH)]
