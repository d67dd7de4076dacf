"""Runs `async def` handlers as tasks of one event loop in a thread of its own; timeouts and cancellation cancel the task."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from workmill.clock import monotonic
from workmill.engine.context import RunningJob, current
from workmill.engine.executors.base import Floor, end_if_forked, here, raised, returned
from workmill.telemetry import ERROR, Telemetry

CLOSING: Final = 1.0
"""Seconds that the tasks have to end when the loop is closed."""


class LoopThread:
    """The event loop of a worker (uvloop's, where that is installed), started at the first use and closed by the last user."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._users = 0
        self._closing = False
        self._runner = asyncio.Runner(loop_factory=_loop_factory())
        self._thread = threading.Thread(target=self._main, name="workmill-loop", daemon=True)
        self.loop: asyncio.AbstractEventLoop | None = None

    def enter(self) -> asyncio.AbstractEventLoop:
        """The running loop, for one more user."""
        self._users += 1
        if self.loop is None:
            self.loop = self._runner.get_loop()
            self._thread.start()
        return self.loop

    def leave(self) -> None:
        """One user less; after the last the loop ends, if no handler blocks it."""
        self._users -= 1
        if self._users == 0 and self.loop is not None:
            self._closing = True
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CLOSING)

    def _main(self) -> None:
        loop = self._runner.get_loop()
        while not self._closing:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - SystemExit in a task that a handler made leaves the loop; it goes on
                self._telemetry.emit("loop.interrupted", ERROR, error=repr(error))
        self._runner.close()


class LoopExecutor:
    """The async runs of one pool. What is not marked otherwise happens on the loop."""

    def __init__(self, floor: Floor, concurrency: int, thread: LoopThread) -> None:
        self._floor = floor
        self._concurrency = concurrency
        self._thread = thread
        self._loop = thread.enter()
        self._home = here()
        self._inbox: deque[RunningJob] = deque()
        self._call = self._with_middleware if floor.hooks.middleware else _plainly
        self._running: dict[RunningJob, asyncio.Task[None]] = {}

    def start(self, runs: Sequence[RunningJob]) -> None:
        self._inbox.extend(runs)
        self._loop.call_soon_threadsafe(self._pump)

    def recall(self) -> list[RunningJob]:
        runs: list[RunningJob] = []
        with suppress(IndexError):
            while True:
                runs.append(self._inbox.popleft())
        return runs

    def interrupt(self, run: RunningJob) -> None:
        with suppress(RuntimeError):  # the loop may be closed
            self._loop.call_soon_threadsafe(self._cancel, run)

    def resize(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._loop.call_soon_threadsafe(self._pump)

    def close(self) -> None:
        self._thread.leave()

    def _pump(self) -> None:
        inbox, running = self._inbox, self._running
        while inbox and len(running) < self._concurrency:
            try:
                run = inbox.popleft()
            except IndexError:  # recalled in this moment
                return
            if self._floor.admit(run):
                running[run] = task = self._loop.create_task(self._serve(run))
                task.add_done_callback(partial(self._done, run))

    async def _serve(self, run: RunningJob) -> None:
        current.set(run)
        try:
            result = await self._call(run)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt, never a dead worker
            run.outcome = raised(run, error, monotonic())
        else:
            run.outcome = returned(run, result, monotonic())
        end_if_forked(self._home)
        self._deliver(run)

    def _done(self, run: RunningJob, task: asyncio.Task[None]) -> None:
        """A task that anybody cancelled before its first step has told nobody: that is told here."""
        if run in self._running and task.cancelled():
            run.outcome = raised(run, asyncio.CancelledError(), monotonic())
            self._deliver(run)

    def _deliver(self, run: RunningJob) -> None:
        del self._running[run]
        self._floor.deliver(run)
        if self._inbox:
            self._pump()

    async def _with_middleware(self, run: RunningJob) -> str | None:
        result = None
        with self._floor.within(run):
            result = await _plainly(run)
        return result  # noqa: RET504 - a middleware may swallow what the handler raised

    def _cancel(self, run: RunningJob) -> None:
        if run in self._running:
            self._running[run].cancel()


def _plainly(run: RunningJob) -> Awaitable[str | None]:
    result: Awaitable[str | None] = run.handler.call(run.claimed.payload)
    return result


def loop_executors(telemetry: Telemetry) -> Callable[[Floor, int], LoopExecutor]:
    """A factory whose executors share one loop."""
    thread = LoopThread(telemetry)
    return lambda floor, concurrency: LoopExecutor(floor, concurrency, thread)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if find_spec("uvloop") is not None:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
        return factory
    return asyncio.new_event_loop
