"""Isolated jobs through a whole worker: `workmill worker`, a store file, real signals."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from workmill import Retry, Workmill
from workmill.domain.states import FINAL, State

JOBS = textwrap.dedent(
    """
    import os, pathlib, signal, subprocess, time
    from workmill import Workmill, current_job

    mill = Workmill()

    @mill.job(name="quick", isolate=True)
    def quick():
        return os.getpid()

    @mill.job(name="long", isolate=True)
    def long(path: str, seconds: float = 1000):
        helper = subprocess.Popen(["sleep", "1000"])
        pathlib.Path(path).write_text(f"{os.getpid()} {helper.pid} ")
        current_job().progress(0.5, "half way")
        time.sleep(seconds)
        helper.kill()
        return current_job().attempt

    @mill.job(name="end", isolate=True)
    def end():
        os.kill(os.getpid(), signal.SIGSEGV)

    @mill.job(name="spin", isolate=True)
    def spin():
        while True:
            pass
    """
)


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


class Site:
    """A folder with a store and a module of jobs, and the workers started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "isolated_jobs.py").write_text(JOBS)
        self.mill = Workmill(f"sqlite:///{folder / 'jobs.db'}")
        self.workers: list[subprocess.Popen[bytes]] = []

    def worker(self, *options: str) -> psutil.Process:
        command = [sys.executable, "-m", "workmill", "--store", self.mill.url, "worker", "isolated_jobs:mill", *options]
        self.workers.append(subprocess.Popen(command, cwd=self.folder))
        return psutil.Process(self.workers[-1].pid)

    def pids(self, name: str) -> list[int]:
        """The job's process and its helper, once both are there."""
        numbers = (self.folder / name).read_text().split() if (self.folder / name).exists() else []
        return [int(number) for number in numbers] if len(numbers) == 2 else []

    def ended(self, job: Any) -> Any:
        wait_until(lambda: self.mill.jobs.get(job.id).state in FINAL)
        return self.mill.jobs.get(job.id)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for worker in site.workers:
        worker.kill()
        worker.wait()
    site.mill.close()


def test_a_job_that_listens_to_nothing_is_ended_at_its_timeout_and_the_worker_goes_on(site: Site) -> None:
    site.worker("-c", "1")
    spinning = site.mill.enqueue("spin", timeout=0.3, retry=Retry(max_attempts=1))
    quick = site.mill.enqueue("quick")

    assert site.ended(quick).state is State.SUCCEEDED
    ended = site.ended(spinning)
    assert (ended.state, ended.error.type) == (State.DEAD, "TimeoutError")
    assert "in spin" in site.mill.jobs.history(spinning.id)[-1].traceback


def test_a_job_that_crashes_fails_alone(site: Site) -> None:
    site.worker()
    crash = site.mill.enqueue("end", retry=Retry(max_attempts=1))
    others = [site.mill.enqueue("quick") for _ in range(20)]

    assert site.ended(crash).error.message == "killed by signal SIGSEGV"
    assert {site.ended(job).state for job in others} == {State.SUCCEEDED}
    assert site.ended(crash).record.losses == 0


def test_a_cancelled_job_is_ended_with_what_it_has_started(site: Site) -> None:
    site.worker("--lease", "1")
    job = site.mill.enqueue("long", {"path": "pids"})
    wait_until(lambda: site.pids("pids"))

    site.mill.jobs.cancel(job.id)

    assert site.ended(job).state is State.CANCELLED
    wait_until(lambda: all(map(gone, site.pids("pids"))))


def test_progress_is_shown_while_the_job_runs(site: Site) -> None:
    site.worker("--lease", "1")
    job = site.mill.enqueue("long", {"path": "pids"})

    wait_until(lambda: site.mill.jobs.get(job.id).progress is not None)

    assert site.mill.jobs.get(job.id).progress.message == "half way"


def test_a_killed_worker_leaves_nothing_running_and_its_job_runs_elsewhere(site: Site) -> None:
    first = site.worker("--lease", "1")
    job = site.mill.enqueue("long", {"path": "pids", "seconds": 1.0})
    wait_until(lambda: site.pids("pids"))
    family = first.children(recursive=True)

    first.kill()
    wait_until(lambda: all(gone(member.pid) for member in family))
    site.worker("--lease", "1")

    ended = site.ended(job)
    assert (ended.state, ended.record.losses, ended.result) == (State.SUCCEEDED, 1, 1)


def test_a_stop_lets_a_run_end_within_the_grace(site: Site) -> None:
    worker = site.worker()
    job = site.mill.enqueue("long", {"path": "pids", "seconds": 1.0})
    wait_until(lambda: site.pids("pids"))

    worker.terminate()

    assert worker.wait(30) == 0
    assert site.ended(job).state is State.SUCCEEDED


def test_a_stop_gives_back_what_does_not_end_within_the_grace_and_leaves_no_process(site: Site) -> None:
    worker = site.worker("--grace", "0")
    job = site.mill.enqueue("long", {"path": "pids"})
    wait_until(lambda: site.pids("pids"))
    family = worker.children(recursive=True)

    worker.terminate()

    assert worker.wait(30) == 4
    assert (site.mill.jobs.get(job.id).state, site.mill.jobs.get(job.id).attempt) == (State.QUEUED, 0)
    wait_until(lambda: all(gone(member.pid) for member in family))


def test_a_worker_without_isolated_jobs_to_run_has_no_children(site: Site) -> None:
    worker = site.worker()
    wait_until(site.mill.workers.list)

    assert worker.children() == []
