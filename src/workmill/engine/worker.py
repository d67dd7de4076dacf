"""One worker process: its loops put together, and the stages of its end."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from workmill.clock import monotonic
from workmill.domain.errors import ConfigurationError
from workmill.domain.limits import DEFAULT_LEASE_SECONDS, MAX_LEASE_SECONDS, MIN_LEASE_SECONDS, check_integer, check_seconds
from workmill.domain.names import check_name
from workmill.domain.outcome import Fence, Released
from workmill.domain.worker import Hello
from workmill.engine.context import RunningJob, Stop
from workmill.engine.exchange import Exchanger
from workmill.engine.executors.base import Executor, ExecutorFactory, Floor, timed_out
from workmill.engine.executors.loop import loop_executors
from workmill.engine.executors.thread import ThreadExecutor
from workmill.engine.gate import Closed, Gate
from workmill.engine.handlers import Hooks, Kind, Registry
from workmill.engine.heartbeat import Heartbeat
from workmill.engine.ledger import Ledger
from workmill.engine.member import Member
from workmill.engine.pools import Pool, Pools
from workmill.engine.reports import stack
from workmill.engine.tidings import Tidings
from workmill.engine.watchdog import Watchdog
from workmill.loops import FOREVER, Bell, Loop
from workmill.telemetry import ERROR, WARNING, Telemetry

if TYPE_CHECKING:
    from workmill.store.base import Waking, Work

SWITCH_INTERVAL: Final = 0.0005
"""A waiting thread gets the interpreter in half a millisecond instead of five: the exchange waits for handlers' threads all the time."""
CANCEL_SECONDS: Final = 2.0
"""Seconds that handlers have, after the grace, to end when they are told to; a second order to stop leaves them the next."""
HURRY_SECONDS: Final = 0.2
LOOK_AGAIN: Final = 0.2
LAST_WRITE_SECONDS: Final = 3.0
"""Seconds after the grace for what is under way with the store; handlers that are told to end have theirs at the same time. With the next
and the closing of the store it is under five: a store that hangs costs no more."""
FAREWELL_SECONDS: Final = 0.5
MOST_CONCURRENCY: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works. `queues` empty: all queues share `concurrency`; otherwise each named one has its own number of slots."""

    name: str | None = None
    queues: Mapping[str, int] = field(default_factory=dict)
    concurrency: int = 10
    lease_seconds: float = DEFAULT_LEASE_SECONDS
    grace: float = 30.0
    burst: bool = False
    max_jobs: int | None = None

    def __post_init__(self) -> None:
        check_integer("concurrency", self.concurrency, 1, MOST_CONCURRENCY)
        check_seconds("lease", self.lease_seconds, MIN_LEASE_SECONDS, MAX_LEASE_SECONDS)
        check_seconds("grace", self.grace)
        if self.name is not None:
            check_name("name", self.name)
        if self.max_jobs is not None:
            check_integer("max_jobs", self.max_jobs, 1, sys.maxsize)
        for queue, slots in self.queues.items():
            check_integer(f"queue {check_name('queue', queue)}", slots, 1, MOST_CONCURRENCY)


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a worker that stopped had not done: runs interrupted and given back, runs abandoned in their threads, endings not recorded."""

    interrupted: int = 0
    abandoned: int = 0
    unrecorded: int = 0

    def __bool__(self) -> bool:
        return bool(self.interrupted or self.abandoned or self.unrecorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A worker at one moment. `waiting` runs have been claimed and have not begun, `uncommitted` ones have ended."""

    worker_id: str
    state: str
    concurrency: int
    running: int
    waiting: int
    uncommitted: int
    stuck: int
    succeeded: int
    failed: int
    released: int
    lost: int


class Worker:
    """Claims and runs jobs until it is stopped, or has done what `burst` or `max_jobs` ask for. It is started once.

    `waking` gives hints, without it the worker polls. `beside` are loops that live as long as the worker does. `executors` names
    factories for kinds of handlers beyond threads and the event loop, or instead of them.
    """

    def __init__(
        self,
        work: Work,
        registry: Registry,
        options: WorkerOptions | None = None,
        *,
        hooks: Hooks | None = None,
        telemetry: Telemetry | None = None,
        waking: Waking | None = None,
        beside: Sequence[Loop] = (),
        executors: Mapping[Kind, ExecutorFactory] | None = None,
    ) -> None:
        self.options = options or WorkerOptions()
        self.telemetry = (telemetry or Telemetry()).scope()
        self._hooks = hooks or Hooks()
        self._waking = waking
        self._beside = tuple(beside)
        self._bell = Bell()
        self._stop_by = inf
        self._hurried = False
        self._started = False
        self._switch_interval = sys.getswitchinterval()
        self._finishing = threading.Lock()
        self._left: Leftover | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._outbox: SimpleQueue[RunningJob | None] = SimpleQueue()
        gate = self._gate = Gate(self.telemetry)
        self._watchdog = Watchdog(self._give_up, self.telemetry)
        self._tidings = Tidings(self._hooks, self.telemetry)
        self._ledger = Ledger(self._watchdog, self._tidings)
        floor = Floor(self._outbox.put, gate, self._watchdog, self._hooks, self.telemetry)
        self._pools = _pools(self.options, floor, _factories(registry, executors, self.telemetry))
        self._member = Member(work, _hello(self.options, registry), gate, self.telemetry)
        self._exchanger = Exchanger(
            work,
            self._member,
            registry,
            self._ledger,
            self._pools,
            gate=gate,
            outbox=self._outbox,
            telemetry=self.telemetry,
            burst=self.options.burst,
            max_jobs=self.options.max_jobs,
            idle=self._bell.ring,
        )
        gate.changed = self._exchanger.reconsider
        self._heartbeat = Heartbeat(
            work, self._member, self._ledger, self._pools, exchanger=self._exchanger, gate=gate, telemetry=self.telemetry
        )

    def start(self) -> None:
        """Join the fleet and begin. What a startup hook or the store raises goes to the caller, and nothing has been started."""
        if self._started:
            raise RuntimeError("a worker is started once")
        for hook in self._hooks.on_startup:
            hook()
        try:
            self._member.join()
        except BaseException:
            self._hook_down()
            raise
        self._started = True
        sys.setswitchinterval(SWITCH_INTERVAL)
        for loop in self._beside:
            if self.options.burst:
                loop.run_once()
            loop.start()
        if self._hooks.on_dead:
            self._tidings.start()
        if self._waking is not None:
            self._unsubscribe = self._waking.subscribe(self._exchanger.wake)
        self._heartbeat.start()
        self._exchanger.start()

    def run(self) -> Leftover:
        """Start, work until told to stop or until the work is done, stop, and say what was left."""
        self.start()
        while self._stop_by == inf and not self._exchanger.finished:
            self._bell.wait(FOREVER)
        return self.stop()

    def drain(self) -> None:
        """Claim nothing, give back what has not begun, let what runs end, and stay."""
        self._gate.close(Closed.BY_HAND)

    def resume(self) -> None:
        """Undo `drain` (an order of the store's to drain stands)."""
        self._gate.open(Closed.BY_HAND)

    def request_stop(self, grace: float | None = None) -> None:
        """Let `run` stop within `grace` seconds (None: as configured); the second time: now. Made for signal handlers."""
        self._hurried = self._stop_by < inf
        seconds = 0.0 if self._hurried else self.options.grace if grace is None else grace
        self._stop_by = min(self._stop_by, monotonic() + seconds)
        self._bell.ring()

    def stop(self, grace: float | None = None) -> Leftover:
        """Drain for `grace` seconds, tell what still runs to end, give back, leave; returns what was left. Waits for whoever is at it."""
        if self._stop_by == inf or grace is not None:
            self.request_stop(grace)
        with self._finishing:
            if self._left is None:
                self._left = self._finish() if self._started else Leftover()
            return self._left

    @property
    def held(self) -> tuple[Fence, ...]:
        """The runs that are this worker's: running, waiting for a slot, or ended and not recorded."""
        return tuple(run.fence for run in self._ledger.holding())

    def stats(self) -> Stats:
        """This worker now."""
        runs, tally = self._ledger.holding(), self._tidings.tally
        ended = sum(run.outcome is not None for run in runs)
        waiting = sum(not run.started and run.outcome is None for run in runs)
        return Stats(
            worker_id=self._member.id,
            state="draining" if self._gate.closed else "cut off" if self._gate.cut_off(monotonic()) else "running",
            concurrency=sum(pool.concurrency for pool in self._pools),
            running=len(runs) - ended - waiting,
            waiting=waiting,
            uncommitted=ended,
            stuck=len(self._ledger.stuck),
            succeeded=tally.succeeded,
            failed=tally.failed,
            released=tally.released,
            lost=tally.lost,
        )

    # The stages of the end.

    def _finish(self) -> Leftover:
        self.telemetry.emit("worker.stopping", grace=max(0.0, self._stop_by - monotonic()))
        self._gate.close(Closed.STOPPING)
        self._wait_until_empty(lambda: self._stop_by)
        told = self._cancel_what_runs()
        told_at = monotonic()
        if told:
            self._wait_until_empty(lambda: told_at + (HURRY_SECONDS if self._hurried else CANCEL_SECONDS))
        last = told_at + LAST_WRITE_SECONDS
        self._exchanger.stop()
        self._exchanger.join(max(0.0, last - monotonic()))
        left = self._leftover(told)
        self._end_loops(last)
        self._leave(last)
        self._pools.close()
        self._tidings.stop()
        self._tidings.join(LAST_WRITE_SECONDS)
        self._tidings.run_once()
        self._hook_down()
        sys.setswitchinterval(self._switch_interval)
        self.telemetry.emit("worker.stopped", interrupted=left.interrupted, abandoned=left.abandoned, unrecorded=left.unrecorded)
        return left

    def _wait_until_empty(self, deadline: Callable[[], float]) -> None:
        """Wait until nothing is held; the deadline may come nearer meanwhile."""
        while self._ledger.held and (remaining := deadline() - monotonic()) > 0:
            self._bell.wait(min(remaining, LOOK_AGAIN))

    def _cancel_what_runs(self) -> list[RunningJob]:
        told = [run for run in self._ledger.holding() if run.started and run.outcome is None]
        for run in told:
            run.stop(Stop.SHUTDOWN)
            run.lane.interrupt(run)
        return told

    def _leftover(self, told: Sequence[RunningJob]) -> Leftover:
        held = self._ledger.holding()
        return Leftover(
            interrupted=sum(isinstance(run.outcome, Released) for run in told),
            abandoned=sum(run.started > 0 and run.outcome is None for run in held),
            unrecorded=sum(run.outcome is not None for run in held),
        )

    def _end_loops(self, last: float) -> None:
        loops = (self._heartbeat, self._watchdog, *self._beside)
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(max(0.0, last - monotonic()))
        self._unsubscribe()

    def _leave(self, last: float) -> None:
        """Give back what is still held. A store that cannot be told, or does not answer in time, finds out when the lease ends."""
        leaving = threading.Thread(target=self._say_farewell, name="workmill-leaving", daemon=True)
        leaving.start()
        leaving.join(max(FAREWELL_SECONDS, last - monotonic()))

    def _say_farewell(self) -> None:
        try:
            self._member.leave()
        except Exception as error:  # noqa: BLE001 - whatever a store raises, this worker ends
            self.telemetry.emit("worker.store_failed", WARNING, error=repr(error))

    def _hook_down(self) -> None:
        for hook in self._hooks.on_shutdown:
            try:
                hook()
            except Exception as error:  # noqa: BLE001 - a hook may raise anything, and the others are called
                self.telemetry.emit("hook.failed", ERROR, hook="on_shutdown", error=repr(error))

    def _give_up(self, run: RunningJob) -> None:
        """The handler has ignored its timeout: its outcome goes out without it, with the place where it hangs."""
        frame = sys._current_frames().get(run.thread or 0)  # noqa: SLF001 - the only way to see another thread's stack
        waited, ran = run.times(monotonic())
        where = "" if frame is None else stack(frame)
        run.overdue = timed_out(run, waited, ran, where)
        self._outbox.put(run)


def _pools(options: WorkerOptions, floor: Floor, factories: Mapping[Kind, ExecutorFactory]) -> Pools:
    def make(kind: Kind, concurrency: int) -> Executor:
        return factories[kind](floor, concurrency)

    if options.queues:
        return Pools({queue: Pool(slots, make) for queue, slots in options.queues.items()})
    return Pools({None: Pool(options.concurrency, make)})


def _factories(registry: Registry, given: Mapping[Kind, ExecutorFactory] | None, telemetry: Telemetry) -> Mapping[Kind, ExecutorFactory]:
    factories: dict[Kind, ExecutorFactory] = {"thread": ThreadExecutor, "loop": loop_executors(telemetry), **(given or {})}
    for name in registry.types:
        handler = registry.get(name)
        if handler is not None and handler.kind not in factories:
            raise ConfigurationError(f"job {name} is {handler.kind}, and this worker has no executor for that")
    return factories


def _hello(options: WorkerOptions, registry: Registry) -> Hello:
    host, pid = socket.gethostname(), os.getpid()
    return Hello(
        name=options.name or f"{re.sub('[^A-Za-z0-9._:-]', '-', host).lstrip('._:-')[:80] or 'worker'}-{pid}",
        host=host,
        pid=pid,
        version=_version(),
        lease_seconds=options.lease_seconds,
        queues=dict(options.queues),
        concurrency=sum(options.queues.values()) if options.queues else options.concurrency,
        types=registry.types,
    )


def _version() -> str:
    try:
        return version("workmill")
    except PackageNotFoundError:
        return "0"
