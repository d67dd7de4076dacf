"""A `Workmill`'s way to its store: made at the first use, in each process anew, with threads for those who must not block."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from workmill.client.waiting import Waiter
from workmill.config import from_environment
from workmill.dispatch.open import open_heads
from workmill.domain.errors import WaitTimeout
from workmill.domain.job import NewJob, Receipt
from workmill.domain.limits import check_seconds
from workmill.domain.states import State
from workmill.engine.context import current
from workmill.registry import Registry
from workmill.store.base import OnLoop, Store
from workmill.store.open import open_store

if TYPE_CHECKING:
    from workmill.dispatch.heads import DispatchedHeads

T = TypeVar("T")
before_submit: Final[list[Callable[[Link], object]]] = []
"""Called with a link before it submits; what one of them raises prevents it. For tests, whose jobs must not get into a real store."""
STORE_THREADS: Final = 4
"""So many reads of coroutines at a time."""


class Link:
    """What the functions, handles and operators of one `Workmill` share."""

    def __init__(self, url: str | None, registry: Registry) -> None:
        self.registry = registry
        self.before_wait: Callable[[], object] = _nothing
        self.heads: DispatchedHeads | None = None
        self._url = url
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._waiter: Waiter | None = None
        self._pool: ThreadPoolExecutor | None = None
        _LINKS.add(self)

    @property
    def url(self) -> str:
        """The store's URL: as given, or `WORKMILL_STORE` as it is at the first use."""
        return self._url or from_environment().store

    @property
    def store(self) -> Store:
        """The store; it opens nothing before its first operation."""
        if self._store is None:
            with self._lock:
                if self._store is None:
                    self.heads = open_heads()
                    self._store = open_store(self.url, heads=self.heads)
        return self._store

    @property
    def actor(self) -> str:
        """Who the audit says it was."""
        return _user_and_host()

    def submit(self, jobs: Sequence[NewJob], connection: Any = None) -> list[Receipt]:
        """Submit in one transaction: of our own, or the caller's."""
        self.check_may_submit()
        return self.store.submit(jobs) if connection is None else self.store.submit_within(connection, jobs)

    async def submit_async(self, jobs: Sequence[NewJob], connection: Any = None) -> list[Receipt]:
        """`submit` without blocking the event loop, save in a blocking connection's own transaction, which must stay in its thread."""
        if jobs and iscoroutinefunction(getattr(connection, "execute", None)):
            self.check_may_submit()
            return await self.run(self.store.submit_within, OnLoop(connection, asyncio.get_running_loop()), jobs)
        if connection is not None or not jobs:
            return self.submit(jobs, connection)
        self.check_may_submit()
        return await asyncio.shield(asyncio.wrap_future(self.store.submit_soon(jobs)))

    def check_may_submit(self) -> None:
        """Raise what those in `before_submit` have to say against it."""
        for check in before_submit:
            check(self)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that uses the store, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads(), function, *args)

    def wait(self, job_id: str, timeout: float | None) -> None:
        """Block until the job has ended.

        Raises:
            WaitTimeout: it had not within `timeout` seconds.
            NotFound: it had not, and there is no such job.

        """
        seconds = _patience(timeout)
        if self._has_ended(job_id):
            return
        ending = self._ending(job_id)
        try:
            ending.result(seconds)
        except TimeoutError:
            raise self._late(job_id, seconds) from None
        finally:
            self._let_go(ending)

    async def wait_async(self, job_id: str, timeout: float | None) -> None:  # noqa: ASYNC109 - it raises an error of its own
        """`wait` without blocking the event loop."""
        seconds = _patience(timeout)
        if await self.run(self._has_ended, job_id):
            return
        ending = await self.run(self._ending, job_id)
        try:
            await asyncio.wait_for(asyncio.wrap_future(ending), seconds)
        except TimeoutError:
            raise await self.run(self._late, job_id, seconds) from None
        finally:
            self._let_go(ending)

    def close(self) -> None:
        """End the threads and close the store's connections in this process. A later use begins anew."""
        with self._lock:
            waiter, self._waiter = self._waiter, None
            pool, self._pool = self._pool, None
        if waiter is not None:
            waiter.stop()
            waiter.join()
        if pool is not None:
            pool.shutdown()
        if self._store is not None:
            self._store.close()
        if self._url is None:
            self._store = None

    @contextmanager
    def replaced(self, store: Store) -> Iterator[None]:
        """Within the block everything goes to another store; that one is closed at its end."""
        self.close()
        before, self._store, self.heads = (self._store, self.heads), store, None
        try:
            yield
        finally:
            self.close()
            self._store, self.heads = before

    def forget_threads(self) -> None:
        """After a fork: the threads and locks are the parent's."""
        self._lock, self._waiter, self._pool = threading.Lock(), None, None

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(STORE_THREADS, "workmill-store")
            return self._pool

    def _has_ended(self, job_id: str) -> bool:
        if self.store.endings([job_id]):
            return True
        self.before_wait()
        return False

    def _ending(self, job_id: str) -> Future[State]:
        store = self.store
        with self._lock:
            ending = None if self._waiter is None else self._waiter.ending(job_id)
            return ending or self._ending_of_new_waiter(store, job_id)

    def _ending_of_new_waiter(self, store: Store, job_id: str) -> Future[State]:
        self._waiter = Waiter(store)
        ending = self._waiter.ending(job_id)
        assert ending is not None  # noqa: S101 - a waiter that has not started has not retired
        self._waiter.start()
        return ending

    def _let_go(self, ending: Future[State]) -> None:
        ending.cancel()
        if (waiter := self._waiter) is not None:
            waiter.wake()

    def _late(self, job_id: str, seconds: float | None) -> WaitTimeout:
        self.store.job(job_id)
        return WaitTimeout(job_id, seconds or 0.0)


def inherited_traceparent() -> str | None:
    """The trace context of the job that is running here, if one is."""
    run = current.get(None)
    return None if run is None else run.claimed.traceparent


def _nothing() -> None:
    pass


def _patience(timeout: float | None) -> float | None:
    return None if timeout is None else check_seconds("timeout", timeout)


def _user_and_host() -> str:
    user = str(os.getpid())
    with suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
    return f"python:{user}@{socket.gethostname()}"


_LINKS: Final[WeakSet[Link]] = WeakSet()


def _after_fork() -> None:
    for link in _LINKS:
        link.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
