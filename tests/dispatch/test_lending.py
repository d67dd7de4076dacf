"""What one process's heads do around an exchange: when they look in the store, what they say they have seen, what they give back."""

from collections.abc import Callable, Sequence
from math import inf

import pytest
from redis import Redis

from workmill.dispatch.heads import PLACES, DispatchedHeads
from workmill.dispatch.redis import RedisDispatch
from workmill.domain.errors import StoreUnavailable
from workmill.domain.worker import Exchange, Wants
from workmill.store.base import Store
from workmill.store.heads import Ready
from workmill.store.postgres.session import PostgresSession
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim, claim_one, join, submit, submit_many, succeeded
from workmill.testing.steps import ACTOR

WANTS = Wants(anywhere=5)


@pytest.fixture
def looked(dispatch: RedisDispatch) -> DispatchedHeads:
    """Heads whose worker has just looked."""
    heads = DispatchedHeads(dispatch, look_seconds=inf)
    heads.lend("worker", WANTS, lambda _: Exchange((), ()), needed=True)
    return heads


def ids(redis: Redis, queue: str) -> list[str]:
    return list(redis.zrange(f"workmill:queue:{queue}", 0, -1))


def test_ids_go_back_when_the_claim_fails(looked: DispatchedHeads, dispatch: RedisDispatch, redis: Redis) -> None:
    dispatch.put([Ready("mail", str(number), 0, 1_000 * number) for number in range(3)])

    def fail(given: Sequence[Ready] | None) -> Exchange:
        assert [job.id for job in given or ()] == ["0", "1", "2"]
        assert ids(redis, "mail") == []
        raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        looked.lend("worker", WANTS, fail, needed=False)

    assert ids(redis, "mail") == ["0", "1", "2"]


def test_what_only_the_dispatcher_was_asked_for_does_not_count_as_a_look(looked: DispatchedHeads, dispatch: RedisDispatch) -> None:
    """A burst would end there."""
    dispatch.put([Ready("mail", "stale", 0, 0)])

    tried = looked.lend("worker", WANTS, lambda _: Exchange((), ()), needed=False)
    reported = looked.lend("other", Wants(), lambda _: Exchange((), ()), needed=True)

    assert (tried.looked, reported.looked) == (False, True)


def test_an_exchange_whose_ids_were_all_stale_is_done_once_and_the_next_looks(looked: DispatchedHeads, dispatch: RedisDispatch) -> None:
    """To repeat it would record its outcomes twice."""
    given: list[Sequence[Ready] | None] = []

    def exchange(jobs: Sequence[Ready] | None) -> Exchange:
        given.append(jobs)
        return Exchange((), ())

    dispatch.put([Ready("mail", "stale", 0, 0)])
    looked.lend("worker", WANTS, exchange, needed=True)
    looked.lend("worker", WANTS, exchange, needed=False)

    assert given == [[Ready("mail", "stale", 0, 0)], None]


def test_each_worker_of_a_process_looks_at_each_of_its_queues(dispatch: RedisDispatch) -> None:
    heads = DispatchedHeads(dispatch, look_seconds=inf)
    mail, video = Wants(queues={"mail": 1}), Wants(queues={"video": 1, "mail": 1})

    assert [heads.due(worker, mail) for worker in ("one", "other", "one", "other")] == [True, True, False, False]
    assert [heads.due("one", video), heads.due("one", video), heads.due("one", mail)] == [True, False, False]
    heads.look()
    assert heads.due("one", mail)


def test_what_is_remembered_of_looks_has_an_end(dispatch: RedisDispatch) -> None:
    heads = DispatchedHeads(dispatch, look_seconds=inf)

    for number in range(3 * PLACES):
        heads.due(str(number), WANTS)

    assert len(heads._look_at) <= PLACES


def test_what_goes_back_rings_at_nobodys_door(looked: DispatchedHeads, dispatch: RedisDispatch, redis: Redis) -> None:
    """Draining workers that wake each other with what they refuse never rest."""
    dispatch.put([Ready("mail", "1", 0, 0)])
    with redis.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe("workmill:changes")
        heard.get_message(timeout=1)

        looked.lend("worker", WANTS, lambda _: Exchange((), (), draining=True), needed=False)

        assert heard.get_message(timeout=0.3) is None
    assert ids(redis, "mail") == ["1"]


def test_ids_beside_the_backlog_of_a_limited_queue_go_back(store: Store, redis: Redis, clock: MovableClock) -> None:
    submit_many(store, 5, queue="limited")
    store.limit("limited", 5, actor=ACTOR)
    clock.advance(1)
    others = [submit(store, queue="mail").id for _ in range(3)]
    worker = join(store)
    claim(store, worker, 0)

    assert len(claim(store, worker, 5, None)) == 5
    assert ids(redis, "mail") == others
    assert [run.id for run in claim(store, worker, 5, None)] == others


def test_limited_queues_with_nothing_to_claim_are_not_gone_through(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        store.limit(f"limited-{number}", 5, actor=ACTOR)
    submit_many(store, 2, queue="limited-7")
    submit(store, queue="mail")
    worker = join(store)
    run = claim_one(store, worker, "mail")
    asked: list[tuple[str, int]] = []
    each = PostgresSession.each

    def count(self: PostgresSession, name: str, table: Sequence[tuple[object, ...]], /, **parameters: object) -> list[tuple[object, ...]]:
        asked.append((name, len(table)))
        return each(self, name, table, **parameters)

    monkeypatch.setattr(PostgresSession, "each", count)
    claimed = store.exchange(worker, [succeeded(run)], Wants(anywhere=5)).claimed

    assert len(claimed) == 2
    assert {rows for name, rows in asked if name in {"lock_queues", "count_running", "list_claimable"}} == {1}
    assert len([name for name, _ in asked if name == "list_claimable"]) < 5


def test_a_limited_queue_that_nobody_wants_costs_no_exchange(
    postgres_store: Callable[..., Store], dispatch: RedisDispatch, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store(clock, heads=DispatchedHeads(dispatch, look_seconds=inf))
    store.limit("limited", 1, actor=ACTOR)
    worker = join(store)
    claim(store, worker, 5, "mail")
    monkeypatch.setattr(vars(store)["_database"], "write", lambda: pytest.fail("a transaction for nothing"))

    assert not store.exchange(worker, (), Wants(queues={"mail": 5})).looked
