"""Whatever Redis has lost, or has too much, is put right from the store."""

from collections.abc import Callable

import pytest
from redis import Redis

from workmill.dispatch import refill
from workmill.dispatch.redis import RedisDispatch
from workmill.dispatch.refill import Refiller
from workmill.domain.outcome import ReleaseReason
from workmill.store.base import Store
from workmill.telemetry import Telemetry
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim, join, released, report, submit, submit_many
from workmill.testing.servers import RedisServer
from workmill.testing.steps import ACTOR, only


@pytest.fixture
def refiller(store: Store, dispatch: RedisDispatch) -> Refiller:
    return Refiller(store, dispatch, Telemetry())


def there(redis: Redis, queue: str = "default") -> list[tuple[str, float]]:
    return list(redis.zrange(f"workmill:queue:{queue}", 0, -1, withscores=True))


def test_after_a_flush_everything_is_there_again_in_its_place(store: Store, redis: Redis, refiller: Refiller, clock: MovableClock) -> None:
    for number in range(20):
        submit(store, priority=number % 3, queue=("default", "video")[number % 2])
        clock.advance(0.001)
    before = there(redis), there(redis, "video")
    redis.flushall()

    refiller.refill()

    assert (there(redis), there(redis, "video")) == before
    assert len(before[0]) == len(before[1]) == 10


def test_what_a_dead_worker_had_in_its_hand_comes_back(store: Store, redis: Redis, refiller: Refiller) -> None:
    submit_many(store, 5)
    before = there(redis)
    redis.zpopmin("workmill:queue:default", 3)

    assert refiller.refill() == 3
    assert there(redis) == before
    assert refiller.refill() == 0


def test_what_is_not_claimable_any_more_is_removed(store: Store, redis: Redis, refiller: Refiller) -> None:
    first, second, third = (receipt.id for receipt in submit_many(store, 3))
    snapshot = dict(there(redis))
    (run,) = claim(store, join(store))
    store.cancel(only(second), actor=ACTOR)
    redis.zadd("workmill:queue:default", {**snapshot, "foreign": 0})
    redis.zadd("workmill:queue:gone", {"foreign": 0})
    redis.sadd("workmill:queues", "gone")

    refiller.refill()

    assert run.id == first
    assert there(redis) == [(third, snapshot[third])]
    assert there(redis, "gone") == []


def test_an_id_in_the_wrong_place_is_moved(store: Store, redis: Redis, refiller: Refiller) -> None:
    submit_many(store, 3)
    before = there(redis)
    redis.zadd("workmill:queue:default", {before[0][0]: before[2][1] + 5})

    refiller.refill()

    assert there(redis) == before


def test_what_waits_is_set_aside_or_runs_is_not_put_in(store: Store, redis: Redis, refiller: Refiller) -> None:
    submit(store, delay=60)
    worker = join(store)
    submit_many(store, 2)
    one, _ = claim(store, worker, 2)
    report(store, worker, released(one, ReleaseReason.UNKNOWN_TYPE))
    redis.flushall()

    refiller.refill()

    assert there(redis) == []


def test_a_queue_far_longer_than_what_is_compared_is_loaded_part_by_part(
    store: Store, redis: Redis, refiller: Refiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refill, "HEAD", 10)
    monkeypatch.setattr(refill, "LOAD", 40)
    submit_many(store, 200)
    before = there(redis)
    redis.flushall()

    turns = 0
    while there(redis) != before:
        refiller.refill()
        turns += 1
        assert turns < 10

    assert turns > 3


def test_jobs_set_aside_do_not_have_a_queue_read_through_again_and_again(
    store: Store, refiller: Refiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refill, "HEAD", 3)
    submit_many(store, 20)
    worker = join(store)
    report(store, worker, *[released(run, ReleaseReason.UNKNOWN_TYPE) for run in claim(store, worker, 20)])
    refiller.refill()

    monkeypatch.setattr(refill, "LOAD", None)  # reading on would fail
    refiller.refill()


def test_one_process_a_second_takes_the_turn(store: Store, redis: Redis, redis_server: RedisServer) -> None:
    dispatches = [RedisDispatch(redis_server.url) for _ in range(3)]
    submit_many(store, 5)
    redis.delete("workmill:queue:default")

    for dispatch in dispatches:
        Refiller(store, dispatch, Telemetry()).run_once()
        if dispatch is dispatches[0]:
            redis.delete("workmill:queue:default")
        dispatch.close()

    assert there(redis) == []
    assert 0 < redis.pttl("workmill:refill") <= 1_000


def test_a_job_of_a_process_without_a_dispatcher_is_put_in(
    store: Store, redis: Redis, refiller: Refiller, postgres_store: Callable[..., Store], clock: MovableClock
) -> None:
    receipt = submit(postgres_store(clock, beside=store))

    refiller.refill()

    assert [job_id for job_id, _ in there(redis)] == [receipt.id]


def test_while_redis_is_away_a_turn_does_nothing(store: Store) -> None:
    dispatch = RedisDispatch("unix:///tmp/there-is-no-such-socket")

    assert Refiller(store, dispatch, Telemetry()).run_once() == refill.TURN_SECONDS
    assert Refiller(store, dispatch, Telemetry()).refill() == 0
