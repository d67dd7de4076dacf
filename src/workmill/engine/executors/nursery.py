"""The thread that starts child processes, gives them runs, hears what they say, and sees to it that they end."""

from __future__ import annotations

import selectors
import signal
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from workmill.clock import monotonic, sleep
from workmill.domain.errors import JobCancelled, MemoryLimitExceeded, ProcessDied
from workmill.domain.limits import ERROR_MESSAGE_CHARACTERS
from workmill.domain.outcome import Failed, FailureKind, Outcome, Released, ReleaseReason
from workmill.engine.context import RunningJob, Stop
from workmill.engine.executors.base import Floor, raised
from workmill.engine.executors.child import Child, Guard
from workmill.engine.executors.frames import Ended, Garbled, Ready, Refused, Said, ToWorker
from workmill.engine.executors.memory import LOOK_EVERY, resident, used
from workmill.engine.reports import storable
from workmill.loops import FOREVER, Loop
from workmill.telemetry import DEBUG, ERROR, WARNING

AT_ONCE: Final = (0.05, 0.2)
GENTLY: Final = (0.5, 1.5)
"""Seconds until a stopped run gets SIGTERM and until SIGKILL: at its deadline or when it is lost, and for any other reason."""
START_SECONDS: Final = 60.0
QUIT_SECONDS: Final = 1.0
LAST_MOMENT: Final = 0.1
"""Seconds that a child has to exit once it has closed its end of the channel."""
CLOSING: Final = 0.4
TICK: Final = 0.1
"""Seconds between two looks at who has died: what a handler has started may hold its channel open."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
MOST_JOBS: Final = 1_000
MOST_GROWTH: Final = 128 << 20
"""A child is replaced after so many runs, or when it has grown by so many bytes since its first."""
SIZE_CHECK: Final = 10
IDLE_SECONDS: Final = 300.0


class Nursery(Loop):
    """`waiting` and `halts` are filled by other threads, `concurrency` is set by them; the rest is this thread's own."""

    name = "isolated"

    def __init__(self, floor: Floor, concurrency: int, command: Sequence[str]) -> None:
        super().__init__(floor.telemetry)
        self.concurrency = concurrency
        self.waiting: deque[RunningJob] = deque()
        self.halts: SimpleQueue[RunningJob] = SimpleQueue()
        self._floor = floor
        self._command = command
        self._children: list[Child] = []
        self._next: deque[RunningJob] = deque()
        self._warm = 0
        self._failures = 0
        self._start_at = 0.0
        self._guard = Guard()
        self._selector = selectors.DefaultSelector()
        self._rope, self._wakes = socket.socketpair()
        self._rope.setblocking(False)
        self._wakes.setblocking(False)
        self._selector.register(self._wakes, selectors.EVENT_READ)

    def wake(self) -> None:
        with suppress(OSError):
            self._rope.send(b"!")

    def rest(self, seconds: float) -> None:
        self._selector.select(min(seconds, 3_600.0))
        with suppress(BlockingIOError):
            self._wakes.recv(4_096)

    def run_once(self) -> float:
        """Do whatever is due; returns for how long nothing will be, unless a child or another thread speaks."""
        now = monotonic()
        self._stop_runs(now)
        for child in tuple(self._children):
            self._look_after(child, now)
        self._guard.look_after()
        self._take_in()
        self._staff(now)
        self._hand_out(now)
        return max(0.0, self._next_event() - monotonic())

    def close(self) -> None:
        """Let idle children leave, kill the others, and bury all. The thread has ended."""
        deadline = monotonic() + CLOSING
        for child in self._children:
            if child.idle:
                child.dismiss(deadline)
            else:
                child.condemn([(0.0, signal.SIGKILL)])
        while not all(child.has_exited() for child in self._children):
            for child in self._children:
                child.execute(monotonic())
            sleep(0.005)
        for child in self._children:
            self._guard.remove(child.process.pid)
            child.bury()
        self._guard.close()
        self._selector.close()
        self._wakes.close()
        self._rope.close()

    # Runs

    def _take_in(self) -> None:
        """Take what waits for the slots there are; from here on it is not recalled any more, but admitted or handed back."""
        busy = sum(child.run is not None for child in self._children)
        with suppress(IndexError):
            while busy + len(self._next) < self.concurrency:
                self._next.append(self.waiting.popleft())

    def _hand_out(self, now: float) -> None:
        idle = sorted((child for child in self._children if child.idle), key=lambda child: child.since)
        while idle and self._next:
            run = self._next.popleft()
            if self._floor.admit(run):
                idle.pop().begin(run, now)

    def _stop_runs(self, now: float) -> None:
        with suppress(Empty):
            while True:
                run = self.halts.get_nowait()
                child = next((child for child in self._children if child.run is run), None)
                if child is not None and run.stopping is not None:
                    term, kill = AT_ONCE if run.stopping in {Stop.TIMEOUT, Stop.LOST} else GENTLY
                    child.halt(run.stopping, [(now + term, signal.SIGTERM), (now + kill, signal.SIGKILL)])

    def _deliver(self, child: Child, outcome: Outcome) -> None:
        run, child.run = child.run, None
        if run is not None:
            run.outcome = outcome
            self._floor.deliver(run)

    # Children

    def _look_after(self, child: Child, now: float) -> None:
        dead = child.has_exited()
        self._hear(child, now)
        if dead:
            self._bury(child, now)
            return
        if not child.sentence:
            self._judge(child, now)
        child.execute(now)
        if not child.mute:
            self._selector.modify(child.channel, child.interest)

    def _hear(self, child: Child, now: float) -> None:
        if child.mute:
            return
        try:
            for message in child.hear():
                self._heard(child, message, now)
        except EOFError:
            self._mute(child, now + LAST_MOMENT, "closed its channel to the worker")
        except Garbled as garbled:
            self._mute(child, now, f"wrote into its channel to the worker: {garbled}")

    def _mute(self, child: Child, kill_at: float, cause: str) -> None:
        """Nothing more is heard of it: it is about to exit, or must."""
        child.mute = True
        self._selector.unregister(child.channel)
        if not child.executed and (not child.sentence or not child.ready):
            child.condemn([(kill_at, signal.SIGKILL)], ProcessDied(cause))

    def _heard(self, child: Child, message: ToWorker, now: float) -> None:
        match message:
            case Ready():
                child.ready, child.since, self._failures = True, now, 0
                child.condemn(())
                self.telemetry.emit("child.ready", DEBUG, pid=child.process.pid)
            case Refused(error):
                child.refusal = f"{error.type}: {error.message}"
                child.condemn([(now + QUIT_SECONDS, signal.SIGKILL)])
            case Said(progress) if child.run is not None:
                child.run.said = progress
            case Ended() if child.run is not None and (outcome := message.outcome) is not None and outcome.fence == child.run.fence:
                self._run_ended(child, child.run, outcome, now)
            case _:
                raise Garbled(f"{type(message).__name__} out of turn")

    def _run_ended(self, child: Child, run: RunningJob, outcome: Outcome, now: float) -> None:
        if child.sentence:
            by_force = child.executed and isinstance(outcome, Failed) and outcome.kind is FailureKind.ERROR
            self._deliver(child, _stopped(run, now) if by_force else outcome)
            child.dismiss(now)
            return
        self._deliver(child, outcome)
        child.since = now
        child.jobs += 1
        if child.jobs >= MOST_JOBS or self._has_grown(child):
            child.dismiss(now + QUIT_SECONDS)

    def _has_grown(self, child: Child) -> bool:
        if child.jobs % SIZE_CHECK != 1:
            return False
        size = resident(child.process.pid)
        child.first_size = child.first_size or size
        return size - child.first_size > MOST_GROWTH

    def _judge(self, child: Child, now: float) -> None:
        """Whether a child that is doing well is to end."""
        if child.run is not None:
            limit = child.run.handler.memory_limit
            if limit is not None and (size := used(child.process.pid, limit)) > limit:
                child.condemn([(now, signal.SIGKILL)], MemoryLimitExceeded(size, limit))
        elif child.idle and (self._staffed() > self.concurrency or now > child.since + IDLE_SECONDS):
            self._warm -= 1
            child.dismiss(now + QUIT_SECONDS)

    def _bury(self, child: Child, now: float) -> None:
        self._children.remove(child)
        with suppress(KeyError):
            self._selector.unregister(child.channel)
        self._guard.remove(child.process.pid)
        words = child.last_words()
        exited = ProcessDied(child.bury())
        error = child.error if child.executed and child.error is not None else exited
        if child.dismissed:
            return
        if child.run is None and not child.jobs:
            self._failed_to_start(child.refusal or str(error), now)
            return
        run = child.run
        self.telemetry.emit("child.died", WARNING, run.claimed if run else None, pid=child.process.pid, cause=str(error))
        if run is not None:
            self._deliver(child, _died(run, error, words, now))

    # Staffing

    def _staff(self, now: float) -> None:
        """Start the children that are missing: as many as have been needed at once since they were last idle for long."""
        needed = sum(child.run is not None for child in self._children) + len(self._next)
        self._warm = min(self.concurrency, max(self._warm, needed))
        while self._staffed() < self._warm and now >= self._start_at:
            self._start_child(now)

    def _staffed(self) -> int:
        return sum(not child.dismissed for child in self._children)

    def _start_child(self, now: float) -> None:
        try:
            child = Child(self._command, now)
        except OSError as error:
            self._failed_to_start(str(error), now)
            return
        child.condemn([(now + START_SECONDS, signal.SIGKILL)], ProcessDied(f"was not ready within {START_SECONDS:g} s"))
        self._children.append(child)
        self._selector.register(child.channel, selectors.EVENT_READ)
        self._guard.add(child.process.pid)

    def _failed_to_start(self, cause: str, now: float) -> None:
        """Wait before the next try; and give back what would wait for nobody, uncharged: it is not the jobs' fault."""
        self._failures += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (self._failures - 1))
        self._start_at = now + pause
        self._warm = self._staffed()
        self.telemetry.emit("child.not_started", ERROR, cause=cause, pause=pause)
        while not self._warm and self._next:
            run = self._next.popleft()
            detail = storable(f"no child process could be started: {cause}", ERROR_MESSAGE_CHARACTERS)
            run.outcome = Released(run.fence, ReleaseReason.SNOOZE, max(1.0, pause), detail)
            self._floor.deliver(run)

    def _next_event(self) -> float:
        now = monotonic()
        times = [now + FOREVER]
        for child in self._children:
            times += [due for due, _ in child.sentence]
            if child.run is not None or child.sentence:
                limited = child.run is not None and child.run.handler.memory_limit is not None
                times.append(now + (LOOK_EVERY if limited else TICK))
            elif child.idle:
                times.append(child.since + IDLE_SECONDS)
        if self._start_at > now:
            times.append(self._start_at)
        return min(times)


def _stopped(run: RunningJob, now: float) -> Outcome:
    return raised(run, JobCancelled(run.stopping), now)


def _died(run: RunningJob, error: BaseException, words: str, now: float) -> Outcome:
    """The outcome of a run whose child died under it, with where it was, if that is known."""
    stopped = run.stopping is not None and not isinstance(error, MemoryLimitExceeded)
    outcome = _stopped(run, now) if stopped else raised(run, error, now)
    return outcome._replace(error=outcome.error._replace(traceback=words)) if isinstance(outcome, Failed) else outcome
