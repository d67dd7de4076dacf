"""From WORKMILL_DISPATCH to a dispatcher: what is refused, with what words, and that nothing is opened before it is used."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis

from workmill import Workmill
from workmill.dispatch import open as opening
from workmill.dispatch.heads import DispatchedHeads
from workmill.dispatch.open import open_heads
from workmill.dispatch.redis import RedisDispatch
from workmill.domain.errors import ConfigurationError
from workmill.store.base import Store
from workmill.store.heads import Ready
from workmill.store.open import open_store
from workmill.testing import memory_mill
from workmill.testing.clock import MovableClock
from workmill.testing.factories import claim, join, submit
from workmill.testing.servers import PostgresServer, RedisServer


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "redis",
        "localhost:6379",
        "amqp://x",
        "redis://host:port",
        "redis://[::1",
        "redis://host:6379/x",
        "redis://host/0?socket_timeout=x",
        "redis://host/0?socket_timeout=20",
        "redis://host/0?decode_responses=no",
        "redis://host/0?encoding=bogus",
        "redis://host/0?ssl_cert_reqs=none",
        "redis://host/0?timeout=3",
        "redis://host/0?foo=bar",
    ],
)
def test_what_names_no_redis_is_refused_by_the_name_of_the_variable(url: str) -> None:
    with pytest.raises(ConfigurationError, match="WORKMILL_DISPATCH"):
        open_heads(url)


@pytest.mark.parametrize("url", ["redis://app:secret@host:port/0", "http://app:secret@host/0", "redis://app:secret@host/x"])
def test_a_refusal_does_not_show_the_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        open_heads(url)

    assert "secret" not in str(refusal.value)


def test_direct_and_no_word_mean_no_dispatcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKMILL_DISPATCH", raising=False)

    assert open_heads() is None
    assert open_heads("direct") is None


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _: None)

    with pytest.raises(ConfigurationError, match=r"pip install 'workmill\[redis\]'"):
        open_heads("redis://localhost")


def test_nothing_is_opened_before_it_is_used() -> None:
    before = threading.active_count()

    heads = open_heads("redis://203.0.113.1")  # nobody is there

    assert isinstance(heads, DispatchedHeads)
    assert threading.active_count() == before


def test_sqlite_refuses_a_dispatcher(tmp_path: Path, redis_server: RedisServer) -> None:
    with pytest.raises(ConfigurationError, match="WORKMILL_DISPATCH"):
        open_store(f"sqlite:///{tmp_path}/jobs.db", heads=open_heads(redis_server.url))


def test_a_password_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with closing(RedisDispatch("redis://app:secret@127.0.0.1:1/0")) as dispatch:
        assert not dispatch.put([Ready("mail", "id", 0, 0)])

    assert "127.0.0.1" in caplog.text
    assert "secret" not in caplog.text


def test_a_forked_child_makes_connections_of_its_own(
    postgres_store: Callable[..., Store], redis_server: RedisServer, redis: Redis, clock: MovableClock
) -> None:
    heads = open_heads(redis_server.url)
    assert heads is not None
    store = postgres_store(clock, heads=heads)
    stop = store.subscribe(lambda: None)
    submit(store)
    clients = {client["id"] for client in redis.client_list()}

    child = os.fork()
    if child == 0:
        try:
            submit(store)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    submit(store)

    assert os.waitstatus_to_exitcode(status) == 0
    assert clients <= {client["id"] for client in redis.client_list()}
    assert redis.zcard("workmill:queue:default") == 3
    assert len(claim(store, join(store), 5)) == 3
    stop()


def test_a_test_of_the_application_leaves_its_redis_alone(
    redis: Redis, redis_server: RedisServer, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKMILL_DISPATCH", redis_server.url)
    app = Workmill(postgres.url)

    @app.job
    def greet() -> str:
        return "hello"

    link = app._link
    assert link.store
    redis.sadd("workmill:queues", "default")
    redis.zadd("workmill:queue:default", {"the application's": 1})
    with memory_mill(app) as mill, mill.run_worker():
        job = greet.enqueue()
        job.wait(timeout=20)
        assert job.result == "hello"

    assert redis.zcard("workmill:queue:default") == 1
    assert link.heads is not None
    link.close()
