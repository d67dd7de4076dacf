"""One child process as its worker sees it: started, spoken to, told to end, and buried; and the guard of all of them.

A child is started anew from the interpreter, never forked from this threaded process, and inherits three standard streams, one
socket and one file: in that it notes where its handler was when it crashed or was interrupted.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

import msgspec

from workmill.domain.limits import TRACEBACK_CHARACTERS
from workmill.engine.executors import guard
from workmill.engine.executors.frames import Begin, Garbled, Halt, Load, Quit, ToChild, ToWorker, Unpacker, pack, to_worker
from workmill.engine.reports import storable
from workmill.telemetry import log_form

if TYPE_CHECKING:
    from workmill.engine.context import RunningJob, Stop

GUARD_SECONDS: Final = 0.5
"""Seconds that the guard has to end when it is let go."""


class Child:
    """`run` is what it runs, `jobs` how many it has run. `mute`: it says nothing any more.

    `sentence` holds the signals it is to get and when: who has one gets no further run. `executed`: one was sent, and `error` is what it
    has died of. `dismissed`: it is to leave, and its place is free. `refusal`: why it could not import the target.
    """

    def __init__(self, command: Sequence[str], now: float) -> None:
        self.channel, theirs = socket.socketpair()
        self._notes = TemporaryFile("a+b", buffering=0)  # noqa: SIM115 - it lives as long as the child
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the command is ours
                [*command, str(theirs.fileno()), str(self._notes.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), self._notes.fileno()],
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
        self.channel.setblocking(False)
        self.run: RunningJob | None = None
        self.ready = False
        self.mute = False
        self.dismissed = False
        self.refusal = ""
        self.sentence: deque[tuple[float, int]] = deque()
        self.executed = False
        self.error: BaseException | None = None
        self.since = now
        self.jobs = 0
        self.first_size = 0
        self._unpacker = Unpacker()
        self._outbox = bytearray()
        self.send(Load(sys.path, log_form()))

    @property
    def idle(self) -> bool:
        """Whether it can take a run now."""
        return self.ready and self.run is None and not self.sentence

    @property
    def interest(self) -> int:
        """Which events of its channel are of interest."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)

    def begin(self, run: RunningJob, now: float) -> None:
        """Let it run this."""
        self.run, self.since = run, now
        if os.fstat(self._notes.fileno()).st_size:
            self._notes.truncate(0)
        self.send(Begin(run.claimed, run.claimed_at, run.started, run.ends_at))

    def halt(self, reason: Stop, signals: Iterable[tuple[float, int]]) -> None:
        """Ask it to end its run, and sentence it: so that all of a run that was stopped is gone."""
        self.send(Halt(reason))
        self.condemn(signals)

    def dismiss(self, kill_at: float) -> None:
        """Let it leave its place, and kill what is there then."""
        self.dismissed = True
        self.send(Quit())
        self.condemn([(kill_at, signal.SIGKILL)])

    def condemn(self, signals: Iterable[tuple[float, int]], error: BaseException | None = None) -> None:
        """Replace its sentence, and the reason for it."""
        self.sentence = deque(signals)
        self.error = error

    def execute(self, now: float) -> None:
        """Send the signals that are due, to it and to what it has started, and what it has not read yet."""
        self.flush()
        while self.sentence and self.sentence[0][0] <= now:
            due, number = self.sentence.popleft()
            guard.signal_family(self.process.pid, number)
            self.executed = True
            if number == signal.SIGKILL:
                self.sentence.append((due + 1.0, number))

    def send(self, message: ToChild) -> None:
        """Send it this, as far as it reads; the rest goes with `flush`."""
        self._outbox += pack(message)
        self.flush()

    def flush(self) -> None:
        """Send what is left."""
        with suppress(BlockingIOError, OSError):
            while self._outbox:
                del self._outbox[: self.channel.send(self._outbox)]

    def hear(self) -> Iterator[ToWorker]:
        """What it has said.

        Raises:
            EOFError: it says no more: it is about to end, or has lost its end of the channel.
            Garbled: something else has written there.

        """
        with suppress(BlockingIOError):
            while True:
                try:
                    data = self.channel.recv(1 << 18)
                except ConnectionError:
                    data = b""
                if not data:
                    raise EOFError
                yield from map(_decoded, self._unpacker.feed(data))

    def has_exited(self) -> bool:
        """Whether it is dead. It stays a zombie until it is buried, so that its number means nobody else (where the system can do that)."""
        if not hasattr(os, "waitid"):
            return self.process.poll() is not None
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def bury(self) -> str:
        """Kill what it has left in its group, and forget it; returns what it died of."""
        guard.signal_family(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self._close()
        return f"exit code {code}" if code >= 0 else f"killed by signal {_signal_name(-code)}"

    def last_words(self) -> str:
        """Where its handler was when it crashed or got SIGTERM; empty when it did not come to that."""
        size = os.fstat(self._notes.fileno()).st_size
        return storable(os.pread(self._notes.fileno(), min(size, TRACEBACK_CHARACTERS), 0).decode(errors="backslashreplace"))

    def _close(self) -> None:
        self.channel.close()
        self._notes.close()


class Guard:
    """The process that outlives this one by a moment. It is told of each child; one that has died is replaced and told of all."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pids: set[int] = set()

    def add(self, pid: int) -> None:
        """Kill this child's family if this process dies."""
        self._pids.add(pid)
        self._tell(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """It is dead, or as good as."""
        self._pids.discard(pid)
        self._tell(f"-{pid}\n")

    def look_after(self) -> None:
        """Replace it when it has died."""
        if self._pids and self._process is not None and self._process.poll() is not None:
            self._replace()

    def close(self) -> None:
        """Let it go, with nobody left to kill."""
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _tell(self, line: str) -> None:
        if self._process is None:
            self._replace()
        elif self._process.stdin is not None:
            with suppress(BrokenPipeError):  # it has just died: it will be looked after
                self._process.stdin.write(line.encode())

    def _replace(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        command = [sys.executable, "-I", "-S", guard.__file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)  # noqa: S603 - our own file
        for pid in self._pids:
            self._tell(f"+{pid}\n")


def _decoded(frame: bytes) -> ToWorker:
    try:
        return to_worker.decode(frame)
    except msgspec.MsgspecError as error:
        raise Garbled(str(error)) from None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
