"""What other processes do in the tests of the SQLite store. Run as a program: `child.py VERB PATH …`; it speaks one line at a time."""

import logging
import os
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from workmill.domain.errors import StoreError
from workmill.domain.states import State
from workmill.domain.worker import Wants
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.store.sqlite import database
from workmill.store.sqlite.session import SQLiteSession
from workmill.testing.factories import a_job, failed, join, submit, succeeded


def say(*words: object) -> None:
    """One line, at once and in one piece, whoever else writes to the same pipe: what has been said has been acknowledged."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def url(path: str) -> str:
    return f"sqlite:///{path}"


def submit_forever(path: str) -> None:
    """Say each id once its job is acknowledged, and go on until killed."""
    with closing(open_store(url(path))) as store:
        while True:
            say(submit(store).id)


def work_forever(path: str, batch: str) -> None:
    """Exchange as fast as can be, submitting what is claimed anew, until killed. Says `go` once it does."""
    with closing(open_store(url(path))) as store:
        worker = join(store)
        store.submit([a_job() for _ in range(2 * int(batch))])
        runs = store.exchange(worker, (), Wants(anywhere=int(batch))).claimed
        say("go")
        while True:
            store.submit([a_job() for _ in runs])
            runs = store.exchange(worker, [succeeded(run) for run in runs], Wants(anywhere=int(batch))).claimed


def take_part(path: str, turns: str) -> None:
    """Do a bit of everything, so often; every error ends it with a traceback."""
    with closing(open_store(url(path))) as store:
        worker = join(store)
        for turn in range(int(turns)):
            store.submit([a_job(backoff=[0]) for _ in range(5)])
            runs = store.exchange(worker, (), Wants(anywhere=4)).claimed
            store.exchange(worker, [failed(run) if run.attempt == 1 else succeeded(run) for run in runs], Wants())
            store.heartbeat(worker, [], turn + 1)
            if store.win_turn(0.05):
                store.fold()
            store.queues()
            store.stats(60)
        say(store.leave(worker))


def submit_with_little_room(path: str, kilobytes: str) -> None:
    """Submit under a limit on the size of files, as on a full disk, then say what happened and go on without the limit."""
    with closing(open_store(url(path))) as store:
        store.counts()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(kilobytes) * 1024, most))
        try:
            while True:
                say(submit(store, payload='"' + "x" * 4_000 + '"').id)
        except StoreError as error:
            say("refused", type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        say(submit(store).id)


def die_at_each_statement(path: str) -> None:
    """For k = 0, 1, …: a forked child dies at the k-th statement of a submission and of an exchange. Says how many there were."""
    with closing(open_store(url(path))) as store:
        store.counts()
        for name, action in {"submission": _a_submission, "exchange": _an_exchange}.items():
            at = 0
            while _forked(lambda action=action, at=at: _die_at(store, action, at)) == 9:
                at += 1
            say(name, at)


def _a_submission(store: Store) -> None:
    store.submit([a_job(queue=f"q{number}") for number in range(3)])


def _an_exchange(store: Store) -> None:
    store.submit([a_job() for _ in range(3)])
    worker = join(store)
    one, two = store.exchange(worker, (), Wants(anywhere=2)).claimed
    store.exchange(worker, [succeeded(one), failed(two)], Wants(anywhere=1))
    store.leave(worker)


def _die_at(store: Store, action: Callable[[Store], None], at: int) -> None:
    left = iter(range(at))

    class Mortal(SQLiteSession):
        def __init__(self, execute: Callable[[str, Sequence[Any]], sqlite3.Cursor], now: int) -> None:
            def run(text: str, values: Sequence[Any]) -> sqlite3.Cursor:
                if next(left, None) is None:
                    os._exit(9)
                return execute(text, values)

            super().__init__(run, now)

    database.SQLiteSession = Mortal  # type: ignore[misc]
    action(store)


def fork_after_use(path: str) -> None:
    """The parent closes while the child has the store open; both submit before and after."""
    store = open_store(url(path))
    say(submit(store).id)
    to_child, to_parent = os.pipe(), os.pipe()

    def child() -> None:
        say(submit(store).id)
        os.write(to_parent[1], b"x")
        os.read(to_child[0], 1)
        say(submit(store).id)
        os._exit(0)

    child_id = os.fork()
    if not child_id:
        child()
    os.read(to_parent[0], 1)
    say(submit(store).id)
    store.close()
    os.write(to_child[1], b"x")
    os.waitpid(child_id, 0)


def fork_while_writing(path: str, children: str) -> None:
    """Another thread writes all the time while children are made; each submits and ends as any program would."""
    store = open_store(url(path))
    stopping = threading.Event()

    def write() -> None:
        while not stopping.is_set():
            say(submit(store).id)
            store.counts()

    writer = threading.Thread(target=write)
    writer.start()
    codes = [_forked(lambda: say(submit(store).id)) for _ in range(int(children))]
    stopping.set()
    writer.join()
    store.close()
    say("codes", sorted(set(codes)))


def fork_in_memory() -> None:
    """Says what the child and then the parent see."""
    with closing(open_store("sqlite://")) as store:
        submit(store)
        _forked(lambda: say("child", store.counts().get(("default", State.QUEUED), 0), submit(store).created))
        say("parent", store.counts()["default", State.QUEUED])


def _forked(action: Callable[[], None]) -> int:
    """The exit code of a forked child that does it."""
    child_id = os.fork()
    if child_id:
        return os.waitstatus_to_exitcode(os.waitpid(child_id, 0)[1])
    action()
    os._exit(0)


def hold_for(path: str, seconds: str) -> None:
    """Hold the turn of the writers, as a process does that was stopped in the middle of a transaction."""
    with closing(database.SQLiteDatabase(path)) as held, held.write():
        say("held")
        time.sleep(float(seconds))


VERBS: dict[str, Callable[..., None]] = {
    "submit_forever": submit_forever,
    "work_forever": work_forever,
    "take_part": take_part,
    "submit_with_little_room": submit_with_little_room,
    "die_at_each_statement": die_at_each_statement,
    "fork_after_use": fork_after_use,
    "fork_while_writing": fork_while_writing,
    "fork_in_memory": fork_in_memory,
    "hold_for": hold_for,
}

if __name__ == "__main__":
    logging.disable(logging.WARNING)  # an old SQLite's warning of company is not what a test listens for
    VERBS[sys.argv[1]](*sys.argv[2:])
