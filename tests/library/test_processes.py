"""Forks, threads and several stores: whoever uses a Workmill from another process or thread gets what is its own."""

import asyncio
import os
import sqlite3
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from workmill import Workmill

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; returns its exit code, 0 when it raised nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads: that is what is tried here
        pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


@forks
def test_a_child_opens_connections_of_its_own(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")
    mill.enqueue("from-parent")

    def work() -> None:
        mill.enqueue("from-child")
        assert len(mill.jobs.find()) == 2

    codes = [in_child(work) if number == 0 else in_child(lambda: mill.enqueue("from-child")) for number in range(3)]
    mill.enqueue("from-parent")

    assert codes == [0, 0, 0]
    assert sorted(job.type for job in mill.jobs.find()) == ["from-child"] * 3 + ["from-parent"] * 2
    mill.close()


@forks
def test_a_child_waits_and_is_asynchronous_though_the_threads_stayed_with_its_parent(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    @mill.job(name="double")
    async def double(value: int) -> int:
        return 2 * value

    async def wait() -> None:
        job = await double.enqueue_async(21)
        assert (await job.wait_async(20)).result == 42

    with mill.run_worker():
        asyncio.run(wait())
        code = in_child(lambda: asyncio.run(wait()))

    assert code == 0
    mill.close()


@forks
def test_a_preloaded_application_serves_from_several_processes(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")

    codes = [in_child(lambda: [mill.enqueue("x") for _ in range(20)]) for _ in range(3)]

    assert codes == [0, 0, 0]
    assert len(mill.jobs.find(limit=100)) == 60
    mill.close()


def test_many_threads_share_one_workmill(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(25):
            mill.enqueue("x")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert mill.jobs.cancel_all(type="x").done == 200
    mill.close()


def test_a_closed_workmill_opens_again_at_its_next_use(tmp_path: Path) -> None:
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        first = mill.enqueue("x")

    assert mill.jobs.find() == [first]
    mill.close()
    mill.close()


def test_a_closed_workmill_that_follows_the_environment_follows_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = Workmill()
    for name in ("one", "two"):
        monkeypatch.setenv("WORKMILL_STORE", f"sqlite:///{tmp_path}/{name}.db")
        with mill:
            mill.enqueue("x")

    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["one.db", "two.db"]


def test_two_stores_in_memory_share_nothing() -> None:
    one, two = Workmill("sqlite://"), Workmill("sqlite://")
    one.enqueue("x")

    assert (len(one.jobs.find()), len(two.jobs.find())) == (1, 0)
    one.close()
    two.close()


def test_a_store_is_a_file_that_others_can_read(tmp_path: Path) -> None:
    with Workmill(f"sqlite:///{tmp_path}/jobs.db") as mill:
        job = mill.enqueue("x", {"a": 1})

    connection = sqlite3.connect(tmp_path / "jobs.db")
    assert connection.execute("SELECT id, payload FROM workmill_jobs").fetchall() == [(job.id, '{"a":1}')]
    connection.close()
