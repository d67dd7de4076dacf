"""Runs `def` handlers in threads. A thread cannot be killed: timeouts and cancellation are what the handler looks at."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic
from workmill.engine.context import RunningJob, current
from workmill.engine.executors.base import Floor, end_if_forked, here, raised, returned

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSING: Final = 1.0
"""Seconds that idle threads have to end."""


class ThreadExecutor:
    """As many threads as runs at once, made when there is work for them."""

    def __init__(self, floor: Floor, concurrency: int) -> None:
        self._floor = floor
        self._concurrency = concurrency
        self._inbox: SimpleQueue[RunningJob | None] = SimpleQueue()
        self._call = self._with_middleware if floor.hooks.middleware else _plainly
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def start(self, runs: Sequence[RunningJob]) -> None:
        if len(self._threads) < self._concurrency:
            self._grow(len(runs))
        put = self._inbox.put
        for run in runs:
            put(run)

    def recall(self) -> list[RunningJob]:
        runs: list[RunningJob] = []
        try:
            while True:
                if (run := self._inbox.get_nowait()) is not None:
                    runs.append(run)
        except Empty:
            return runs

    def interrupt(self, run: RunningJob) -> None:
        """Nothing ends a thread: `job.check()` and `job.cancelled` say it to the handler."""

    def resize(self, concurrency: int) -> None:
        self._concurrency = concurrency
        for _ in range(len(self._threads) - concurrency):
            self._inbox.put(None)
        self._grow(self._inbox.qsize())

    def close(self) -> None:
        deadline = monotonic() + CLOSING
        self.resize(0)
        for thread in tuple(self._threads):
            thread.join(max(0.0, deadline - monotonic()))

    def _grow(self, most: int) -> None:
        with self._lock:
            for _ in range(min(most, self._concurrency - len(self._threads))):
                thread = threading.Thread(target=self._serve, name=f"workmill-run-{len(self._threads) + 1}", daemon=True)
                thread.start()
                self._threads.add(thread)

    def _surplus(self) -> bool:
        """Whether this thread is one too many; then it is counted out."""
        with self._lock:
            if len(self._threads) <= self._concurrency:
                return False
            self._threads.discard(threading.current_thread())
            return True

    def _serve(self) -> None:
        """The life of a thread. Every instruction in this loop is paid by every job."""
        take, admit, call, deliver = self._inbox.get, self._floor.admit, self._call, self._floor.deliver
        threads, ident, home = self._threads, threading.get_ident(), here()
        while True:
            run = take()
            if run is not None and admit(run):
                run.thread = ident
                current.set(run)
                try:
                    result = copy_context().run(call, run)
                except BaseException as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt, never a dead worker
                    run.outcome = raised(run, error, monotonic())
                else:
                    run.outcome = returned(run, result, monotonic())
                end_if_forked(home)
                deliver(run)
            if len(threads) > self._concurrency and self._surplus():
                return

    def _with_middleware(self, run: RunningJob) -> str | None:
        result = None
        with self._floor.within(run):
            result = _plainly(run)
        return result  # noqa: RET504 - a middleware may swallow what the handler raised


def _plainly(run: RunningJob) -> str | None:
    result: str | None = run.handler.call(run.claimed.payload)
    return result


make: Callable[[Floor, int], ThreadExecutor] = ThreadExecutor
