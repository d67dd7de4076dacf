"""A server that cannot be used, or only in part: nobody waits for it, nothing raises, and the log hears of it once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from redis import ConnectionError as Unreachable
from redis import Redis, ResponseError

from workmill.dispatch.heads import DispatchedHeads
from workmill.dispatch.redis import RedisDispatch
from workmill.dispatch.server import Server
from workmill.domain.worker import Wants
from workmill.store.base import Store
from workmill.store.heads import Ready
from workmill.store.postgres.listener import Notifier
from workmill.testing.clock import MovableClock
from workmill.testing.factories import submit
from workmill.testing.servers import RedisServer

MAIL, VIDEO = Ready("mail", "1", 0, 0), Ready("video", "2", 0, 0)


def failing(error: Exception) -> Callable[[Redis], Any]:
    def question(_: Redis) -> None:
        raise error

    return question


@pytest.mark.parametrize(
    "error", [Unreachable("refused"), ResponseError("OOM command not allowed"), RuntimeError("can't start new thread"), TypeError("?")]
)
def test_whatever_a_server_raises_it_is_left_alone_for_a_while(redis_server: RedisServer, error: Exception) -> None:
    server = Server(redis_server.url)

    assert server.ask(failing(error)) is None
    assert server.away
    assert server.ask(lambda _: "not asked") is None


def test_the_log_hears_of_a_server_that_comes_and_goes_once(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workmill.dispatch.server.AWAY_SECONDS", 0)
    server = Server(redis_server.url)

    for _ in range(50):
        server.ask(failing(Unreachable("refused")))
        server.ask(lambda _: True)

    assert [record.message.split(" ", 1)[1] for record in caplog.records] == [
        "cannot be used, workers claim from the store: refused",
        "can be used again",
    ]


@pytest.mark.parametrize("wants", [Wants(anywhere=5), Wants(queues={"alien": 5, "mail": 5, "video": 5})], ids=["all", "each"])
def test_a_key_of_another_kind_costs_its_own_queue_alone(dispatch: RedisDispatch, redis: Redis, wants: Wants) -> None:
    redis.set("workmill:queue:alien", "somebody's")
    redis.sadd("workmill:queues", "alien")

    assert not dispatch.put([Ready("alien", "0", 0, 0), MAIL, VIDEO])
    assert dispatch.depths(["alien", "mail", "video"]) == {"mail": 1, "video": 1}
    assert dispatch.depth("alien") is None
    assert dispatch.take(wants, frozenset()) == [MAIL, VIDEO]
    assert redis.get("workmill:queue:alien") == "somebody's"


def test_where_no_thread_can_be_started_the_commit_stands_and_the_database_tells(
    postgres_store: Callable[..., Store], dispatch: RedisDispatch, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store(clock, heads=DispatchedHeads(dispatch))
    start, told = threading.Thread.start, threading.Event()
    monkeypatch.setattr(Notifier, "send", lambda _: told.set())

    def refuse(thread: threading.Thread) -> None:
        if "redis" in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    receipt = submit(store, delay=60)
    store.resume("default", actor="test")

    assert store.job(receipt.id)
    assert told.wait(20)
    dispatch.close()


def test_many_threads_start_one_messenger(dispatch: RedisDispatch, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(8)

    def hint() -> None:
        barrier.wait()
        dispatch.hint(look=True)

    before = sum("redis-hints" in thread.name for thread in threading.enumerate())
    threads = [threading.Thread(target=hint) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum("redis-hints" in thread.name for thread in threading.enumerate()) == before + 1
    dispatch.close()
