"""Two places to test at: a shop with a real store, workers and everything told; and a site with one executor and no store."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from workmill.clock import monotonic
from workmill.domain.errors import StoreUnavailable
from workmill.domain.job import Claimed, Job
from workmill.domain.states import State
from workmill.domain.worker import Hello
from workmill.engine.context import RunningJob, current_job
from workmill.engine.executors.base import Executor, Floor
from workmill.engine.executors.loop import loop_executors
from workmill.engine.executors.thread import ThreadExecutor
from workmill.engine.gate import Gate
from workmill.engine.handlers import Hooks
from workmill.engine.watchdog import Watchdog
from workmill.engine.worker import Worker, WorkerOptions
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.telemetry import DEBUG, Event, Telemetry
from workmill.testing.factories import a_job

PATIENCE = 20.0


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until it holds, and return what it returned; a bound, not a measure."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.005)
    return found


@dataclass
class Handler:
    """A handler from payload text to result text."""

    name: str
    call: Callable[[str], Any]
    kind: str = "thread"
    give_up_on: tuple[type[BaseException], ...] = ()
    memory_limit: int | None = None


class Registry:
    """The handlers of a shop."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.get = self.handlers.get

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self.handlers)


class Faults:
    """A store, seen by a worker, that fails when it is told to: `break_before` loses the request, `break_after` the answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.break_before: set[str] = set()
        self.break_after: set[str] = set()
        self.answers: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, name: str, *args: Any) -> Any:
        self.calls.append((name, args))
        if name in self.break_before:
            raise StoreUnavailable(f"{name}: the store is away")
        answer = getattr(self._store, name)(*args)
        self.answers.append(answer)
        if name in self.break_after:
            self.break_after.discard(name)
            raise StoreUnavailable(f"{name}: the answer was swallowed")
        return answer


@dataclass
class Shop:
    """See above."""

    store: Store
    registry: Registry = field(default_factory=Registry)
    events: list[Event] = field(default_factory=list)
    telemetry: Telemetry = field(default_factory=Telemetry)
    workers: list[Worker] = field(default_factory=list)
    locks: list[threading.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.telemetry.subscribe(self.events.append, DEBUG)
        self.faults = Faults(self.store)

    def handler(self, call: Callable[[str], Any], *, kind: str = "thread", name: str = "task", **options: Any) -> None:
        """Declare what runs the jobs of a type."""
        self.registry.handlers[name] = Handler(name, call, kind, **options)

    def lock(self) -> threading.Event:
        """Something for handlers to wait for; set at the end of the test, whatever happens."""
        self.locks.append(threading.Event())
        return self.locks[-1]

    def submit(self, count: int = 1, type: str = "task", **options: Any) -> list[str]:
        """Submit jobs, and return their ids."""
        return [receipt.id for receipt in self.store.submit([a_job(type, **options) for _ in range(count)])]

    def worker(self, *, hooks: Hooks | None = None, beside: Any = (), executors: Any = None, **options: Any) -> Worker:
        """A worker that has not been started; it is stopped at the end of the test."""
        worker = Worker(
            self.faults,
            self.registry,
            WorkerOptions(**{"lease_seconds": 15.0, "concurrency": 4, **options}),
            hooks=hooks,
            telemetry=self.telemetry,
            waking=self.store,
            beside=beside,
            executors=executors,
        )
        self.workers.append(worker)
        return worker

    def start(self, **options: Any) -> Worker:
        """A worker that works."""
        worker = self.worker(**options)
        worker.start()
        return worker

    @staticmethod
    def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Wait until it holds, and return what it returned."""
        return until(condition, seconds)

    def job(self, job_id: str) -> Job:
        return self.store.job(job_id)

    def states(self, ids: list[str]) -> set[State]:
        """In which states the jobs are."""
        return {self.store.job(job_id).state for job_id in ids}

    def wait_for(self, ids: list[str], *states: State) -> None:
        """Wait until all the jobs are in one of the states (none given: have ended)."""
        if states:
            until(lambda: self.states(ids) <= set(states))
        else:
            until(lambda: len(self.store.endings(ids)) == len(ids))

    def told(self, name: str) -> list[Event]:
        """The events of that name so far."""
        return [event for event in list(self.events) if event.name == name]

    def started(self, count: int = 1) -> None:
        """Wait until so many runs have begun."""
        until(lambda: len(self.told("job.started")) >= count)

    def runs_of(self, job_id: str) -> int:
        """How often the job has begun in a worker of this shop."""
        return sum(event.job is not None and event.job.id == job_id for event in self.told("job.started"))

    def rescue(self) -> None:
        """Take turns of upkeep until a worker's jobs have been taken back, and queue them."""
        until(lambda: self.store.win_turn(0.0) and self.store.rescue())
        self.store.promote()

    @staticmethod
    def heeding(lock: threading.Event) -> Callable[[str], Any]:
        """A handler that ends when it is told to, or when the lock is set."""

        def handler(_payload: str) -> None:
            while not lock.wait(0.002):
                current_job().check()

        return handler

    @staticmethod
    def deaf(lock: threading.Event) -> Callable[[str], Any]:
        """A handler that ends when the lock is set, whatever it is told."""

        def handler(_payload: str) -> str:
            lock.wait(PATIENCE)
            return '"late"'

        return handler

    def other_worker(self, lease: float = 15.0) -> str:
        """The id of a worker that somebody else is."""
        return self.store.join(Hello(name="other", host="other", pid=1, version="0", lease_seconds=lease))

    def close(self) -> None:
        self.faults.break_before.clear()
        for lock in self.locks:
            lock.set()
        for worker in self.workers:
            worker.stop(0)


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store, in memory and in a file."""
    store = open_store("sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db")
    yield store
    store.close()


@pytest.fixture
def shop(store: Store) -> Iterator[Shop]:
    shop = Shop(store)
    yield shop
    shop.close()


class Site:
    """An executor of one kind and what comes back from it. `run` takes a plain function, and makes it a coroutine for the loop."""

    def __init__(self, kind: str, concurrency: int = 2, hooks: Hooks | None = None) -> None:
        self.kind = kind
        self.back: SimpleQueue[RunningJob] = SimpleQueue()
        self.telemetry = Telemetry()
        self.gate = Gate(self.telemetry)
        self.gate.renew(inf)
        self.watchdog = Watchdog(lambda _run: None, self.telemetry)
        floor = Floor(self.back.put, self.gate, self.watchdog, hooks or Hooks(), self.telemetry)
        factory: Any = ThreadExecutor if kind == "thread" else loop_executors(self.telemetry)
        self.executor: Executor = factory(floor, concurrency)

    def job(self, function: Callable[[str], Any], *, timeout: float | None = None, start_by: float = inf, **options: Any) -> RunningJob:
        async def as_coroutine(payload: str) -> Any:
            result = function(payload)
            return await result if asyncio.iscoroutine(result) else result

        handler: Any = type("Handler", (), {"name": "task", "kind": self.kind, "give_up_on": (), **options})()
        handler.call = function if self.kind == "thread" else as_coroutine
        claimed = Claimed("id", 1, "default", "task", '{"x":1}', 2, 5, timeout, None, None, 0)
        return RunningJob(claimed, handler, monotonic(), start_by)

    def run(self, function: Callable[[str], Any], **options: Any) -> Any:
        """Run one job and return its outcome."""
        self.executor.start([self.job(function, **options)])
        return self.back.get(timeout=PATIENCE).outcome

    def close(self) -> None:
        self.watchdog.stop()
        self.watchdog.join()
        self.executor.close()


@contextmanager
def open_site(kind: str, **options: Any) -> Iterator[Site]:
    site = Site(kind, **options)
    try:
        yield site
    finally:
        site.close()


@pytest.fixture(params=["thread", "loop"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with open_site(request.param) as site:
        yield site


@pytest.fixture
def site_of() -> Any:
    """Opens a site of one's own making: kind, concurrency, hooks."""
    return open_site
