"""What is handed on after a commit, what is taken, and what goes back: pauses, limits, cancellations and stale ids."""

from collections.abc import Callable
from math import inf

import pytest
from redis import Redis

from workmill.dispatch.heads import DispatchedHeads
from workmill.dispatch.redis import RedisDispatch
from workmill.domain.outcome import ReleaseReason
from workmill.domain.worker import Wants
from workmill.store.base import Store
from workmill.store.heads import Ready
from workmill.testing.clock import MovableClock
from workmill.testing.factories import a_job, claim, join, released, report, submit, submit_many, succeeded
from workmill.testing.servers import RedisServer
from workmill.testing.steps import ACTOR, crash, only


def there(redis: Redis, queue: str = "default") -> list[str]:
    """The ids of a queue in Redis, first one first."""
    return list(redis.zrange(f"workmill:queue:{queue}", 0, -1))


def test_the_depth_of_a_queue_is_the_size_of_its_set(store: Store, redis: Redis) -> None:
    submit_many(store, 12)
    submit(store, queue="video")
    submit(store, delay=60)
    claim(store, join(store), 5)

    assert (redis.zcard("workmill:queue:default"), redis.zcard("workmill:queue:video")) == (7, 1)
    assert redis.smembers("workmill:queues") == {"default", "video"}


@pytest.mark.parametrize("queue", ["default", None], ids=["from one queue", "from all"])
def test_higher_priority_first_then_first_in_first_out(store: Store, clock: MovableClock, queue: str | None) -> None:
    submitted: list[tuple[int, int, str]] = []
    for place, priority in enumerate((0, 100, -100, 7, 0, 100, -100, 7)):
        submitted.append((-priority, place, submit(store, priority=priority).id))
        clock.advance(0.001)
    worker = join(store)

    claimed = [run.id for _ in range(4) for run in claim(store, worker, 2, queue)]

    assert claimed == [job_id for _, _, job_id in sorted(submitted)]


def test_jobs_of_one_millisecond_come_in_the_order_of_their_ids(store: Store, clock: MovableClock) -> None:
    ids: list[str] = []
    for _ in range(20):
        ids.append(submit(store).id)
        clock.advance(0.000_01)

    assert [run.id for run in claim(store, join(store), 20)] == sorted(ids) == ids


def test_a_pause_holds_and_what_was_taken_meanwhile_goes_back(store: Store, redis: Redis) -> None:
    ids = [receipt.id for receipt in submit_many(store, 3)]
    worker = join(store)
    store.pause("default", actor=ACTOR)

    assert claim(store, worker, 3) == []
    assert there(redis) == ids
    store.resume("default", actor=ACTOR)
    assert [run.id for run in claim(store, worker, 3)] == ids


def test_a_pause_that_this_process_has_not_heard_of_holds(store: Store, redis: Redis, postgres_store: Callable[..., Store]) -> None:
    ids = [receipt.id for receipt in submit_many(store, 3)]
    worker = join(store)
    postgres_store(beside=store).pause("default", actor=ACTOR)

    assert claim(store, worker, 3) == []
    assert there(redis) == ids


def test_a_limit_holds_over_all_workers(store: Store, redis: Redis) -> None:
    submit_many(store, 10)
    store.limit("default", 3, actor=ACTOR)
    one, other = join(store), join(store)

    first = claim(store, one, 2)
    assert (len(first), len(claim(store, other, 5)), len(claim(store, one, 5))) == (2, 1, 0)
    assert redis.zcard("workmill:queue:default") == 7
    report(store, one, *[released(run, ReleaseReason.SHUTDOWN) for run in first])
    assert redis.zcard("workmill:queue:default") == 9
    assert len(claim(store, other, 5)) == 2


def test_a_cancelled_job_leaves_and_is_claimed_by_nobody(store: Store, redis: Redis) -> None:
    first, second = (receipt.id for receipt in submit_many(store, 2))

    store.cancel(only(first), actor=ACTOR)

    assert there(redis) == [second]
    assert [run.id for run in claim(store, join(store), 5)] == [second]


def test_a_job_that_is_put_off_leaves_and_comes_back_at_its_new_place(store: Store, redis: Redis, clock: MovableClock) -> None:
    first, second = (receipt.id for receipt in submit_many(store, 2))

    store.reschedule(only(first), clock() + 10_000_000, actor=ACTOR)
    assert there(redis) == [second]
    clock.advance(10)
    assert store.promote() == 1

    assert there(redis) == [second, first]


def test_a_job_that_is_queued_anew_for_now_stays(store: Store, redis: Redis) -> None:
    receipt = submit(store)

    store.reschedule(only(receipt.id), None, actor=ACTOR)

    assert there(redis) == [receipt.id]


@pytest.mark.parametrize("queue", ["default", None], ids=["from one queue", "from all"])
def test_stale_doubled_and_foreign_ids_claim_nothing_and_vanish(store: Store, redis: Redis, queue: str | None) -> None:
    receipt = submit(store)
    worker = join(store)
    (run,) = claim(store, worker)
    foreign = {"no-id-of-ours": 2, "\0": 3, b"\xff": 4, "": 5, "early": -(2.0**70), "late": 2.0**70, "never": float("inf")}
    redis.zadd("workmill:queue:default", {run.id: 1, **foreign})
    redis.sadd("workmill:queues", "\0", b"\xff")
    redis.zadd("workmill:queue:\0", {"id": 0})

    assert claim(store, worker, 20, queue) == []
    assert claim(store, worker, 20, queue) == []
    assert there(redis) == []
    assert store.job(receipt.id).lease == run.lease


def test_where_all_ids_were_stale_the_store_is_asked_next(store: Store, redis: Redis) -> None:
    receipt = submit(store)
    redis.delete("workmill:queue:default")
    redis.zadd("workmill:queue:default", {"stale": 1})
    worker = join(store)

    assert claim(store, worker, 5) == []
    assert [run.id for run in claim(store, worker, 5)] == [receipt.id]


def test_suspects_are_claimed_one_after_another_without_waiting_for_a_look(
    postgres_store: Callable[..., Store], dispatch: RedisDispatch, clock: MovableClock
) -> None:
    store = postgres_store(clock, heads=DispatchedHeads(dispatch, look_seconds=inf))
    submit_many(store, 5)
    crash(store, clock, held=5)
    store.promote()
    worker = join(store)
    runs = claim(store, worker, 5)

    ran = 0
    while runs:
        ran += len(runs)
        runs = store.exchange(worker, [succeeded(run) for run in runs], Wants(queues={"default": 5})).claimed

    assert ran == 5


def test_a_draining_worker_takes_nothing_away(store: Store, redis: Redis) -> None:
    ids = [receipt.id for receipt in submit_many(store, 3)]
    worker = join(store)
    store.drain(worker, actor=ACTOR)

    assert claim(store, worker, 3) == []
    assert there(redis) == ids


def test_a_worker_that_the_store_does_not_know_takes_nothing_away(store: Store, redis: Redis) -> None:
    ids = [receipt.id for receipt in submit_many(store, 3)]
    worker = join(store)
    store.leave(worker)

    assert claim(store, worker, 3) == []
    assert there(redis) == ids


def test_jobs_come_from_the_wanted_queues_only(store: Store, redis: Redis) -> None:
    mail, video = submit(store, queue="mail"), submit(store, queue="video")
    worker = join(store)

    assert [run.id for run in store.exchange(worker, (), Wants(queues={"video": 5, "other": 1})).claimed] == [video.id]
    assert there(redis, "mail") == [mail.id]


def test_jobs_of_all_queues_come_in_one_order_and_no_more_than_wanted(store: Store, clock: MovableClock) -> None:
    ids: list[str] = []
    for number in range(9):
        ids.append(submit(store, queue=("mail", "video", "default")[number % 3]).id)
        clock.advance(0.001)
    worker = join(store)

    assert [run.id for run in store.exchange(worker, (), Wants(anywhere=5)).claimed] == ids[:5]
    assert [run.id for run in store.exchange(worker, (), Wants(anywhere=5)).claimed] == ids[5:]


def test_nothing_to_claim_and_nothing_to_report_asks_nothing_of_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = join(store)
    monkeypatch.setattr(vars(store)["_database"], "write", lambda: pytest.fail("a transaction for nothing"))

    answer = store.exchange(worker, (), Wants(anywhere=5))

    assert (answer.claimed, answer.looked) == ((), False)


def test_a_submission_that_is_a_repeat_is_not_handed_on(store: Store, redis: Redis) -> None:
    job = a_job()
    store.submit([job])
    claim(store, join(store))

    store.submit([job])

    assert there(redis) == []


def test_a_bulk_of_more_than_one_command_holds_is_handed_on_whole(dispatch: RedisDispatch, redis: Redis) -> None:
    jobs = [Ready("mail", str(number), 0, 0) for number in range(12_345)]

    assert dispatch.put(jobs)
    assert redis.zcard("workmill:queue:mail") == 12_345
    assert dispatch.put((), [("mail", job.id) for job in jobs])
    assert redis.zcard("workmill:queue:mail") == 0


def test_while_redis_is_away_the_store_is_asked_and_then_redis_again(
    postgres_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RedisServer()
    dispatch = RedisDispatch(server.url)
    try:
        store = postgres_store(MovableClock(), heads=DispatchedHeads(dispatch))
        worker = join(store)
        server.kill()
        ids = {submit(store).id for _ in range(3)}
        assert {run.id for run in claim(store, worker, 5)} == ids
        server.start()
        monkeypatch.setattr(dispatch._server, "_away_until", 1.0)
        submit(store)
        assert dispatch.depth("default") == 1
    finally:
        dispatch.close()
        server.remove()
