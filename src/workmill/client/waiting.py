"""Waiting for jobs to end: one thread looks for all who wait, when the store hints that something ended, and only while somebody waits."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from itertools import chain
from typing import Final

from workmill.domain.errors import StoreUnavailable
from workmill.domain.states import State
from workmill.loops import Loop
from workmill.store.base import Store
from workmill.telemetry import Telemetry

POLL: Final = 1.0
"""A hint may be lost; so often it is looked without one."""


class Waiter(Loop):
    """Resolves a future for each job that has ended. It retires when nobody waits any more; then it takes nobody new."""

    name = "waiter"

    def __init__(self, store: Store) -> None:
        super().__init__(Telemetry())
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Future[State]]] = {}
        self._unsubscribe = store.subscribe(self.wake)

    def ending(self, job_id: str) -> Future[State] | None:
        """A future of the state in which the job ends; None when this waiter has retired. Cancel it, and wake the loop, to stop waiting."""
        future: Future[State] = Future()
        with self._lock:
            if self.stopping:
                return None
            self._waiting.setdefault(job_id, []).append(future)
        self.wake()
        return future

    def run_once(self) -> float:
        """Look once; returns when to look again without a hint."""
        if ids := self._wanted():
            for job_id, state in self._store.endings(ids).items():
                self._resolve(job_id, state)
        return POLL if self._wanted() or not self._retire() else 0.0

    def stop(self) -> None:
        """Whoever still waits gets an error."""
        with self._lock:
            self.stopping = True
            left, self._waiting = self._waiting, {}
        self._unsubscribe()
        for future in chain.from_iterable(left.values()):
            if future.set_running_or_notify_cancel():
                future.set_exception(StoreUnavailable("the Workmill was closed while this waited"))
        super().stop()

    def _wanted(self) -> list[str]:
        with self._lock:
            self._waiting = {
                job_id: kept for job_id, futures in self._waiting.items() if (kept := [f for f in futures if not f.cancelled()])
            }
            return list(self._waiting)

    def _resolve(self, job_id: str, state: State) -> None:
        with self._lock:
            futures = self._waiting.pop(job_id, ())
        for future in futures:
            if future.set_running_or_notify_cancel():
                future.set_result(state)

    def _retire(self) -> bool:
        with self._lock:
            self.stopping = not self._waiting
        if self.stopping:
            self._unsubscribe()
        return self.stopping
