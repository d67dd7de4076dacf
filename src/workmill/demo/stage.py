"""Where the demonstration is played: a store of its own in a new directory, and real worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from workmill.domain.errors import WorkmillError
from workmill.store.open import open_store
from workmill.supervisor import lifeline, tied

if TYPE_CHECKING:
    from workmill.domain.worker import Worker

TARGET: Final = "workmill.demo.jobs:mill"
NAMES: Final = ("ada", "bruno")
LEASE: Final = 2.0
GRACE: Final = 2.0
PATIENCE: Final = 10.0
"""Seconds that a worker may take to stop before it is killed."""
LAST_LINES: Final = 5


class WorkerFailed(WorkmillError):
    """A worker process ended by itself."""


class Stage:
    """A directory, a store in it, and two workers; what is left at the end is the directory."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="workmill-demo-"))
        self.url = f"sqlite:///{self.directory / 'demo.db'}"
        self.partner = self.directory / "partner"
        self.store = open_store(self.url)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: set[str] = set()
        self._lifeline = -1
        self._end = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.store.close)
            self._lifeline = stack.enter_context(lifeline())
            stack.callback(self._stop)
            self.store.migrate()
            for name in NAMES:
                self._start(name)
            self._end = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.close()

    def check(self) -> None:
        """See that the workers live.

        Raises:
            WorkerFailed: one ended that was not killed; with the last lines of its log.

        """
        for name, process in self.processes.items():
            if name not in self.killed and process.poll() is not None:
                lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
                raise WorkerFailed(f"worker {name} ended with exit code {process.returncode}: " + " | ".join(lines))

    def kill(self, worker: Worker) -> None:
        """End a worker process at once, as a crash or a pulled plug would."""
        self.killed.add(worker.name)
        self.processes[worker.name].kill()
        self.processes[worker.name].wait()

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _start(self, name: str) -> None:
        command = [sys.executable, "-m", "workmill", "worker", TARGET, "--name", name, "-c", "4", f"--lease={LEASE}s", f"--grace={GRACE}s"]
        with self._log(name).open("wb") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - this very program
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[self._lifeline],
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        """The environment without the settings of the user's own store and workers."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WORKMILL_")}
        return {**kept, "WORKMILL_STORE": self.url, **tied(self._lifeline, GRACE)}

    def _stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
