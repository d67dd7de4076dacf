"""A floor to stand on: executors over real children, without a store."""

import importlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil
import pytest

from workmill.clock import monotonic
from workmill.domain.job import Claimed
from workmill.domain.outcome import Outcome
from workmill.engine.context import RunningJob, Stop
from workmill.engine.executors import guard
from workmill.engine.executors.base import Floor
from workmill.engine.executors.process import IsolatedExecutor, isolated_executors
from workmill.engine.gate import Gate
from workmill.engine.handlers import Hooks
from workmill.engine.watchdog import Watchdog
from workmill.telemetry import DEBUG, Event, Telemetry

PATIENCE = 30.0


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _living(word: str) -> list[psutil.Process]:
    """The children of this process that have this on their command line, zombies left out."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if word in child.cmdline():
                found.append(child)
    return found


def _until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.005)


@dataclass
class Isolation:
    """One executor and what it delivers. `events` holds everything that was told."""

    target: str
    handlers: Any
    ended: SimpleQueue[RunningJob] = field(default_factory=SimpleQueue)
    overdue: list[RunningJob] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        telemetry = Telemetry()
        telemetry.subscribe(self.events.append, DEBUG)
        self.gate = Gate(telemetry)
        self.gate.renew(math.inf)
        self.watchdog = Watchdog(self.overdue.append, telemetry)
        self.floor = Floor(self.ended.put, self.gate, self.watchdog, Hooks(), telemetry)
        self.executor: IsolatedExecutor | None = None

    def open(self, concurrency: int = 2) -> None:
        self.executor = isolated_executors(self.target)(self.floor, concurrency)

    def close(self) -> None:
        self.watchdog.stop()
        self.watchdog.join()
        executor, self.executor = self.executor, None
        if executor is not None:
            executor.close()

    def run(self, type: str, timeout: float | None = None, **payload: object) -> RunningJob:
        """A run, as it comes from a claim."""
        claimed = Claimed(f"job-{next(self.numbers)}", 1, "q", type, json.dumps(payload), 1, 5, timeout, None, None, 0)
        run = RunningJob(claimed, self.handlers.get(type), monotonic(), math.inf)
        run.lane = self.executor
        return run

    def start(self, type: str, timeout: float | None = None, **payload: object) -> RunningJob:
        run = self.run(type, timeout, **payload)
        self.executor.start([run])
        return run

    def stop(self, run: RunningJob, reason: Stop) -> None:
        run.stop(reason)
        self.executor.interrupt(run)

    def ending(self, seconds: float = PATIENCE) -> RunningJob:
        """The next run that is handed back."""
        try:
            return self.ended.get(timeout=seconds)
        except Empty:
            raise AssertionError("no run has ended in time") from None

    def outcome(self, type: str, timeout: float | None = None, **payload: object) -> Outcome:
        """Start a run and wait for how it ends."""
        run = self.start(type, timeout, **payload)
        ended = self.ending()
        assert ended is run
        return run.outcome

    def result(self, type: str, **payload: object) -> Any:
        return json.loads(self.outcome(type, **payload).result)

    def children(self) -> list[psutil.Process]:
        """The children that run jobs, the guard left out."""
        return _living("workmill.isolated")

    def guards(self) -> list[psutil.Process]:
        """The processes that outlive this one by a moment."""
        return _living(guard.__file__)

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Whether a process has ended; a zombie that its new parent has not yet reaped has."""
    return _gone


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Wait until a condition is true, at most half a minute."""
    return _until


@pytest.fixture
def make_isolation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Isolation]]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    module = importlib.import_module("isolated_target")
    made: list[Isolation] = []
    before = set(psutil.Process().children())  # a server that other tests share may be one

    def make(target: str) -> Isolation:
        made.append(Isolation(target, module.mill.registry))
        return made[-1]

    yield make
    for isolation in made:
        isolation.close()
    assert not set(psutil.Process().children()) - before, "a child process was left behind"


@pytest.fixture
def isolation(make_isolation: Callable[[str], Isolation]) -> Isolation:
    isolation = make_isolation("isolated_target:mill")
    isolation.open()
    return isolation
