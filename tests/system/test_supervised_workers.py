"""`workmill worker -p N` as a whole: a supervisor, real workers, a store file."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from workmill import Job, WaitTimeout, Workmill
from workmill.domain.states import State


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def state(job: Job[object]) -> State:
    return job.refresh().state


class Site:
    """A folder with a store, and the supervisors started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mill = Workmill(f"sqlite:///{folder / 'jobs.db'}")
        self.started: list[psutil.Process] = []

    def supervisor(self, *options: str, target: str = "workmill.samples:mill") -> psutil.Process:
        command = [sys.executable, "-m", "workmill", "--store", self.mill.url, "worker", target, *options]
        with (self.folder / "log").open("ab") as log:
            self.started.append(psutil.Popen(command, cwd=self.folder, stderr=log))
        return self.started[-1]

    def pids(self) -> dict[str, int]:
        """The live workers by name."""
        return {worker.name: worker.pid for worker in self.mill.workers.list()}

    def await_logged(self, event: str, times: int) -> None:
        wait_until(lambda: (self.folder / "log").read_text().count(f"event={event} ") == times)

    def await_workers(self, count: int) -> dict[str, int]:
        wait_until(lambda: len(self.pids()) == count)
        return self.pids()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for process in site.started:
        for member in [*process.children(), process] if process.is_running() else []:
            member.kill()
        process.wait()
    site.mill.close()


def test_every_process_is_a_worker_with_a_name_of_its_own(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", "--name", "mail")

    workers = site.await_workers(2)

    assert set(workers) == {"mail-1", "mail-2"}
    assert set(workers.values()) == {child.pid for child in supervisor.children()}


def test_a_killed_worker_is_started_again_and_its_job_runs(site: Site) -> None:
    site.supervisor("-p", "2", "-c", "1", "--lease", "1", "--name", "w")
    before = site.await_workers(2)
    job = site.mill.enqueue("sleep", {"ms": 1_500})
    wait_until(lambda: state(job) is State.RUNNING)
    [victim] = [worker.pid for worker in site.mill.workers.list() if worker.running]

    os.kill(victim, signal.SIGKILL)

    wait_until(lambda: state(job) is State.SUCCEEDED)
    assert job.refresh().record.losses == 1
    wait_until(lambda: len(site.pids()) == 2 and set(site.pids().values()) != set(before.values()))


def test_one_signal_stops_all_within_the_grace(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", "-c", "1")
    site.await_workers(2)
    jobs = [site.mill.enqueue("sleep", {"ms": 800}) for _ in range(2)]
    wait_until(lambda: all(state(job) is State.RUNNING for job in jobs))

    supervisor.send_signal(signal.SIGINT)

    assert supervisor.wait(30) == 0
    assert {state(job) for job in jobs} == {State.SUCCEEDED}
    assert site.pids() == {}


def test_a_service_manager_that_signals_every_process_lets_them_finish(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", "-c", "1")
    workers = site.await_workers(2)
    jobs = [site.mill.enqueue("sleep", {"ms": 1_000}) for _ in range(2)]
    wait_until(lambda: all(state(job) is State.RUNNING for job in jobs))

    for pid in (*workers.values(), supervisor.pid):
        os.kill(pid, signal.SIGTERM)

    assert supervisor.wait(30) == 0
    assert {state(job) for job in jobs} == {State.SUCCEEDED}


def test_a_second_signal_stops_all_at_once(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", "-c", "1")
    site.await_workers(2)
    jobs = [site.mill.enqueue("sleep", {"ms": 20_000}) for _ in range(2)]
    wait_until(lambda: all(state(job) is State.RUNNING for job in jobs))

    supervisor.send_signal(signal.SIGTERM)
    site.await_logged("worker.draining", 2)
    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(15) == 4
    assert {state(job) for job in jobs} == {State.QUEUED}


def test_processes_of_a_burst_end_when_the_work_is_done(site: Site) -> None:
    jobs = [site.mill.enqueue("noop") for _ in range(50)]

    supervisor = site.supervisor("-p", "2", "--burst")

    assert supervisor.wait(30) == 0
    assert {state(job) for job in jobs} == {State.SUCCEEDED}


def test_a_target_that_does_not_exist_ends_it_with_a_usage_error(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", target="nothing.of.that.name:mill")

    assert supervisor.wait(30) == 2


def test_workers_finish_what_runs_and_go_when_their_supervisor_is_killed(site: Site) -> None:
    supervisor = site.supervisor("-p", "2", "-c", "1")
    workers = site.await_workers(2)
    job = site.mill.enqueue("sleep", {"ms": 1_000})
    wait_until(lambda: state(job) is State.RUNNING)

    supervisor.kill()

    wait_until(lambda: not any(map(psutil.pid_exists, workers.values())))
    assert state(job) is State.SUCCEEDED


def test_drain_and_resume_reach_every_worker(site: Site) -> None:
    supervisor = site.supervisor("-p", "2")
    site.await_workers(2)

    supervisor.send_signal(signal.SIGTSTP)
    site.await_logged("worker.draining", 2)
    job = site.mill.enqueue("noop")
    with pytest.raises(WaitTimeout):
        job.wait(timeout=0.5)
    supervisor.send_signal(signal.SIGCONT)

    assert job.wait(timeout=30).state is State.SUCCEEDED
