"""A PostgreSQL server to be broken, and real processes on it: applications that submit, and workers whose jobs leave marks."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from workmill.domain.errors import StoreError
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job
from workmill.testing.servers import PostgresServer

HERE = Path(__file__).parent
PATIENCE = 60.0
NUMBERS = count(1)


class Mark(NamedTuple):
    """What a job has told: `begin` or `end`, under which lease, in which process."""

    what: str
    job: str
    lease: int
    pid: int


def until(condition: Callable[[], Any]) -> Any:
    """Wait until it holds, and return what it returned; a bound, not a measure. An error of the store is a no."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(StoreError):
            if found := condition():
                return found
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)


@dataclass
class Scene:
    """A store on a server that a test may break, seen directly, and the processes that work on it by whatever way the test says."""

    server: PostgresServer
    schema: str
    folder: Path
    store: Store
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *options: str, url: str | None = None, lease: float = 3, before: str = "") -> subprocess.Popen[bytes]:
        """Start `workmill worker`, and wait until it has joined. `before`: Python that its process runs first."""
        joined = len(self.store.workers())
        program = f"{before}\nimport sys\nfrom workmill.cli import main\nsys.exit(main())"
        command = [sys.executable, "-X", "dev", "-W", "error", "-c", program, "worker", "marks:mill", "--lease", str(lease), *options]
        environment = {
            **os.environ,
            "WORKMILL_STORE": url or self.store.url,
            "WORKMILL_SCHEMA": self.schema,
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "MARKS": str(self.folder / "marks"),
        }
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.processes.append(process)
        until(lambda: process.poll() is not None or len(self.store.workers()) > joined)
        assert process.poll() is None, self.log
        return process

    def submit(self, number: int, type: str = "work", ms: float = 0, **options: Any) -> list[str]:
        return [receipt.id for receipt in self.store.submit([a_job(type, f'{{"ms": {ms}}}', **options) for _ in range(number)])]

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def marks(self, what: str | None = None) -> list[Mark]:
        """What jobs have told, in order."""
        path = self.folder / "marks"
        lines = path.read_text().splitlines() if path.exists() else []
        marks = [Mark(what, job, int(lease), int(pid)) for what, job, lease, pid in map(str.split, lines)]
        return [mark for mark in marks if what in {None, mark.what}]

    def begun(self) -> Counter[str]:
        """How often each job has begun."""
        return Counter(mark.job for mark in self.marks("begin"))

    def ends(self, jobs: Sequence[str]) -> set[State]:
        """Wait until all have ended; how."""
        until(lambda: len(self.store.endings(jobs)) == len(jobs))
        return set(self.store.endings(jobs).values())

    def violations(self) -> list[str]:
        until(lambda: not self.store.fold())
        return self.store.invariants()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.store.close()


@pytest.fixture(scope="session")
def breakable() -> Iterator[PostgresServer]:
    """A durable server to be broken. Whoever breaks it mends it."""
    server = PostgresServer(settings=["max_connections=40"])
    yield server
    server.remove()


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """`staged(server, url)`: a scene on a server."""
    scenes: list[Scene] = []

    def stage(server: PostgresServer, url: str | None = None) -> Scene:
        schema = f"scene_{next(NUMBERS)}"
        store = open_store(url or server.url, schema=schema)
        store.migrate()
        scenes.append(Scene(server, schema, tmp_path, store))
        return scenes[-1]

    yield stage
    for scene in scenes:
        scene.close()


@pytest.fixture
def scene(breakable: PostgresServer, staged: Callable[..., Scene]) -> Scene:
    """A scene on the server that may be broken."""
    return staged(breakable)


@pytest.fixture
def patiently() -> Callable[[Callable[[], Any]], Any]:
    """`until`."""
    return until
