"""A worker without threads: it runs one job at a time where it is called, and does with it what a real one would."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from math import inf
from typing import Any, Final

from workmill.clock import monotonic
from workmill.domain.job import Claimed
from workmill.domain.limits import MAX_LEASE_SECONDS
from workmill.domain.outcome import Accepted, Failed, Outcome, Released, ReleaseReason
from workmill.domain.states import State
from workmill.domain.worker import Hello, Wants
from workmill.engine.context import RunningJob, current
from workmill.engine.executors.base import raised, returned
from workmill.engine.handlers import Hooks, Registry
from workmill.store.base import Store

log: Final = logging.getLogger(__name__)


class InlineWorker:
    """Member of the store from its making to `leave`. What it does is in the hands of its caller: `claim`, then `run`, again and again."""

    def __init__(self, store: Store, registry: Registry, hooks: Hooks, runner: asyncio.Runner) -> None:
        self._store = store
        self._registry = registry
        self._hooks = hooks
        self._runner = runner
        self._id = store.join(_hello(registry))

    def claim(self) -> Claimed | None:
        """The next job that is due, by priority and time; None: nothing is."""
        self._store.promote()
        self._store.expire()
        return next(iter(self._store.exchange(self._id, (), Wants(anywhere=1)).claimed), None)

    def run(self, claimed: Claimed) -> tuple[Outcome, BaseException | None]:
        """Run a claimed job and put its outcome on record; what its function raised comes beside it."""
        outcome, error = self._perform(claimed)
        (verdict,) = self._store.exchange(self._id, [outcome], Wants()).verdicts
        if isinstance(outcome, Failed):
            log.warning("%s %s failed:\n%s", claimed.type, claimed.id, outcome.error.traceback or outcome.error.message)
            if isinstance(verdict, Accepted) and verdict.state is State.DEAD:
                self._mourn(claimed, outcome)
        return outcome, error

    def leave(self) -> None:
        """Give back what is held."""
        self._store.leave(self._id)

    def _perform(self, claimed: Claimed) -> tuple[Outcome, BaseException | None]:
        handler = self._registry.get(claimed.type)
        if handler is None:
            return Released(claimed.fence, ReleaseReason.UNKNOWN_TYPE), None
        run = RunningJob(claimed, handler, monotonic(), inf)
        run.begin(monotonic())
        token = current.set(run)
        try:
            return returned(run, self._call(run), monotonic()), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever escapes a function is its failure, in a worker too
            where = error.__traceback__
            return raised(run, error, monotonic()), error.with_traceback(where)
        finally:
            current.reset(token)

    def _call(self, run: RunningJob) -> Any:
        with ExitStack() as stack:
            for around in self._hooks.middleware:
                stack.enter_context(around(run))
            result = run.handler.call(run.claimed.payload)
            return self._await(result) if inspect.iscoroutine(result) else result

    def _await(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """In this thread; in another when an event loop runs here already, as in a test that is a coroutine itself."""
        context = copy_context()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(coroutine, context=context)
        with ThreadPoolExecutor(1, "workmill-inline") as thread:
            return thread.submit(self._runner.run, coroutine, context=context).result()

    def _mourn(self, claimed: Claimed, outcome: Failed) -> None:
        handler = self._registry.get(claimed.type)
        assert handler is not None  # it has just run
        for hook in self._hooks.on_dead:
            hook(RunningJob(claimed, handler, monotonic(), inf), outcome.error)


def _hello(registry: Registry) -> Hello:
    return Hello(name="run_pending", host="test", pid=os.getpid(), version="test", lease_seconds=MAX_LEASE_SECONDS, types=registry.types)
