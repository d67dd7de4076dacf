"""`worker -p N`: a parent that keeps N worker processes running. It opens no store, claims no job and imports no handler.

It knows its workers by their exit codes alone: 0 has finished (`--burst`, `--max-jobs`) and is not started again; 2 cannot start
at all and ends everything; any other ending, and any signal, is a death and is started anew. Each worker runs in a session of
its own, so that a Ctrl-C on the terminal reaches the supervisor only. Its first order to stop is SIGTERM, its second SIGINT: a supervised
worker takes any number of SIGTERM for one, since a service manager may send them to every process of a service.
"""

import logging
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from workmill.clock import monotonic, sleep

DONE, FAILED, USAGE, UNREACHABLE, WORK_LEFT = range(5)
_GRAVEST_FIRST: Final = (USAGE, UNREACHABLE, FAILED, WORK_LEFT, DONE)
_LIFELINE: Final = "WORKMILL_LIFELINE"

HEALTHY_AFTER: Final = 5.0
"""Seconds after which a worker counts as having started: a death before is one of a row, and each of a row waits longer."""
STILLBORN: Final = 3
"""So many early deaths of every worker, and none ever healthy: they cannot start."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
CLEAN_UP: Final = 10.0
"""Seconds that a worker has after its grace to cancel, give back and leave, before it is told to go now."""
LAST_WORDS: Final = 5.0
"""Seconds between "now" and SIGKILL."""

log = logging.getLogger(__name__)


def supervise(command: Sequence[str], processes: int, grace: float) -> int:
    """Run `processes` copies of `command` until they finish or are told to stop; returns one exit code for all.

    `{n}` in an argument becomes the number of the copy, 1 to `processes`. The first TERM, INT or HUP lets all of them stop within
    one `grace`, the second at once; TSTP and CONT are passed on. A copy that dies is started again, at once the first time, with
    growing pauses when it keeps dying early; never while stopping. When none can start, the code of their deaths is returned.
    What is still there some seconds after its grace is killed, with its process group. Call it in the main thread.
    """
    with lifeline() as end, _signals() as inbox:
        return _Supervisor(command, processes, grace, end, inbox).run()


def follow_supervisor() -> bool:
    """In a worker that a supervisor started: when the supervisor dies, stop as by SIGTERM, and by SIGKILL if that does not help.

    Returns whether there is one; without one it does nothing else. Call it once, after the handler of SIGTERM is in place.
    """
    line = os.environ.pop(_LIFELINE, None)
    if line is None:
        return False
    end, _, patience = line.partition(",")
    os.set_inheritable(int(end), False)
    threading.Thread(target=_await_end, args=(int(end), float(patience)), name="lifeline", daemon=True).start()
    return True


def _await_end(end: int, patience: float) -> None:
    os.read(end, 1)  # nobody ever writes: this returns when the last holder of the other end, the supervisor, is gone
    os.kill(os.getpid(), signal.SIGTERM)
    sleep(patience)
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True)
class _Seat:
    """The place of one worker: the process that has it, or when the next is due, or the code with which it finished."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    born: float = 0.0
    due: float = 0.0
    early_deaths: int = 0
    last: int = DONE
    code: int | None = None


class _Supervisor:
    def __init__(self, command: Sequence[str], processes: int, grace: float, end: int, inbox: "_Inbox") -> None:
        self.command = command
        self.grace = grace
        self.seats = [_Seat(number) for number in range(1, processes + 1)]
        self.end = end
        self.inbox = inbox
        self.stops = 0
        self.deadline = float("inf")
        self.proven = False

    def run(self) -> int:
        try:
            while self._turn(monotonic()):
                for number in self.inbox.wait(self._until(monotonic())):
                    self._obey(number)
        finally:
            self._kill()
        return combine(seat.code for seat in self.seats)

    def _turn(self, now: float) -> bool:
        """Do what is due; returns whether there is anything left to wait for."""
        for seat in self.seats:
            self._look_after(seat, now)
        if now >= self.deadline:
            self._hurry(now)
        return any(seat.code is None for seat in self.seats)

    def _look_after(self, seat: _Seat, now: float) -> None:
        if seat.process is None:
            if seat.code is None and now >= seat.due:
                self._start(seat, now)
        elif (code := seat.process.poll()) is not None:
            seat.process = None
            self._ended(seat, code, now)
        elif now >= seat.born + HEALTHY_AFTER:
            self.proven = True
            seat.early_deaths = 0

    def _start(self, seat: _Seat, now: float) -> None:
        seat.born = now
        try:
            seat.process = self._spawn(seat.number)
        except OSError as error:
            log.error("worker %d cannot be started: %s", seat.number, error)  # noqa: TRY400 - no line of ours is at fault
            self._ended(seat, FAILED, now)
        else:
            log.info("worker %d started as process %d", seat.number, seat.process.pid)

    def _spawn(self, number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the command is this program's own
            [argument.replace("{n}", str(number)) for argument in self.command],
            env=os.environ | tied(self.end, self.grace),
            stdin=subprocess.DEVNULL,
            pass_fds=[self.end],
            start_new_session=True,
        )

    def _ended(self, seat: _Seat, code: int, now: float) -> None:
        seat.last = code
        if code == DONE or self.stops:
            seat.code = code
        elif code == USAGE and not self.proven:
            self._give_up(code)
        else:
            self._mourn(seat, code, now)

    def _mourn(self, seat: _Seat, code: int, now: float) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (seat.early_deaths - 1)) if seat.early_deaths else 0.0
        seat.early_deaths += 1
        seat.due = now + pause
        log.warning("worker %d has died (%s); the next starts in %g s", seat.number, _cause(code), pause)
        if not self.proven and all(other.early_deaths >= STILLBORN for other in self.seats):
            self._give_up(code)

    def _give_up(self, code: int) -> None:
        log.error("the workers cannot start (%s)", _cause(code))
        self._stop()

    def _obey(self, number: int) -> None:
        if number in {signal.SIGTSTP, signal.SIGCONT}:
            self._tell(number)
        else:
            self._stop()

    def _stop(self) -> None:
        self.stops += 1
        self.deadline = monotonic() + (self.grace + CLEAN_UP if self.stops == 1 else LAST_WORDS)
        log.info("stopping %s", f"within {self.grace:g} s" if self.stops == 1 else "now")
        self._tell(signal.SIGTERM if self.stops == 1 else signal.SIGINT)
        for seat in self.seats:
            if seat.process is None and seat.code is None:
                seat.code = seat.last

    def _hurry(self, now: float) -> None:
        """Tell those that have not kept to their time to go now, and kill those that were told."""
        if self.stops == 1:
            self._stop()
        else:
            log.warning("killing the workers that do not stop")
            self._kill()
            self.deadline = now + LAST_WORDS

    def _tell(self, number: int) -> None:
        for seat in self.seats:
            if seat.process is not None:
                seat.process.send_signal(number)

    def _kill(self) -> None:
        for seat in self.seats:
            if seat.process is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(seat.process.pid, signal.SIGKILL)
                seat.process.wait()

    def _until(self, now: float) -> float:
        """Seconds to the next thing that happens by itself: a start, a coming of age, a deadline."""
        times = [self.deadline]
        for seat in self.seats:
            if seat.process is None and seat.code is None:
                times.append(seat.due)
            elif seat.process is not None and now < seat.born + HEALTHY_AFTER:
                times.append(seat.born + HEALTHY_AFTER)
        return max(0.0, min(min(times) - now, 3_600.0))


def combine(codes: Iterable[int | None]) -> int:
    """The gravest of the exit codes; a worker that was killed has left work, one that a TERM met before it began has not."""
    seen = {_exit_code(code) for code in codes}
    return next(code for code in _GRAVEST_FIRST if code in seen)


def _exit_code(code: int | None) -> int:
    if code is None or code == -signal.SIGTERM:
        return DONE
    return WORK_LEFT if code < 0 else code if code in _GRAVEST_FIRST else FAILED


def _cause(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


class _Inbox:
    """The signals that have come, in order, and a wait that they end."""

    def __init__(self, bell: int) -> None:
        self.bell = bell
        self.numbers: list[int] = []

    def wait(self, seconds: float) -> list[int]:
        if select.select([self.bell], [], [], seconds)[0]:
            os.read(self.bell, 4_096)
        came, self.numbers = self.numbers, []
        return came

    def take(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.numbers.append(number)


@contextmanager
def _signals() -> Iterator[_Inbox]:
    """All the signals a supervisor listens to, for the time of the block."""
    bell, rope = os.pipe()
    os.set_blocking(rope, False)
    inbox = _Inbox(bell)
    wake_before = signal.set_wakeup_fd(rope, warn_on_full_buffer=False)
    heard = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)
    before = {number: signal.signal(number, inbox.take) for number in heard}
    try:
        yield inbox
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wake_before)
        os.close(rope)
        os.close(bell)


def tied(end: int, grace: float) -> dict[str, str]:
    """What a worker must find in its environment (and inherit: `end`) to end, within its grace, when this process is gone."""
    return {_LIFELINE: f"{end},{grace + CLEAN_UP + LAST_WORDS}"}


@contextmanager
def lifeline() -> Iterator[int]:
    """The end of a pipe whose other end this process alone holds: when it is gone, however it went, the pipe reads as ended."""
    end, mine = os.pipe()
    try:
        yield end
    finally:
        os.close(mine)
        os.close(end)
