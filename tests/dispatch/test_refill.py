"""Whatever Redis has lost, or has too much, is put right from the store."""

from collections.abc import Callable, Sequence

import pytest
from redis import Redis

from workmill.dispatch import refill
from workmill.dispatch.redis import RedisDispatch
from workmill.dispatch.refill import Refiller
from workmill.domain.outcome import ReleaseReason
from workmill.store.base import Store
from workmill.store.heads import Ready
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
    heads = store.heads

    def watched(queues: Sequence[str], *, room: int, past: int = 0) -> list[Ready]:
        assert room == refill.HEAD
        return heads(queues, room=room, past=past)

    monkeypatch.setattr(store, "heads", watched)
    refiller.refill()


def test_a_queue_that_could_not_be_put_in_whole_is_tried_again(
    store: Store, redis: Redis, dispatch: RedisDispatch, refiller: Refiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refill, "HEAD", 10)
    monkeypatch.setattr(refill, "LOAD", 400)
    submit_many(store, 200)
    worker = join(store)
    report(store, worker, *[released(run, ReleaseReason.UNKNOWN_TYPE) for run in claim(store, worker, 50)])
    before = there(redis)
    put = RedisDispatch.put
    for _ in range(3):
        redis.flushall()
        with monkeypatch.context() as context:
            context.setattr(dispatch, "put", lambda *rows: len(rows[0]) <= 10 and put(dispatch, *rows))
            refiller.refill()
        assert len(there(redis)) == 10

        refiller.refill()

        assert there(redis) == before


def test_a_turn_reads_no_more_than_a_part_however_many_queues_are_missing(
    store: Store, redis: Redis, refiller: Refiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refill, "HEAD", 10)
    monkeypatch.setattr(refill, "LOAD", 40)
    queues = [f"queue-{number}" for number in range(5)]
    for queue in queues:
        submit_many(store, 100, queue=queue)
    redis.flushall()

    turns = [refiller.refill() for _ in range(20)]

    assert max(turns) <= 10 * len(queues) + 40
    assert [len(there(redis, queue)) for queue in queues] == [100] * 5


def test_names_of_queues_that_are_empty_are_forgotten(store: Store, redis: Redis, refiller: Refiller) -> None:
    redis.sadd("workmill:queues", *[f"queue-{number}" for number in range(6_000)])
    submit(store, queue="mail")

    refiller.refill()

    assert redis.smembers("workmill:queues") == {"mail"}


def test_a_turn_takes_few_commands_however_many_queues_there_were(store: Store, redis: Redis, refiller: Refiller) -> None:
    submit(store, queue="mail")
    redis.sadd("workmill:queues", *[f"queue-{number}" for number in range(500)])
    refiller.refill()
    before = redis.info("commandstats")

    refiller.refill()

    after = redis.info("commandstats")
    asked = {name: stats["calls"] - before.get(name, {"calls": 0})["calls"] for name, stats in after.items()}
    assert sum(calls for name, calls in asked.items() if name != "cmdstat_info") < 10


def test_what_somebody_else_has_put_there_is_left_alone_and_stops_nothing(store: Store, redis: Redis, refiller: Refiller) -> None:
    names = ["alien", "\0", "two words", "", "a" * 101]
    submit_many(store, 2, queue="video")
    submit(store, queue="alien")
    before = there(redis, "video")
    redis.flushall()
    redis.set("workmill:queue:alien", "a string")
    redis.sadd("workmill:queues", *names)
    redis.zadd("workmill:queue:two words", {"x": 1})

    refiller.refill()

    assert there(redis, "video") == before
    assert redis.get("workmill:queue:alien") == "a string"
    assert redis.smembers("workmill:queues") == {*names, "video"}


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
