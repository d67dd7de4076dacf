"""Two ways into one store, let loose at the same moment: exactly one wins, whoever it is, and the books are straight."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.job import Bulk, Selection
from workmill.domain.outcome import Accepted
from workmill.domain.states import LIVE, State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.factories import LEASE, claim, claim_one, failed, join, report, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR, a_dead_job, only, pass_time, settle

Pair = tuple[Store, Store]
Race = Callable[[Callable[[], Any], Callable[[], Any]], tuple[Any, Any]]


@pytest.fixture(params=["sqlite", "postgresql"])
def pair(request: pytest.FixtureRequest, path: Path, clock: MovableClock) -> Iterator[Pair]:
    """One store, opened twice."""
    if request.param == "postgresql":
        make = request.getfixturevalue("postgres_store")
        one = make(clock)
        other = make(clock, beside=one)
        yield one, other
        assert [vars(store)["_database"].lock_retries for store in (one, other)] == [0, 0]  # nobody was in anybody's way
        return
    url = f"sqlite:///{path}"
    with closing(open_store(url, clock)) as one, closing(open_store(url, clock)) as other:
        one.counts()
        other.counts()
        yield one, other


@pytest.fixture
def race() -> Race:
    """Call two things from two threads that a barrier lets go together; return both answers."""

    def run(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        barrier = threading.Barrier(2, timeout=30)
        answers: dict[int, Any] = {}

        def go(number: int, action: Callable[[], Any]) -> None:
            barrier.wait()
            answers[number] = action()

        threads = [threading.Thread(target=go, args=pair) for pair in enumerate((first, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers[0], answers[1]

    return run


def test_cancel_and_completion_have_one_winner_each_time(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    worker = join(one)
    for _ in range(rounds(40, soak=10_000)):
        submit(one, max_attempts=1)
        run = claim_one(one, worker)

        verdicts, bulk = race(lambda: report(one, worker, failed(run)), lambda: other.cancel(only(run.id), actor=ACTOR))  # noqa: B023

        first = {State.DEAD: Bulk(0, {"ended": 1}), State.CANCELLED: Bulk(1)}
        state = one.job(run.id).state
        assert verdicts == [Accepted(run.fence, state)]
        assert bulk == first[state]
        assert other.cancel(only(run.id), actor=ACTOR) == Bulk(0, {"ended": 1})
    settle(one)


def test_cancel_and_claim_have_one_winner_each_time(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    worker = join(one)
    for _ in range(rounds(40, soak=10_000)):
        receipt = submit(one)

        claimed, bulk = race(lambda: claim(one, worker), lambda: other.cancel(only(receipt.id), actor=ACTOR))  # noqa: B023

        state = one.job(receipt.id).state
        assert bulk == Bulk(1)
        assert [run.id for run in claimed] == ([receipt.id] if state is State.RUNNING else [])
        assert state in {State.RUNNING, State.CANCELLED}
        report(one, worker, *map(succeeded, claimed))
    settle(one)


def test_rescue_and_completion_have_one_winner_each_time(pair: Pair, race: Race, clock: MovableClock, rounds: Callable[..., int]) -> None:
    one, other = pair
    for _ in range(rounds(12, soak=2_000)):
        worker = join(one)
        submit(one)
        run = claim_one(one, worker)
        pass_time(one, clock, int(LEASE) + 2)

        verdicts, rescued = race(lambda: report(one, worker, succeeded(run)), other.rescue)  # noqa: B023

        state = one.job(run.id).state
        assert (isinstance(verdicts[0], Accepted), rescued, state) in {(True, 0, State.SUCCEEDED), (False, 1, State.RETRYING)}
        one.cancel(Selection(states=(State.RETRYING,)), actor=ACTOR)
    settle(one)


def test_a_late_completion_never_touches_a_revived_job(pair: Pair, race: Race, clock: MovableClock, rounds: Callable[..., int]) -> None:
    one, other = pair
    for _ in range(rounds(12, soak=2_000)):
        worker = join(one)
        submit(one, max_losses=1)
        run = claim_one(one, worker)
        pass_time(one, clock, int(LEASE) + 2)
        one.rescue()

        verdicts, bulk = race(
            lambda: report(one, worker, succeeded(run)),  # noqa: B023
            lambda: other.revive(only(run.id), actor=ACTOR),  # noqa: B023
        )

        assert (isinstance(verdicts[0], Accepted), bulk) == (False, Bulk(1))
        assert (one.job(run.id).state, one.job(run.id).result) == (State.QUEUED, None)
        one.cancel(only(run.id), actor=ACTOR)
    settle(one)


def test_revival_and_submission_of_one_key_leave_one_live_job(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    for number in range(rounds(40, soak=10_000)):
        key = f"k{number}"
        dead = a_dead_job(one, unique_key=key)

        receipt, bulk = race(
            lambda: submit(one, unique_key=key),  # noqa: B023
            lambda: other.revive(only(dead.id), actor=ACTOR),  # noqa: B023
        )

        live = Selection(unique_key=key, states=tuple(LIVE))
        assert [job.id for job in one.jobs(live).jobs] == [receipt.id]
        assert (receipt.created, bulk) in [(True, Bulk(0, {"key_taken": 1})), (False, Bulk(1))]
        one.cancel(live, actor=ACTOR)
    settle(one)


def test_revival_and_discard_have_one_winner_each_time(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    for _ in range(rounds(40, soak=10_000)):
        dead = a_dead_job(one)

        revived, discarded = race(
            lambda: one.revive(only(dead.id), actor=ACTOR),  # noqa: B023
            lambda: other.discard(only(dead.id), actor=ACTOR),  # noqa: B023
        )

        left = one.count(only(dead.id))
        assert (revived.done, discarded.done) == ((1, 0) if left else (0, 1))
        one.cancel(Selection(), actor=ACTOR)
    settle(one)


def test_two_claims_never_pass_a_limit_together(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    first, second = join(one), join(other)
    one.limit("default", 1, actor=ACTOR)
    submit_many(one, 2)
    for _ in range(rounds(40, soak=10_000)):
        runs = race(lambda: claim(one, first), lambda: claim(other, second))

        assert sorted(map(len, runs)) == [0, 1]
        report(one, first, *map(succeeded, runs[0]))
        report(other, second, *map(succeeded, runs[1]))
        submit(one)
    settle(one)


def test_a_claim_that_begins_after_a_pause_was_answered_takes_nothing(pair: Pair, race: Race, rounds: Callable[..., int]) -> None:
    one, other = pair
    worker = join(one)
    submit_many(one, 5)
    for _ in range(rounds(20, soak=2_000)):
        open_claim, _ = race(lambda: claim(one, worker), lambda: other.pause("default", actor=ACTOR))

        assert claim(one, worker, 5) == []
        other.resume("default", actor=ACTOR)
        report(one, worker, *map(succeeded, open_claim))
        submit_many(one, len(open_claim))
    settle(one)


def test_two_upkeeps_at_once_do_nothing_twice(pair: Pair, race: Race, clock: MovableClock, rounds: Callable[..., int]) -> None:
    one, other = pair
    many = 30
    for _ in range(rounds(5, soak=500)):
        submit_many(one, many, queue="due", delay=1)
        submit_many(one, many, queue="late", expires_in=1)
        submit_many(one, many, queue="lost")
        claim(one, join(one), many, "lost")
        pass_time(one, clock, int(LEASE) + 2)

        for step in ("rescue", "promote", "expire", "fold"):
            done = race(getattr(one, step), getattr(other, step))
            assert step == "fold" or sum(done) == many * (2 if step == "promote" else 1)
        assert one.counts() == {("due", State.QUEUED): many, ("late", State.EXPIRED): many, ("lost", State.QUEUED): many}
        assert one.invariants() == []
        one.cancel(Selection(), actor=ACTOR)
        clock.advance(1)
        assert sum(race(lambda: one.prune(0, 0), lambda: other.prune(0, 0))) == 3 * many
    settle(one)


def test_a_turn_has_one_winner(pair: Pair, race: Race, clock: MovableClock, rounds: Callable[..., int]) -> None:
    one, other = pair
    for step in [1, -3_600, 5] * rounds(10, soak=1_000):
        clock.advance(step)

        assert sorted(race(lambda: one.win_turn(1), lambda: other.win_turn(1))) == [False, True]
