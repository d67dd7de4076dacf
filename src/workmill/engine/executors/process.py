"""Runs isolated handlers in child processes, which can be killed: the only hard timeout, and a crash costs that run alone.

Up to one child for each slot, started when runs first need it and reused; a run has its child for itself. What ends a child early:
a run that was stopped (all that it has started goes with it), a crash, too much memory, many runs, long idleness.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from workmill.engine.context import RunningJob
from workmill.engine.executors.base import Floor
from workmill.engine.executors.nursery import CLOSING, Nursery


class IsolatedExecutor:
    """The child processes of one pool; everything about them happens in the nursery's thread."""

    def __init__(self, floor: Floor, concurrency: int, command: Sequence[str]) -> None:
        self._nursery = Nursery(floor, concurrency, command)
        self._nursery.start()

    def start(self, runs: Sequence[RunningJob]) -> None:
        self._nursery.waiting.extend(runs)
        self._nursery.wake()

    def recall(self) -> list[RunningJob]:
        runs: list[RunningJob] = []
        with suppress(IndexError):
            while True:
                runs.append(self._nursery.waiting.popleft())
        return runs

    def interrupt(self, run: RunningJob) -> None:
        self._nursery.halts.put(run)
        self._nursery.wake()

    def resize(self, concurrency: int) -> None:
        self._nursery.concurrency = concurrency
        self._nursery.wake()

    def close(self) -> None:
        self._nursery.stop()
        self._nursery.join(CLOSING)
        self._nursery.close()


def isolated_executors(target: str) -> Callable[[Floor, int], IsolatedExecutor]:
    """A factory of executors whose children import `target`, with this interpreter and its flags."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as the standard library's own pools do
    command = [sys.executable, *flags, "-m", "workmill.isolated", target]
    return lambda floor, concurrency: IsolatedExecutor(floor, concurrency, command)
