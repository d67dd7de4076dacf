"""Several processes on one file: everybody gets a turn, nobody sees a lock, and a fork takes nothing with it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from workmill.domain.states import FINAL, State
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.sqlite import connections
from workmill.store.sqlite.turnstile import FileLock, Turnstile
from workmill.testing.factories import submit
from workmill.testing.steps import settle

CHILD = Path(__file__).with_name("child.py")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@contextmanager
def child(verb: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that does something, and is killed in the end if it still runs."""
    command = [sys.executable, "-W", "error", str(CHILD), verb, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it has forked


def told(verb: str, *arguments: object) -> list[str]:
    """The lines that a process said; it must end well."""
    with child(verb, *arguments) as process:
        said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    return said.splitlines()


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{path}")) as store:
        yield store


def test_eight_processes_on_one_file_never_see_a_lock(path: Path, store: Store, rounds: Callable[..., int]) -> None:
    turns = rounds(25, soak=3_000)
    errors: list[str] = []

    def run() -> None:
        with child("take_part", path, turns) as process:
            errors.append(process.communicate(timeout=600)[1])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == [""] * 8
    assert sum(store.counts().values()) == 8 * 5 * turns
    settle(store)


def test_who_writes_beside_a_busy_writer_is_not_starved(path: Path, store: Store) -> None:
    written: Counter[int] = Counter()
    with child("work_forever", path, 500) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        began = time.monotonic()
        while (passed := time.monotonic() - began) < 4:
            submit(store, queue="beside")
            written[int(passed)] += 1

    assert min(written[second] for second in range(4)) >= 3
    settle(store)


def test_the_submission_of_another_process_wakes_those_who_subscribed(path: Path, store: Store) -> None:
    woken = threading.Semaphore(0)
    stop = store.subscribe(lambda: woken.release(1))
    with child("submit_forever", path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        woken.acquire()
        while woken.acquire(timeout=0):
            pass

        process.stdout.readline()

        assert woken.acquire(timeout=10)
    stop()


def test_a_process_that_stands_still_with_the_turn_holds_nobody_up_for_ever(path: Path) -> None:
    seen: list[int] = []
    with child("hold_for", path, 600) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        turnstile = Turnstile(str(path), 3_600, lambda: seen.append(1))

        with turnstile:
            pass

        turnstile.close()
    assert seen


def test_the_one_who_waits_is_next(tmp_path: Path) -> None:
    """With a gate before the turn, a holder that comes again stands behind the one who waits, however often it tries."""
    holder, waiter = Turnstile(str(tmp_path / "x"), 30, _nothing), Turnstile(str(tmp_path / "x"), 30, _nothing)
    order: list[str] = []

    def wait() -> None:
        with waiter:
            order.append("waiter")

    thread = threading.Thread(target=wait)
    with holder:
        thread.start()
        gate = FileLock(str(tmp_path / "x-gate"))
        _until(lambda: not _is_free(gate))
    with holder:
        order.append("holder")
    thread.join()
    for each in (holder, waiter, gate):
        each.close()

    assert order == ["waiter", "holder"]


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 51, 3), True),
        ((3, 52, 0), True),
        ((3, 50, 7), True),
        ((3, 44, 6), True),
        ((3, 51, 2), False),
        ((3, 45, 0), False),
        ((3, 40, 1), False),
    ],
    ids=str,
)
def test_the_versions_with_the_wal_reset_bug_are_known(version: tuple[int, ...], *, safe: bool) -> None:
    assert connections.resets_safely(version) is safe


def test_company_on_an_old_sqlite_is_warned_of_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_warned", threading.Event())
    monkeypatch.setattr(connections.sqlite3, "sqlite_version_info", (3, 40, 1))

    connections.warn_of_company()
    connections.warn_of_company()

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "3.51.3" in caplog.text


@forks
def test_a_forked_child_has_its_own_connections_and_outlives_its_parents(path: Path, store: Store) -> None:
    said = told("fork_after_use", path)

    assert len(said) == len(set(said)) == 4
    assert {store.job(job_id).state for job_id in said} == {State.QUEUED}
    settle(store)


@forks
def test_forks_beside_a_writing_thread_all_work(path: Path, store: Store, rounds: Callable[..., int]) -> None:
    *said, codes = told("fork_while_writing", path, rounds(15, soak=500))

    assert codes == "codes [0]"
    assert sum(store.counts().values()) == len(set(said))
    settle(store)


@forks
def test_a_forked_child_has_none_of_its_parents_memory() -> None:
    assert told("fork_in_memory") == ["child 0 True", "parent 1"]


@forks
def test_a_fork_closes_what_is_open_so_that_nothing_is_inherited(store: Store, path: Path) -> None:
    submit(store)

    files = multiprocessing.get_context("fork").SimpleQueue()
    process = multiprocessing.get_context("fork").Process(target=_say_open_files, args=(files, str(path)))
    process.start()

    assert files.get() == []
    process.join()
    assert store.counts() == {("default", State.QUEUED): 1}


def test_acknowledged_jobs_survive_a_kill(path: Path, store: Store, rounds: Callable[..., int]) -> None:
    acknowledged: list[str] = []
    for _ in range(rounds(4, soak=500)):
        with child("submit_forever", path) as process:
            assert process.stdout is not None
            acknowledged += [process.stdout.readline().strip() for _ in range(10)]
            process.send_signal(signal.SIGKILL)
            acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]

    assert {store.job(job_id).state for job_id in acknowledged} == {State.QUEUED}
    settle(store)


def test_a_worker_that_is_killed_leaves_every_job_whole(path: Path, store: Store, rounds: Callable[..., int]) -> None:
    for _ in range(rounds(3, soak=300)):
        with child("work_forever", path, 50) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.05)

    counts = store.counts()
    assert all(state in FINAL | {State.QUEUED, State.RUNNING} for _, state in counts)
    assert store.invariants() == []
    settle(store)


def test_a_limit_on_the_size_of_files_ends_nothing(path: Path, store: Store) -> None:
    *said, refused, after = told("submit_with_little_room", path, 400)

    assert refused.startswith("refused Store")
    assert said
    assert {store.job(job_id).state for job_id in (*said, after)} == {State.QUEUED}
    settle(store)


@forks
def test_a_death_at_any_statement_leaves_all_or_nothing(path: Path, store: Store) -> None:
    said = dict(line.split() for line in told("die_at_each_statement", path))

    assert int(said["submission"]) >= 2
    assert int(said["exchange"]) >= 15
    assert store.invariants() == []
    settle(store)


def _say_open_files(files: SimpleQueue[list[str]], path: str) -> None:
    descriptors = Path("/proc/self/fd")
    links = [link.readlink() for link in descriptors.iterdir() if link.is_symlink()] if descriptors.exists() else []
    files.put([str(link) for link in links if str(link).startswith(path)])


def _nothing() -> None: ...


def _is_free(lock: FileLock) -> bool:
    taken = lock.try_acquire()
    if taken:
        lock.release()
    return taken


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)
