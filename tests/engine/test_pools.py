"""How many a pool claims, and which of its runs may start when."""

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from workmill.domain.job import Claimed
from workmill.domain.worker import Wants
from workmill.engine.context import RunningJob
from workmill.engine.pools import LIMITED, Pool, Pools
from workmill.engine.prefetch import MOST, Pace


class Idle:
    """An executor that takes runs and begins none."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.runs: list[RunningJob] = []

    def start(self, runs: Sequence[RunningJob]) -> None:
        self.runs.extend(runs)

    def recall(self) -> list[RunningJob]:
        runs, self.runs = self.runs, []
        return runs

    def interrupt(self, run: RunningJob) -> None: ...

    def resize(self, concurrency: int) -> None:
        self.concurrency = concurrency

    def close(self) -> None: ...


class Handler:
    def __init__(self, kind: str) -> None:
        self.kind = kind


def make(_kind: Any, concurrency: int) -> Any:
    return Idle(concurrency)


def runs(count: int, kind: str = "thread", queue: str = "default") -> list[RunningJob]:
    handler: Any = Handler(kind)
    return [
        RunningJob(Claimed(f"{kind}{number}", 1, queue, "task", "{}", 1, 5, None, None, None, 0), handler, 0.0, inf)
        for number in range(count)
    ]


def in_executor(pool: Pool, kind: Any) -> int:
    executor: Any = pool.lane(kind).executor
    return 0 if executor is None else len(executor.runs)


def let_out(pool: Pool, *batches: list[RunningJob]) -> None:
    for batch in batches:
        pool.accept(batch, now=0.0)
    pool.let_out()


def fast(pool: Pool, jobs: int = 100_000) -> None:
    pool.pace.resume(0.0)
    pool.pace.note(jobs, 1.0)


def test_a_pool_without_a_pace_claims_for_its_slots_alone() -> None:
    pool = Pool(10, make)

    assert pool.room(0, 0.0, 0.0) == 10


def test_a_claim_ahead_is_what_the_pace_gets_through_in_fifty_milliseconds() -> None:
    pool = Pool(10, make)
    fast(pool, jobs=200)

    assert pool.room(0, 0.0, 1.0) == 20


def test_jobs_of_a_second_are_not_claimed_ahead() -> None:
    pool = Pool(10, make)
    fast(pool, jobs=10)

    assert pool.room(0, 0.0, 0.0) == 10


def test_a_slow_exchange_lets_a_pool_claim_further_ahead() -> None:
    pool = Pool(10, make)
    fast(pool, jobs=200)

    assert pool.room(0, 0.5, 1.0) == 120


def test_no_pace_makes_a_pool_hold_more_than_a_thousand() -> None:
    pool = Pool(10, make)
    fast(pool)

    assert pool.room(0, 0.0, 1.0) == MOST


def test_a_pool_that_holds_runs_claims_the_rest() -> None:
    pool = Pool(10, make)
    let_out(pool, runs(7))

    assert pool.room(0, 0.0, 0.0) == 3


def test_a_slot_is_free_in_the_exchange_that_commits_its_outcome() -> None:
    pool = Pool(10, make)
    let_out(pool, runs(10))

    assert pool.room(0, 0.0, 0.0) == 0
    assert pool.room(4, 0.0, 0.0) == 4


def test_a_pool_that_got_a_job_of_a_limited_queue_claims_nothing_ahead_for_a_while() -> None:
    pool = Pool(10, make)
    fast(pool)
    pools = Pools({None: pool})

    pools.accept(runs(1, queue="narrow"), frozenset({"narrow"}), now=1.0)
    pools.let_out()

    assert pool.room(0, 0.0, 1.0) == 9
    pool.pace.note(100_000, 1.0 + LIMITED)
    assert pool.room(0, 0.0, 1.0 + LIMITED) > 900


def test_a_pool_with_isolated_runs_claims_nothing_ahead() -> None:
    pool = Pool(10, make)
    fast(pool)

    let_out(pool, runs(1, "isolated"))

    assert pool.room(0, 0.0, 0.0) == 9


def test_runs_of_one_kind_wait_in_their_executor() -> None:
    pool = Pool(2, make)

    let_out(pool, runs(50))

    assert in_executor(pool, "thread") == 50


def test_runs_of_mixed_kinds_start_only_while_there_are_slots() -> None:
    pool = Pool(3, make)

    let_out(pool, runs(2, "thread"), runs(2, "loop"), runs(2, "thread"))

    assert (in_executor(pool, "thread"), in_executor(pool, "loop")) == (2, 1)
    assert pool.room(0, 0.0, 0.0) == 0


def test_a_run_of_another_kind_waits_until_what_is_ahead_of_it_is_down_to_the_slots() -> None:
    pool = Pool(2, make)
    let_out(pool, runs(5, "thread"), runs(1, "loop"))
    before = in_executor(pool, "loop")

    pool.lane("thread").out = 1
    pool.let_out()

    assert (before, in_executor(pool, "loop")) == (0, 1)


def test_isolated_runs_beyond_the_slots_wait_in_the_pool() -> None:
    pool = Pool(2, make)

    let_out(pool, runs(5, "isolated"))

    assert in_executor(pool, "isolated") == 2


def test_what_is_recalled_comes_in_order_and_leaves_the_pool_empty() -> None:
    pool = Pool(2, make)
    mixed = [*runs(2, "thread"), *runs(3, "loop")]
    let_out(pool, mixed)

    recalled = pool.recall()

    assert recalled == mixed
    assert pool.held == 0


def test_what_is_put_back_starts_before_everything_else_and_in_its_order() -> None:
    pool = Pool(2, make)
    older, newer = runs(3), runs(2)
    for run in older:
        run.lane = pool.lane("thread")
    pool.accept(newer, now=0.0)

    Pools({None: pool}).put_back(older)
    pool.let_out()

    executor: Any = pool.lane("thread").executor
    assert executor.runs == [*older, *newer]


def test_a_pool_is_resized_with_its_executors_and_back() -> None:
    pool = Pool(4, make)
    let_out(pool, runs(1))
    executor: Any = pool.lane("thread").executor

    changes = [pool.resize(7), pool.resize(7), pool.resize(None)]

    assert changes == [True, False, True]
    assert (pool.concurrency, executor.concurrency) == (4, 4)


def test_pools_by_queue_claim_for_each_queue_what_it_has_room_for() -> None:
    pools = Pools({"mail": Pool(10, make), "video": Pool(2, make)})
    pools.accept([*runs(3, queue="mail"), *runs(2, queue="video")], frozenset(), now=0.0)

    assert pools.wants([], 0.0, 0.0, inf) == Wants(queues={"mail": 7})


@pytest.mark.parametrize(("most", "wanted"), [(inf, 10), (4, 4)])
def test_no_more_is_wanted_than_the_worker_may_still_claim(most: float, wanted: int) -> None:
    assert Pools({None: Pool(10, make)}).wants([], 0.0, 0.0, most) == Wants(anywhere=wanted)


def test_a_pool_beside_another_has_its_own_room() -> None:
    pools = Pools({"mail": Pool(10, make), "video": Pool(2, make)})

    assert pools.wants([], 0.0, 0.0, 11) == Wants(queues={"mail": 10, "video": 1})


def test_time_without_work_does_not_slow_the_pace() -> None:
    pace = Pace()
    pace.resume(0.0)
    pace.note(100, 0.1)

    pace.resume(3_600.0)
    pace.note(100, 3_600.1)

    assert pace.ahead(3_600.1, 0.0) == 50


def test_a_pace_follows_jobs_that_become_slow() -> None:
    pace = Pace()
    pace.resume(0.0)
    pace.note(50_000, 1.0)

    for second in range(2, 6):
        pace.note(10, float(second))

    assert pace.ahead(5.0, 0.0) < 10


def test_jobs_that_do_not_end_slow_the_pace_before_any_of_them_has_ended() -> None:
    pace = Pace()
    pace.resume(0.0)
    pace.note(50_000, 1.0)

    assert pace.ahead(1.0, 0.0) == 2_500
    assert pace.ahead(3.0, 0.0) < 25
    assert pace.ahead(8.0, 0.0) == 0


def test_a_pool_that_holds_no_more_than_its_slots_is_not_crowded_however_long_a_start_takes() -> None:
    pool = Pool(2, make)
    let_out(pool, runs(2, "isolated"))
    before = Pools({None: pool}).crowded()

    let_out(pool, runs(1, "isolated"))

    assert (before, Pools({None: pool}).crowded()) == (False, True)
