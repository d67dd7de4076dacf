"""What happens in a child process: it imports the target, then runs one job after another, as its worker tells it.

The main thread runs the handlers, so that SIGTERM can interrupt them; a second one listens to the worker. The child does not outlive
its worker: when the connection ends it kills its process group, itself included.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from contextvars import copy_context
from inspect import iscoroutine
from queue import SimpleQueue
from typing import Any, Final, NoReturn

from workmill.clock import monotonic
from workmill.domain.errors import JobCancelled, NotFound
from workmill.engine.context import RunningJob, current
from workmill.engine.executors.base import raised, returned
from workmill.engine.executors.frames import Begin, Ended, Halt, Load, Quit, Ready, Refused, Said, ToWorker, Unpacker, ended, pack, to_child
from workmill.engine.executors.memory import die_first
from workmill.engine.handlers import Hooks, Registry
from workmill.engine.reports import report
from workmill.telemetry import Telemetry, log_to

TELL_EVERY: Final = 0.2
"""Seconds between two looks at what the handler says of its progress: the latest goes, however often it speaks."""


def serve(channel: int, notes: int, load: Callable[[], tuple[Registry, Hooks]]) -> int:
    """Run what the worker at the other end sends, until it says to quit; returns the exit code.

    `load` imports the target; into `notes` goes where the handler is when the process crashes or gets SIGTERM.
    """
    die_first()
    child = _Inside(channel)
    signal.signal(signal.SIGINT, lambda *_: None)  # a Ctrl-C is the worker's; SIG_IGN would be inherited by what handlers start
    signal.signal(signal.SIGTERM, child.interrupt)
    faulthandler.enable(notes, all_threads=False)
    faulthandler.register(signal.SIGTERM, notes, all_threads=False, chain=True)
    threading.Thread(target=child.listen, name="workmill-channel", daemon=True).start()
    try:
        return child.work(load)
    finally:
        child.loop.close()


def _settle_in(first: Load) -> None:
    """Find modules where the worker finds them, and log as it does."""
    sys.path[:] = first.path
    if first.logs is not None:
        log_to(sys.stderr, Telemetry(), *first.logs)


class _Unknown:
    """The handler of a type that the worker knows and this process does not: declared where an import does not come by."""

    kind: Final = "isolated"
    give_up_on: Final = ()
    memory_limit: Final = None

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, _payload: str) -> NoReturn:
        raise NotFound("handler in the child process, which imports the target anew, for the type", self.name)


class _Inside:
    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.pid = os.getpid()
        self.loop = asyncio.Runner()
        self.orders: SimpleQueue[Load | RunningJob | None] = SimpleQueue()
        self.sending = threading.Lock()
        self.registry: Registry | None = None
        self.hooks = Hooks()
        self.run: RunningJob | None = None
        self.open_to_interruption = False
        self.task: asyncio.Task[str | None] | None = None

    # The main thread

    def work(self, load: Callable[[], tuple[Registry, Hooks]]) -> int:
        if isinstance(first := self.orders.get(), Load):
            _settle_in(first)
        try:
            self.registry, self.hooks = load()
        except BaseException as error:  # noqa: BLE001 - importing somebody's module may raise anything
            self._send(Refused(report(error)))
            return 1
        self._send(Ready())
        while isinstance(run := self.orders.get(), RunningJob):
            self._send(self._outcome(run))
        return 0

    def _outcome(self, run: RunningJob) -> Ended:
        try:
            result = self._call(run)
            outcome = returned(run, result, monotonic())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            outcome = raised(run, error, monotonic())
        self.run = self.task = None
        self._flush()
        return ended(outcome)

    def _call(self, run: RunningJob) -> str | None:
        token = current.set(run)
        try:
            with ExitStack() as stack:
                for around in self.hooks.middleware:
                    stack.enter_context(around(run))
                return self._interruptible(run)
        finally:
            current.reset(token)

    def _interruptible(self, run: RunningJob) -> str | None:
        self.open_to_interruption = True
        try:
            if run.stopping is not None:
                raise JobCancelled(run.stopping)
            result: Any = run.handler.call(run.claimed.payload)
            return self.loop.run(self._as_task(result), context=copy_context()) if iscoroutine(result) else result
        finally:
            self.open_to_interruption = False

    async def _as_task(self, call: Coroutine[Any, Any, str | None]) -> str | None:
        self.task = asyncio.ensure_future(call)
        if self.run is not None and self.run.stopping is not None:
            self.task.cancel()
        return await self.task

    def _flush(self) -> None:
        """Let out what the handler has printed. A process that it forked, and that came back here, ends."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        if os.getpid() != self.pid:
            os._exit(0)

    def interrupt(self, _number: int, _frame: object) -> None:
        """On SIGTERM: end the handler from within, once its run has been told to stop. Any other is not meant for it."""
        run, task = self.run, self.task
        if not self.open_to_interruption or run is None or not run.cancelled:
            return
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)
        else:
            self.open_to_interruption = False
            run.check()

    # The listening thread

    def listen(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it is for the main thread, whose sleep it is to end
        unpacker = Unpacker()
        with suppress(OSError):  # a handler has closed what is not its own: the worker notices, and ends this
            while data := self._next():
                for frame in unpacker.feed(data):
                    self._obey(to_child.decode(frame))
            self._orphaned()

    def _next(self) -> bytes:
        """What the worker says next; nothing when it is gone. Meanwhile it hears of progress."""
        while not select.select([self.channel], [], [], None if self.run is None else TELL_EVERY)[0]:
            self._tell()
        try:
            return os.read(self.channel, 1 << 16)
        except ConnectionError:
            return b""

    def _obey(self, order: Load | Begin | Halt | Quit) -> None:
        match order:
            case Load():
                self.orders.put(order)
            case Begin():
                self.run = self._begin(order)
                self.orders.put(self.run)
            case Halt() if (run := self.run) is not None:
                run.stop(order.reason)
                if (task := self.task) is not None:
                    task.get_loop().call_soon_threadsafe(task.cancel)
            case Quit():
                self.orders.put(None)

    def _begin(self, order: Begin) -> RunningJob:
        kind = order.claimed.type
        handler = (self.registry and self.registry.get(kind)) or _Unknown(kind)
        run = RunningJob(order.claimed, handler, order.claimed_at, order.started)
        run.started, run.ends_at = order.started, order.ends_at
        return run

    def _tell(self) -> None:
        with self.sending:
            run = self.run
            if run is not None and run.said is not run.heard and run.said is not None:
                run.heard = run.said
                write(self.channel, pack(Said(run.heard)))

    def _send(self, message: ToWorker) -> None:
        with self.sending:
            write(self.channel, pack(message))

    def _orphaned(self) -> NoReturn:
        if os.getpgrp() == self.pid:
            os.killpg(self.pid, signal.SIGKILL)
        os._exit(1)


def write(channel: int, data: bytes) -> None:
    """Write all of it."""
    left = memoryview(data)
    while left:
        left = left[os.write(channel, left) :]
