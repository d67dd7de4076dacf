"""A worker as a process: its target, its logs, its signals, its exit code. What it is made of stands in `client/worker.py`."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Literal

from workmill.client import Workmill
from workmill.config import STORE, Settings, shown_url
from workmill.domain.errors import ConfigurationError
from workmill.engine.worker import Worker, WorkerOptions
from workmill.loops import FOREVER, Loop
from workmill.store.open import same_store
from workmill.targets import load_target
from workmill.telemetry import INFO, Telemetry, log_to

DONE: Final = 0
WORK_LEFT: Final = 4
TERM: Final = "SIGTERM"
STOP: Final = (TERM, "SIGINT", "SIGHUP", "SIGBREAK")
DRAIN: Final = "SIGTSTP"
RESUME: Final = "SIGCONT"
DUMP: Final = "SIGUSR1"


def run_worker_process(
    target: str,
    options: WorkerOptions | None = None,
    *,
    store: str | None = None,
    settings: Settings | None = None,
    log_level: int = INFO,
    log_format: Literal["text", "json"] = "text",
) -> int:
    """Be a worker until a signal or the work's end stops it; returns 0, or 4 when it left work behind. Call it in the main thread.

    The first TERM, INT or HUP stops within the grace, the second at once; TSTP drains, CONT resumes; USR1 writes the stacks of all
    threads to stderr, where the logs go, too. `store` wins over `WORKMILL_STORE`.

    Raises:
        ConfigurationError: target, store or a job cannot be used.
        StoreUnavailable: the store could not be reached at the start.

    """
    mill = load_target(target)
    if store is not None:
        use_store(mill, store)
    with ExitStack() as stack:
        stack.enter_context(_logs(mill.telemetry, log_level, log_format))
        worker = mill.worker(options, target=target, settings=settings)
        stack.callback(mill.close)
        stack.enter_context(_signals(worker))
        gc.freeze()  # what has been loaded stays: the collector need not go through it again and again (5 % of a drain)
        stack.callback(gc.unfreeze)
        left = worker.run()
    return WORK_LEFT if left else DONE


def use_store(mill: Workmill, url: str, given_by: str = "--store") -> None:
    """Make `url`, which a flag or variable has given, the store of this process and of its children.

    Raises:
        ConfigurationError: the application names another one itself.

    """
    os.environ[STORE] = url
    if not same_store(mill.url, url):
        raise ConfigurationError(
            f"{given_by}: is {shown_url(url)}, but the Workmill of the target names a store of its own, {shown_url(mill.url)}"
        )


class SignalListener(Loop):
    """Obeys signals in a thread of its own.

    The kernel gives a signal to any thread, and a handler of Python's waits until the main one wakes, and then runs in the midst of what
    that does, which may hold the very lock that draining needs. The byte that the interpreter writes for each signal waits for nothing.
    """

    name = "signals"

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.telemetry)
        self.supervised = False
        self._worker = worker
        self._terminated = False
        self._inbox, self._outbox = socket.socketpair()
        self._outbox.setblocking(False)
        self._came = b""

    @property
    def wakeup_fd(self) -> int:
        """What `signal.set_wakeup_fd` takes."""
        return self._outbox.fileno()

    def run_once(self) -> float:
        """Obey what has come, in order."""
        for number in self._came:
            if number:
                self._obey(signal.Signals(number).name)
        return FOREVER

    def rest(self, seconds: float) -> None:  # noqa: ARG002 - it waits for the next signal, or for `wake`
        self._came = self._inbox.recv(1_024)

    def wake(self) -> None:
        with suppress(BlockingIOError):
            self._outbox.send(b"\0")

    def close(self) -> None:
        """End the thread."""
        self.stop()
        self.join()
        self._inbox.close()
        self._outbox.close()

    def _obey(self, name: str) -> None:
        if name == TERM and self.supervised and self._terminated:
            return  # a service manager that signals every process has done so, and the supervisor, too: that is one order, not two
        self._terminated |= name == TERM
        if name in STOP:
            self._worker.request_stop()
        elif name == DRAIN:
            self._worker.drain()
        elif name == RESUME:
            self._worker.resume()
        self.telemetry.emit("worker.signal", signal=name)


@contextmanager
def _signals(worker: Worker) -> Iterator[None]:
    listener = SignalListener(worker)
    listener.start()
    wakeup_before = signal.set_wakeup_fd(listener.wakeup_fd, warn_on_full_buffer=False)
    numbers = [getattr(signal, name) for name in (*STOP, DRAIN, RESUME) if hasattr(signal, name)]
    before = {number: signal.signal(number, _leave_it_to_the_listener) for number in numbers}
    listener.supervised = _follow_supervisor()
    dump = getattr(signal, DUMP, None)
    if dump is not None:
        faulthandler.register(dump, all_threads=True)
    try:
        yield
    finally:
        if dump is not None:
            faulthandler.unregister(dump)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup_before)
        listener.close()


def _leave_it_to_the_listener(_number: int, _frame: object) -> None:
    pass


def _follow_supervisor() -> bool:
    if sys.platform == "win32":
        return False
    from workmill.supervisor import follow_supervisor  # noqa: PLC0415 - a module of POSIX

    return follow_supervisor()


@contextmanager
def _logs(telemetry: Telemetry, level: int, form: Literal["text", "json"]) -> Iterator[None]:
    undo = log_to(sys.stderr, telemetry, level, form)
    try:
        yield
    finally:
        undo()
