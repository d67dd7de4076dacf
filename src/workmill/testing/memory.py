"""A `Workmill` in memory whose clock stands still and whose jobs run when a test says so, in the test's own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from workmill.client import Job, Workmill
from workmill.client.link import Link, before_submit
from workmill.domain.outcome import Failed, Outcome, Released, Succeeded
from workmill.engine.handlers import Hooks
from workmill.engine.worker import Worker, WorkerOptions
from workmill.store.open import open_store
from workmill.testing.clock import MovableClock
from workmill.testing.inline import InlineWorker

MANY: Final = 10_000
"""So many runs in one call, and more due: a job enqueues itself."""
_IN_MEMORY: Final[list[Link]] = []
"""The ways to the stores of all mills that are in memory now."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of a job and how it ended."""

    job: Job[Any]
    outcome: Outcome

    @property
    def succeeded(self) -> bool:
        """Whether the function returned."""
        return isinstance(self.outcome, Succeeded)

    @property
    def error(self) -> str | None:
        """Class and message of what the function raised."""
        return f"{self.outcome.error.type}: {self.outcome.error.message}" if isinstance(self.outcome, Failed) else None

    def __repr__(self) -> str:
        how = "released" if isinstance(self.outcome, Released) else self.error or "succeeded"
        return f"<{self.job.type} {how}, {self.job.state} now>"


class MemoryMill(Workmill):
    """Made by `memory_mill`, or by the fixture `mill`. Delays, backoffs and deadlines are on `clock`, which only `clock.advance` moves."""

    def __init__(self, app: Workmill | None = None) -> None:
        super().__init__("sqlite://")
        self.clock = MovableClock()
        """The store's clock: `clock.advance(60)` lets a minute pass."""
        self._app = app
        self._exits = ExitStack()
        self._runner: asyncio.Runner | None = None
        if app is not None:
            self._use(app._link)  # noqa: SLF001 - the application's own way to its store, so that all its jobs take it

    def run_pending(self, *, raises: bool = False) -> list[Ran]:
        """Run what is due, and what that enqueues, in the order of priority and time, until nothing is due; returns the runs.

        What a function raises is its job's failure, and is logged; with `raises` it comes out here, too. A failed job waits for its next
        attempt: move the clock and call this again. Isolated jobs run here as well, without their memory limit.
        """
        worker, runs = InlineWorker(self.store, self.registry, self.hooks, self._begin()), list[Ran]()
        try:
            while claimed := worker.claim():
                if len(runs) == MANY:
                    raise AssertionError(f"{MANY} jobs have run and more are due: does {claimed.type} enqueue itself without a delay?")
                outcome, error = worker.run(claimed)
                runs.append(Ran(self.jobs.get(claimed.id), outcome))
                if raises and error is not None:
                    raise error
        finally:
            worker.leave()
        return runs

    @contextmanager
    def run_worker(self, options: WorkerOptions | None = None) -> Iterator[Worker]:
        """A real worker in threads, on the same clock that stands still."""
        before, self._link.before_wait = self._link.before_wait, _let_wait
        try:
            with super().run_worker(options) as worker:
                yield worker
        finally:
            self._link.before_wait = before

    @property
    def hooks(self) -> Hooks:
        """The application's hooks, where there is one."""
        return super().hooks if self._app is None else self._app.hooks

    def prepare(self) -> None:
        """What the application's worker does before it starts."""
        if self._app is None:
            super().prepare()
        else:
            self._app.prepare()

    @contextmanager
    def in_memory(self) -> Iterator[None]:
        """Everything goes to a new store until the end of the block, where it shuts down as a worker would."""
        with self._link.replaced(open_store("sqlite://", self.clock)), self._strangers_refused(), self._exits:
            before, self._link.before_wait = self._link.before_wait, self._nobody_runs_jobs
            try:
                yield
            finally:
                self._link.before_wait = before

    @contextmanager
    def _strangers_refused(self) -> Iterator[None]:
        """Until the end of the block, a mill that took no application over lets no other `Workmill` submit: it was forgotten."""
        checks = [_refuse_stranger] if self._app is None else []
        _IN_MEMORY.append(self._link)
        before_submit.extend(checks)
        try:
            yield
        finally:
            _IN_MEMORY.remove(self._link)
            for check in checks:
                before_submit.remove(check)

    def _begin(self) -> asyncio.Runner:
        """Start as a worker would, once."""
        if self._runner is None:
            self.prepare()
            self._runner = self._exits.enter_context(asyncio.Runner())
            for hook in self.hooks.on_startup:
                hook()
            for hook in self.hooks.on_shutdown:
                self._exits.callback(hook)
        return self._runner

    def _nobody_runs_jobs(self) -> None:
        raise AssertionError("the job has not ended, and nothing runs jobs here: call mill.run_pending() before you wait for it")


def _refuse_stranger(link: Link) -> None:
    if link not in _IN_MEMORY:
        raise AssertionError(
            f"this job belongs to another Workmill, on {link.url}, which the fixture `mill` has not taken over: its jobs would go there,"
            " and run_pending() would not run them. Define in conftest.py a fixture `workmill_app` that returns the application's"
            " Workmill (or give it to memory_mill)."
        )


def _let_wait() -> None:
    """Somebody runs jobs."""


@contextmanager
def memory_mill(app: Workmill | None = None) -> Iterator[MemoryMill]:
    """A store in memory of its own for the time of the block. All that `app` enqueues goes there, and its jobs are the ones to run."""
    mill = MemoryMill(app)
    with mill.in_memory():
        yield mill
