"""Hints between processes: NOTIFY from a connection of its own, LISTEN on another, both made anew when they break."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psycopg

from workmill.loops import Loop, Teller
from workmill.store.postgres.connections import Connection
from workmill.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable


CHANNEL: Final = "workmill"
PROBE_SECONDS: Final = 10.0
"""How often a listening connection is asked whether it is alive: one may be dead without a word."""
AGAIN_SECONDS: Final = (0.1, 0.3, 1.0, 3.0)
"""Waits before a broken connection is made anew."""
NOTIFY: Final = b"SELECT pg_notify('workmill', $1)"


_PARENTS: Final[list[Connection | None]] = []


class Notifier(Teller):
    """Tells other processes that something has been committed."""

    name = "notifier"

    def __init__(self, connect: Callable[[], Connection], sender: str) -> None:
        super().__init__()
        self._connect = connect
        self._sender = sender
        self._connection: Connection | None = None

    def send(self) -> None:
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.execute(NOTIFY, [self._sender])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


class Listener(Loop):
    """Hears what other processes tell."""

    name = "listener"

    def __init__(self, connect: Callable[[], Connection], on_change: Callable[[], None], own: str) -> None:
        super().__init__(Telemetry())
        self._connect = connect
        self._on_change = on_change
        self._own = own
        self._connection: Connection | None = None
        self._failures = 0
        self._ears, self._mouth = socket.socketpair()
        self._ears.setblocking(False)
        self._mouth.setblocking(False)

    def run_once(self) -> float:
        try:
            self._listen()
        except Exception:  # noqa: BLE001 - whatever it was, it is made anew, and polling covers until then
            self._hang_up()
            self._failures += 1
            return AGAIN_SECONDS[min(self._failures, len(AGAIN_SECONDS)) - 1]
        return PROBE_SECONDS

    def rest(self, seconds: float) -> None:
        """Until there is something to read, somebody wakes this, or the time is over."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._ears, selectors.EVENT_READ)
            if self._connection is not None:
                selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.select(seconds)
        with suppress(BlockingIOError):
            self._ears.recv(4096)

    def wake(self) -> None:
        with suppress(BlockingIOError):  # it is full, so it will be read
            self._mouth.send(b"!")

    def forget(self) -> None:
        """Begin nothing anew in a fork's child: the connection is kept, untouched, since to close it would end it for the parent."""
        _PARENTS.append(self._connection)
        self._connection = None
        self.close()

    def close(self) -> None:
        """Let go of the connection and of what wakes the thread."""
        self._hang_up()
        self._ears.close()
        self._mouth.close()

    def _repeat(self) -> None:
        """The connection goes with the thread, when nobody listens any more."""
        super()._repeat()
        self._hang_up()

    def _listen(self) -> None:
        """Take in what has come; make the connection when there is none, and then nobody knows what was missed."""
        if self._connection is None:
            connection = self._connection = self._connect()
            connection.execute(b"LISTEN workmill")
            self._failures = 0
            self._on_change()
            return
        self._connection.execute(b"SELECT 1")  # a probe, and what takes in the news
        heard = [notify.payload for notify in self._connection.notifies(timeout=0)]
        if any(payload != self._own for payload in heard):
            self._on_change()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
