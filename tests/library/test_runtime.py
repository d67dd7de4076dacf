"""A worker as a process: what signals do to it, how it ends, and what it says. Real processes, real signals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workmill import State, Workmill
from workmill.domain.errors import ConfigurationError
from workmill.runtime import use_store
from workmill.store.open import same_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SECONDS = 20.0
APP = """
import os, time
from workmill import Workmill, current_job
mill = Workmill()

@mill.job(name="pid")
def pid() -> int:
    return os.getpid()

@mill.job(name="nap")
def nap(seconds: float) -> None:
    open("began", "w").close()
    time.sleep(seconds)

@mill.job(name="patient")
def patient(seconds: float) -> None:
    open("began", "w").close()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
        current_job().check()

@mill.job(name="isolated", isolate=True)
def isolated() -> int:
    return os.getppid()
"""
RUN = """
import sys
from workmill.runtime import run_worker_process
from workmill.engine.worker import WorkerOptions
sys.exit(run_worker_process("app:mill", WorkerOptions(**{options}), log_format="json"))
"""


class Running:
    """A worker process and its log."""

    def __init__(self, shop: "Shop", options: dict[str, object]) -> None:
        self.log = shop.folder / f"{len(shop.workers)}.log"
        with self.log.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN.replace("{options}", repr(options))],
                cwd=shop.folder,
                env={**os.environ, "WORKMILL_STORE": shop.url},
                stderr=stderr,
            )
        self.pid = self.process.pid
        self.signal = self.process.send_signal
        until(lambda: self.process.poll() is not None or "worker.joined" in self.events())

    def events(self) -> list[str]:
        """The names of the events in the log so far."""
        return [json.loads(line)["event"] for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]

    def code(self) -> int:
        """Wait for its end; its exit code."""
        return self.process.wait(SECONDS)


class Shop:
    """A folder with an application, its Workmill as this process sees it, and workers that are started in it."""

    def __init__(self, folder: Path) -> None:
        (folder / "app.py").write_text(APP)
        self.folder = folder
        self.url = f"sqlite:///{folder}/jobs.db"
        self.mill = Workmill(self.url)
        self.workers: list[Running] = []

    def worker(self, **options: object) -> Running:
        """Start a worker and wait until it is one."""
        self.workers.append(Running(self, options))
        return self.workers[-1]

    def running(self, type: str, seconds: float) -> str:
        """Enqueue a job that takes so long, and wait until its function runs; returns its id."""
        job = self.mill.enqueue(type, {"seconds": seconds})
        until((self.folder / "began").exists)
        return job.id


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    for worker in made.workers:
        worker.process.kill()
        worker.process.wait()
    made.mill.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def test_a_worker_runs_what_others_enqueue(shop: Shop) -> None:
    worker = shop.worker()

    assert shop.mill.enqueue("pid").wait(SECONDS).result == worker.pid


def test_isolated_jobs_run_in_children_of_the_worker(shop: Shop) -> None:
    worker = shop.worker()

    assert shop.mill.enqueue("isolated").wait(SECONDS).result == worker.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_lets_what_runs_end_and_leaves_nothing(shop: Shop, number: signal.Signals) -> None:
    worker = shop.worker()
    job_id = shop.running("nap", 0.5)

    worker.signal(number)

    assert worker.code() == 0
    assert worker.events()[-1] == "worker.stopped"
    assert shop.mill.jobs.get(job_id).state is State.SUCCEEDED


def test_when_the_grace_is_over_what_runs_is_told_to_stop_and_given_back_uncharged(shop: Shop) -> None:
    worker = shop.worker(grace=0.1)
    job_id = shop.running("patient", 600)

    worker.signal(signal.SIGTERM)

    assert worker.code() == 4
    assert (shop.mill.jobs.get(job_id).state, shop.mill.jobs.get(job_id).attempt) == (State.QUEUED, 0)


def test_the_second_signal_stops_at_once(shop: Shop) -> None:
    worker = shop.worker(grace=600)
    job_id = shop.running("patient", 600)

    worker.signal(signal.SIGTERM)
    until(lambda: "worker.draining" in worker.events())
    worker.signal(signal.SIGTERM)

    assert worker.code() == 4
    assert shop.mill.jobs.get(job_id).state is State.QUEUED


def test_a_thread_that_will_not_end_does_not_keep_the_process(shop: Shop) -> None:
    worker = shop.worker(grace=0)
    job_id = shop.running("nap", 600)

    worker.signal(signal.SIGINT)

    assert worker.code() == 4
    assert shop.mill.jobs.get(job_id).state is State.QUEUED


def test_tstp_drains_and_cont_resumes(shop: Shop) -> None:
    worker = shop.worker()
    worker.signal(signal.SIGTSTP)
    until(lambda: "worker.draining" in worker.events())
    job = shop.mill.enqueue("pid")

    worker.signal(signal.SIGCONT)

    assert job.wait(SECONDS).result == worker.pid
    assert "worker.resumed" in worker.events()


def test_a_burst_ends_when_nothing_is_left(shop: Shop) -> None:
    jobs = [shop.mill.enqueue("pid") for _ in range(5)]

    worker = shop.worker(burst=True)

    assert worker.code() == 0
    assert [job.refresh().state for job in jobs] == [State.SUCCEEDED] * 5


def test_usr1_writes_the_stacks_of_all_threads(shop: Shop) -> None:
    worker = shop.worker()
    shop.running("nap", 0.5)

    worker.signal(signal.SIGUSR1)
    worker.signal(signal.SIGTERM)

    assert worker.code() == 0
    assert "in nap\n" in worker.log.read_text()
    assert "most recent call first" in worker.log.read_text()


SCRIPT = """
import os
from workmill import Workmill
mill = Workmill()

@mill.job(isolate=True)
async def parent() -> int:
    return os.getppid()

def main():
    with mill.run_worker():
        assert parent.enqueue().wait(20).result == os.getpid()
    mill.close()
"""


def run_script(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(source)
    environment = {**os.environ, "WORKMILL_STORE": f"sqlite:///{folder}/script.db"}
    return subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_script_can_run_its_own_isolated_jobs(tmp_path: Path) -> None:
    ran = run_script(tmp_path, SCRIPT + "if __name__ == '__main__':\n    main()\n")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_children_import_the_module_that_declares_the_jobs_and_not_the_script_that_imports_it(tmp_path: Path) -> None:
    (tmp_path / "declares.py").write_text(SCRIPT)

    ran = run_script(tmp_path, "from declares import main, mill\nmain()\n")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_worker_that_an_import_starts_is_refused_in_the_children_that_import_it(tmp_path: Path) -> None:
    ran = run_script(tmp_path, SCRIPT.replace("wait(20)", "wait(3)") + "main()\n")

    assert ran.returncode == 1
    assert "an import starts a worker: let it stand below `if __name__ == '__main__':`" in ran.stderr + _errors(tmp_path)


def _errors(folder: Path) -> str:
    """What the jobs of the script failed with."""
    with Workmill(f"sqlite:///{folder}/script.db") as mill:
        return "\n".join(attempt.message or "" for job in mill.jobs.find() for attempt in mill.jobs.history(job))


def test_a_store_that_the_application_names_itself_is_not_replaced_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKMILL_STORE", "sqlite:///environment.db")
    use_store(free := Workmill(), "sqlite:///flag.db")

    assert free.url == "sqlite:///flag.db"
    with pytest.raises(
        ConfigurationError,
        match=r"--store: is sqlite:///flag.db, but the Workmill of the target names a store of its own, sqlite:///own.db",
    ):
        use_store(Workmill("sqlite:///own.db"), "sqlite:///flag.db")


def test_two_spellings_of_one_file_are_one_store_and_two_stores_in_memory_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKMILL_STORE", "")

    for spelling in ("sqlite:///own.db", "sqlite:///./x/../own.db", f"sqlite:///{tmp_path}/own.db"):
        use_store(Workmill("sqlite:///own.db"), spelling)
    assert not same_store("sqlite:///:memory:", "sqlite://")
