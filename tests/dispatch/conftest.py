"""A store on PostgreSQL whose claims go through Redis, and a clock to move."""

from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from workmill.dispatch.redis import RedisDispatch
from workmill.store.base import Store
from workmill.testing.clock import MovableClock
from workmill.testing.servers import RedisServer
from workmill.testing.watchful import Watchful


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def dispatch(redis_server: RedisServer, redis: Redis) -> Iterator[RedisDispatch]:
    """One process's dispatcher, on an empty server."""
    dispatch = RedisDispatch(redis_server.url)
    yield dispatch
    dispatch.close()


@pytest.fixture
def heads(dispatch: RedisDispatch) -> Watchful:
    return Watchful(dispatch)


@pytest.fixture
def store(postgres_store: Callable[..., Store], clock: MovableClock, heads: Watchful) -> Store:
    heads.store = postgres_store(clock, heads=heads)
    return heads.store
