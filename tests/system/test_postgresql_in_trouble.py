"""PostgreSQL under load is killed, stays away, has no connection left, or hands over to its standby; processes fork: work goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg
import pytest

from workmill.domain.errors import StoreError, StoreUnavailable
from workmill.domain.job import Selection
from workmill.domain.states import State
from workmill.store.base import Store
from workmill.testing.factories import a_job, submit
from workmill.testing.servers import PostgresServer

Patiently = Callable[[Callable[[], Any]], Any]


class Load:
    """A thread that submits jobs one after the other, each until it is answered, from when it is entered until it is left."""

    def __init__(self, store: Store) -> None:
        self.answered: list[str] = []
        self._store = store
        self._over = False
        self._thread = threading.Thread(target=self._submit)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()

    def _submit(self) -> None:
        while not self._over:
            job = a_job("work", '{"ms": 2}')
            while True:
                with suppress(StoreError):
                    self._store.submit([job])
                    break
                time.sleep(0.02)
            self.answered.append(job.id)
            time.sleep(0.002)


def speed(scene: Any, seconds: float) -> float:
    """Jobs that ended in a second."""
    before = len(scene.marks("end"))
    time.sleep(seconds)
    return (len(scene.marks("end")) - before) / seconds


def test_immediate_restarts_under_load_lose_nothing_and_two_workers_go_on_by_themselves(
    scene: Any, patiently: Patiently, rounds: Callable[..., int]
) -> None:
    workers = [scene.start("-c", "2"), scene.start("-c", "2")]
    with Load(scene.store) as load:
        patiently(lambda: len(scene.marks("end")) > 50)
        before = speed(scene, 1)
        for _ in range(rounds(2, soak=20)):
            scene.server.restart(signal.SIGQUIT)
            ended = Counter(mark.pid for mark in scene.marks("end"))
            patiently(lambda ended=ended: all(Counter(m.pid for m in scene.marks("end"))[w.pid] > ended[w.pid] + 20 for w in workers))
        after = speed(scene, 1)
    print(f"\njobs a second: {before:.0f} before, {after:.0f} after the restarts, {after / before:.2f} of it")  # noqa: T201

    assert scene.ends(load.answered) == {State.SUCCEEDED}
    assert [worker.poll() for worker in workers] == [None, None]
    assert {mark.job for mark in scene.marks("end")} >= set(load.answered)
    assert {job.losses for job in scene.store.jobs(Selection(), limit=1_000).jobs} == {0}
    assert scene.violations() == []


@pytest.mark.parametrize("how", ["the server is stopped", "the server hangs"])
def test_a_worker_that_must_end_while_the_server_stays_away_ends_in_time_and_its_exit_code_says_that_work_was_left(
    scene: Any, patiently: Patiently, how: str
) -> None:
    worker = scene.start("-c", "2", "--grace", "0.5")
    scene.submit(1, "heed")
    scene.submit(1, "ignore", 60_000)
    patiently(lambda: len(scene.marks("begin")) == 2)

    with away(scene.server, hanging=how == "the server hangs"):
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(0.5 + 5)
    scene.start("-c", "2")

    assert code == 4
    patiently(lambda: len(scene.marks("begin")) == 3)  # one runs again; the other waits aside as a suspect while this one runs


@contextmanager
def away(server: PostgresServer, *, hanging: bool) -> Iterator[None]:
    """The server is stopped, or hangs without a word, until the end of the block."""
    if not hanging:
        server.stop()
        try:
            yield
        finally:
            server.start()
        return
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    try:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def test_a_worker_that_finds_no_server_says_so_by_its_exit_code(scene: Any) -> None:
    with pytest.raises(AssertionError, match="No such file"):
        scene.start(url=f"postgresql://postgres@/postgres?host={scene.folder}")

    assert scene.processes[-1].returncode == 3


def test_a_server_without_a_free_connection_is_unavailable_and_a_worker_goes_on_when_there_is_one(scene: Any, patiently: Patiently) -> None:
    worker = scene.start("-c", "2")
    (running,) = scene.submit(1, ms=2_000)
    patiently(lambda: scene.marks("begin"))
    scene.store.close()
    theirs = "FROM pg_stat_activity WHERE application_name LIKE 'workmill%'"

    with psycopg.connect(scene.server.url, autocommit=True) as sql, ExitStack() as stack:

        def take_all() -> bool:
            """End the store's connections and take every one that is free; whether the store has none left."""
            sql.execute(f"SELECT pg_terminate_backend(pid, 1000) {theirs}")
            with suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(scene.server.url))
            return sql.execute(f"SELECT count(*) {theirs}").fetchall() == [(0,)]

        patiently(take_all)
        with pytest.raises(StoreUnavailable, match="too many"):
            submit(scene.store, "work")
        patiently(lambda: "too many" in scene.log)

    later = submit(scene.store, "work")
    assert scene.ends([running, later.id]) == {State.SUCCEEDED}
    assert worker.poll() is None
    assert scene.begun() == Counter([running, later.id])


FORKING = """
import os, sys, threading
from workmill.store.open import open_store
from workmill.testing.factories import submit

store, woken = open_store(os.environ["WORKMILL_STORE"], schema=os.environ["WORKMILL_SCHEMA"]), threading.Semaphore(0)

def say(what):
    os.write(1, f"{what}\\n".encode())

def hear(what):
    assert sys.stdin.readline() == f"{what}\\n"

def woken_by_others():
    return woken.acquire(timeout=30)

def listen():
    store.subscribe(woken.release)
    assert woken_by_others()  # it listens now

listen()
submit(store)
assert woken_by_others()
store.counts()
say("parent")
hear("fork")
child = os.fork()
if child == 0:
    woken = threading.Semaphore(0)
    submit(store)
    store.counts()
    listen()
    say("child")
    assert woken_by_others()
    store.close()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
while woken.acquire(blocking=False):
    pass
say("alone")
assert woken_by_others()
submit(store)
store.counts()
say("done")
hear("end")
"""


def test_a_process_that_forks_while_it_listens_keeps_its_connections_and_its_child_makes_its_own(scene: Any, patiently: Patiently) -> None:
    backends = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'workmill%'"
    environment = {**os.environ, "WORKMILL_STORE": scene.server.url, "WORKMILL_SCHEMA": scene.schema}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    scene.store.close()
    with (
        psycopg.connect(scene.server.url, autocommit=True) as sql,
        subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1) as process,
    ):
        assert process.stdout is not None
        assert process.stdin is not None
        said = process.stdout.readline()
        patiently(lambda: len(sql.execute(backends).fetchall()) == 4)  # one writes, one reads, one tells, one hears
        parents = set(sql.execute(backends).fetchall())
        process.stdin.write("fork\n")
        said += process.stdout.readline()
        both = set(sql.execute(backends).fetchall())
        submit(scene.store)
        said += process.stdout.readline()
        submit(scene.store)
        scene.store.close()
        said += process.stdout.readline()
        patiently(lambda: set(sql.execute(backends).fetchall()) == parents)  # what others have closed is shown a moment longer
        process.stdin.write("end\n")

    assert said.split() == ["parent", "child", "alone", "done"]
    assert process.returncode == 0
    assert len(both - parents) == 4
    assert sum(scene.store.counts().values()) == 5


def test_a_worker_with_two_hosts_goes_on_with_the_standby_once_that_is_promoted_and_no_answered_job_is_lost(
    tmp_path: Path, patiently: Patiently, staged: Callable[..., Any]
) -> None:
    with ExitStack() as stack:
        primary = PostgresServer(settings=["synchronous_standby_names=*"])
        stack.callback(primary.remove)
        standby = PostgresServer(of=primary)
        stack.callback(standby.remove)
        url = f"postgresql://postgres@/postgres?host={primary.directory},{standby.directory}&target_session_attrs=read-write"
        scene = staged(primary, url)
        worker = scene.start("-c", "2")
        with Load(scene.store) as load:
            patiently(lambda: len(scene.marks("end")) > 20)
            primary.stop(signal.SIGQUIT)
            with psycopg.connect(standby.url, autocommit=True) as sql:
                sql.execute("SELECT pg_promote()")
            answered = len(load.answered)
            patiently(lambda: len(load.answered) > answered + 20)

        assert scene.ends(load.answered) == {State.SUCCEEDED}
        assert worker.poll() is None
        assert scene.violations() == []


def test_a_limit_of_one_holds_among_twenty_slots_and_is_free_again_when_its_holder_is_killed(scene: Any, patiently: Patiently) -> None:
    workers = [scene.start("-c", "7") for _ in range(3)]
    scene.store.limit("narrow", 1, actor="test")
    jobs = (
        scene.submit(5, ms=10, queue="narrow", priority=1)
        + scene.submit(1, "fall", queue="narrow")
        + scene.submit(5, queue="narrow", priority=-1)
    )

    assert scene.ends(jobs) == {State.SUCCEEDED}
    assert sorted(worker.poll() is None for worker in workers) == [False, True, True]
    marks = scene.marks()
    fallen = next(mark for mark in marks if scene.begun()[mark.job] == 2)
    kept = [mark for mark in marks if mark != fallen]
    assert [mark.what for mark in kept] == ["begin", "end"] * len(jobs)
    assert [mark.job for mark in kept[::2]] == [mark.job for mark in kept[1::2]]
    assert scene.violations() == []


def test_four_jobs_that_kill_their_workers_at_once_end_dead_and_each_neighbour_succeeds(scene: Any, patiently: Patiently) -> None:
    killers = scene.submit(4, "kill", max_losses=1)
    neighbours = scene.submit(12, ms=20, max_losses=2)
    scene.start("-c", "8", "-p", "2", lease=1)

    assert scene.ends(neighbours) == {State.SUCCEEDED}
    assert scene.ends(killers) == {State.DEAD}
    assert {scene.store.job(job).error.type for job in killers} == {"worker_lost"}
    assert scene.violations() == []
