"""A network between clients and a PostgreSQL server that delays, cuts, and swallows answers, when it is told to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from workmill import clock

if TYPE_CHECKING:
    from types import TracebackType

    from workmill.testing.servers import PostgresServer

COMMIT: Final = b"COMMIT\0"
"""How the driver asks for a commit, and how the server says that it has been done."""


class Proxy:
    """Hands on what comes, on a port of its own, until it is told otherwise. Each field and method may be used at any time.

    `delay`: seconds that each answer takes. `loses_every`: of so many commits, one is done and its answer swallowed; then the connection is
    cut, or hangs when `cuts` is False.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.delay = 0.0
        self.loses_every = 0
        self.cuts = True
        self.lost = 0
        self._commits = 0
        self._counting = threading.Lock()
        self._links: list[_Link] = []
        self._server = str(server.directory / ".s.PGSQL.5432")
        self._ear = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """For clients, through the proxy."""
        return f"postgresql://postgres@127.0.0.1:{self._ear.getsockname()[1]}/postgres?sslmode=disable&gssencmode=disable"

    def cut(self) -> None:
        """Every connection ends now."""
        for link in self._links:
            link.cut()

    def hang(self) -> int:
        """From now on nothing comes back on the connections that are open, and what is sent is taken; new ones work. Returns how many."""
        hanging = [link for link in self._links if link.open and not link.hangs]
        for link in hanging:
            link.hangs = True
        return len(hanging)

    def loses_this(self) -> bool:
        """A commit has been done: whether its answer gets lost."""
        with self._counting:
            self._commits += 1
            loses = self.loses_every > 0 and self._commits % self.loses_every == 0
            self.lost += loses
        return loses

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._ear.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._ear.close()
        for link in self._links:
            link.cut()
            link.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._ear.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:
                client.close()
                server.close()
            else:
                self._links.append(_Link(self, client, server))


class _Link:
    """One connection: a thread for what is asked, one for what is answered."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.hangs = False
        self.open = True
        self._proxy = proxy
        self._client, self._server = client, server
        self._threads = [threading.Thread(target=pump, daemon=True) for pump in (self._ask, self._answer)]
        for thread in self._threads:
            thread.start()

    def cut(self) -> None:
        self.open = False
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        self._client.close()
        self._server.close()

    def _ask(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(65_536):
                try:
                    self._server.sendall(data)
                except OSError:
                    if not self.hangs:
                        break
        self.cut()

    def _answer(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(65_536):
                if COMMIT in data and self._proxy.loses_this():
                    if self._proxy.cuts:
                        break
                    self.hangs = True
                if self._proxy.delay:
                    clock.sleep(self._proxy.delay)
                if not self.hangs:
                    self._client.sendall(data)
        if not self.hangs:  # else nobody hears that the server has hung up
            self.cut()
