"""Worker processes on one store, of either kind, that are killed, stopped, continued and told to end: nothing is lost, nobody charged."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workmill.domain.states import State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

PATIENCE = 60.0
LEASE = 0.5
PROGRAM = textwrap.dedent(
    """
    import os, pathlib, signal, sys, time
    from workmill.engine.context import current_job
    from workmill.engine.worker import Worker, WorkerOptions
    from workmill.store.open import open_store
    from workmill.telemetry import Telemetry
    from workmill.upkeep import Keeper

    folder, lease, concurrency, grace = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def tell(what):
        job = current_job()
        os.write(effects, f"{what} {job.id} {job.claimed.lease} {os.getpid()}\\n".encode())

    class Handler:
        kind, give_up_on, memory_limit = "thread", (), None

        def __init__(self, name, body):
            self.name, self.body = name, body

        def call(self, payload):
            tell("begin")
            self.body(payload)
            tell("end")
            return str(os.getpid())

    def heed(_payload):
        while True:
            current_job().check()
            time.sleep(0.005)

    HANDLERS = {
        "quick": lambda _payload: None,
        "sleep": lambda payload: time.sleep(float(payload)),
        "heed": heed,
        "kill": lambda _payload: os.kill(os.getpid(), signal.SIGKILL),
    }

    class Registry:
        types = tuple(HANDLERS)
        handlers = {name: Handler(name, body) for name, body in HANDLERS.items()}
        get = staticmethod(handlers.get)

    store = open_store(sys.argv[5])
    telemetry = Telemetry()
    options = WorkerOptions(lease_seconds=lease, concurrency=concurrency, grace=grace)
    worker = Worker(store, Registry, options, telemetry=telemetry, waking=store, beside=[Keeper(store, telemetry)])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.request_stop())
    signal.signal(signal.SIGTSTP, lambda *_: worker.drain())
    signal.signal(signal.SIGCONT, lambda *_: worker.resume())
    left = worker.run()
    store.close()
    sys.stdout.flush()
    os._exit(4 if left else 0)
    """
)


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.01)
    return found


@contextmanager
def between_transactions(fleet: "Fleet") -> Iterator[None]:
    """A moment in which no worker writes: one that is stopped within a transaction holds up everybody, since it has SQLite's own lock.

    PostgreSQL ends such a transaction itself.
    """
    if not fleet.store.url.startswith("sqlite:"):
        yield
        return
    connection = sqlite3.connect(fleet.folder / "store.db", isolation_level=None, timeout=PATIENCE)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@dataclass
class Fleet:
    """A store, the worker processes on it, and the folder where their handlers leave traces."""

    folder: Path
    store: Store
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *, lease: float = LEASE, concurrency: int = 4, grace: float = 30.0) -> subprocess.Popen[bytes]:
        """Start a worker process."""
        command = [sys.executable, "-c", PROGRAM, str(self.folder), str(lease), str(concurrency), str(grace), self.store.url]
        environment = {**os.environ, "WORKMILL_SCHEMA": vars(self.store).get("_schema", "workmill")}
        self.processes.append(subprocess.Popen(command, env=environment))
        return self.processes[-1]

    def submit(self, count: int, type: str = "quick", payload: str = "{}", **options: Any) -> list[str]:
        return [receipt.id for receipt in self.store.submit([a_job(type, payload, **options) for _ in range(count)])]

    def effects(self, what: str) -> list[tuple[str, int, int]]:
        """What handlers have told: job, lease, process."""
        path = self.folder / "effects"
        lines = path.read_text().splitlines() if path.exists() else []
        fields = [line.split() for line in lines if line.startswith(what)]
        return [(job, int(lease), int(pid)) for _, job, lease, pid in fields]

    def wait_for_effects(self, what: str, count: int) -> list[tuple[str, int, int]]:
        return until(lambda: (seen := self.effects(what)) and len(seen) >= count and seen)

    def wait_for_ends(self, jobs: list[str]) -> set[State]:
        """Wait until all have ended; how."""
        until(lambda: len(self.store.endings(jobs)) == len(jobs))
        return set(self.store.endings(jobs).values())

    def keep_running(self, jobs: list[str]) -> None:
        """Start a worker whenever the last one has died, until all jobs have ended."""
        end = time.monotonic() + 4 * PATIENCE
        while len(self.store.endings(jobs)) < len(jobs):
            assert time.monotonic() < end, "the jobs did not end"
            if not self.processes or self.processes[-1].poll() is not None:
                self.start()
            time.sleep(0.05)

    def violations(self) -> list[str]:
        while self.store.fold():
            pass
        return self.store.invariants()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    make = request.getfixturevalue("postgres_store") if request.param == "postgresql" else None
    fleet = Fleet(tmp_path, make() if make else open_store(f"sqlite:///{tmp_path}/store.db"))
    yield fleet
    fleet.close()


def test_jobs_of_a_killed_worker_run_elsewhere_within_a_lease_and_two_seconds_uncharged(fleet: Fleet) -> None:
    jobs = fleet.submit(2, "sleep", "30", max_losses=5)
    doomed = fleet.start(concurrency=2, lease=2.0)
    fleet.wait_for_effects("begin", 2)
    fleet.start(concurrency=2, lease=2.0)
    until(lambda: len(fleet.store.workers()) == 2)

    doomed.kill()
    killed_at = time.monotonic()
    fleet.wait_for_effects("begin", 3)
    first_again = time.monotonic() - killed_at

    assert first_again < 2.0 + 2.0 + 1.0
    assert {fleet.store.job(job).attempt for job in jobs} <= {0, 1}
    assert max(fleet.store.job(job).losses for job in jobs) == 1


def test_workers_killed_at_random_moments_lose_no_job(fleet: Fleet, rng: random.Random, rounds: Callable[..., int]) -> None:
    jobs = fleet.submit(400, max_losses=1_000) + fleet.submit(40, "sleep", "0.01", max_losses=1_000)

    for _ in range(rounds(3, soak=1_000)):
        doomed = fleet.start()
        time.sleep(rng.uniform(0.3, 0.8))
        doomed.kill()
        doomed.wait()
    fleet.start()

    assert fleet.wait_for_ends(jobs) == {State.SUCCEEDED}
    assert fleet.violations() == []
    assert {job for job, _, _ in fleet.effects("end")} == set(jobs)


def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_goes_on(fleet: Fleet) -> None:
    jobs = fleet.submit(2, "sleep", "1.0", max_losses=5)
    frozen = fleet.start(concurrency=2)
    fleet.wait_for_effects("begin", 2)
    (first,) = fleet.store.workers()

    with between_transactions(fleet):
        frozen.send_signal(signal.SIGSTOP)
    second = fleet.start(concurrency=2)
    ended = fleet.wait_for_ends(jobs)
    before = [fleet.store.job(job) for job in jobs]
    frozen.send_signal(signal.SIGCONT)
    until(lambda: len(fleet.effects("end")) == 4)
    until(lambda: {worker.pid for worker in fleet.store.workers()} == {frozen.pid, second.pid})

    assert ended == {State.SUCCEEDED}
    assert [fleet.store.job(job) for job in jobs] == before
    assert {job.result for job in before} == {str(second.pid)}
    assert first.id not in {worker.id for worker in fleet.store.workers()}
    assert fleet.violations() == []


def test_a_worker_told_to_stop_gives_back_what_it_prefetched_and_ends_within_its_grace(fleet: Fleet) -> None:
    quick = fleet.submit(500)
    running = fleet.submit(10, "sleep", "0.3")
    behind = fleet.submit(500, "sleep", "0.3")
    worker = fleet.start(concurrency=10, lease=15.0)
    fleet.wait_for_effects("begin", 510)

    worker.send_signal(signal.SIGTERM)
    code = worker.wait(PATIENCE)

    begun = {job for job, _, _ in fleet.effects("begin")}
    assert code == 0
    assert fleet.wait_for_ends([*quick, *running]) == {State.SUCCEEDED}
    assert {fleet.store.job(job).state for job in behind if job not in begun} == {State.QUEUED}
    assert {fleet.store.job(job).state for job in begun} == {State.SUCCEEDED}
    assert {fleet.store.job(job).attempt for job in behind if job not in begun} == {0}
    assert fleet.store.workers() == []


def test_what_does_not_end_within_the_grace_is_given_back_and_the_exit_code_says_so(fleet: Fleet) -> None:
    jobs = fleet.submit(2, "heed")
    worker = fleet.start(concurrency=2, lease=15.0, grace=0.2)
    fleet.wait_for_effects("begin", 2)

    worker.send_signal(signal.SIGTERM)
    code = worker.wait(PATIENCE)

    assert code == 4
    assert {(fleet.store.job(job).state, fleet.store.job(job).attempt) for job in jobs} == {(State.QUEUED, 0)}


def test_a_second_signal_ends_a_worker_now_whatever_runs(fleet: Fleet) -> None:
    jobs = fleet.submit(2, "sleep", "300")
    worker = fleet.start(concurrency=2, lease=15.0, grace=300.0)
    fleet.wait_for_effects("begin", 2)

    worker.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    worker.send_signal(signal.SIGTERM)
    code = worker.wait(20)

    assert code == 4
    assert {(fleet.store.job(job).state, fleet.store.job(job).attempt) for job in jobs} == {(State.QUEUED, 0)}


def test_a_worker_drains_and_resumes_by_signals(fleet: Fleet) -> None:
    worker = fleet.start(lease=15.0)
    until(fleet.store.workers)
    first = fleet.submit(10)
    fleet.wait_for_ends(first)

    worker.send_signal(signal.SIGTSTP)
    time.sleep(0.3)
    second = fleet.submit(10)
    time.sleep(0.3)
    while_drained = {fleet.store.job(job).state for job in second}
    worker.send_signal(signal.SIGCONT)

    assert while_drained == {State.QUEUED}
    assert fleet.wait_for_ends(second) == {State.SUCCEEDED}


def test_a_job_that_kills_its_workers_ends_dead_and_its_neighbours_succeed_uncharged(fleet: Fleet, rounds: Callable[..., int]) -> None:
    killers = fleet.submit(rounds(1, soak=4), "kill", max_losses=2)
    neighbours = fleet.submit(20, "sleep", "0.02", max_losses=2)

    fleet.keep_running([*killers, *neighbours])

    assert {fleet.store.job(job).state for job in neighbours} == {State.SUCCEEDED}
    assert {(fleet.store.job(job).state, fleet.store.job(job).error.type) for job in killers} == {(State.DEAD, "worker_lost")}
    assert fleet.violations() == []


def test_two_workers_on_one_host_are_told_apart_by_their_ids(fleet: Fleet) -> None:
    fleet.start(lease=15.0)
    fleet.start(lease=15.0)

    workers = until(lambda: len(found := fleet.store.workers()) == 2 and found)

    assert len({worker.id for worker in workers}) == 2
    assert {worker.pid for worker in workers} == {process.pid for process in fleet.processes}
    assert os.getpid() not in {worker.pid for worker in workers}
