"""An application's signal handler may raise in the midst of a wait: what the wait held is let go, and nobody else is held up."""

import fcntl
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from workmill.store.base import Store


class Interruption(Exception):
    """What a signal's handler raises: the timeout of an application, or its Ctrl-C."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(Interruption):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_that_ends_the_wait_for_a_turn_holds_up_nobody(path: Path, file_store: Store) -> None:
    gate, turn = (path.with_name(path.name + suffix) for suffix in ("-gate", "-turn"))
    with gate.open() as at_the_gate, turn.open() as in_turn:
        fcntl.flock(in_turn, fcntl.LOCK_EX)
        with interrupted_after(0.2):
            file_store.pause("q", actor="test")

        fcntl.flock(at_the_gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(in_turn, fcntl.LOCK_UN)
        fcntl.flock(at_the_gate, fcntl.LOCK_UN)

        file_store.resume("q", actor="test")


def test_a_signal_that_comes_while_a_transaction_waits_to_begin_leaves_none_open(path: Path, file_store: Store) -> None:
    file_store.counts()
    with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)) as program:
        program.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.5, lambda: program.execute("ROLLBACK"))
        release.start()

        with interrupted_after(0.2):
            file_store.pause("q", actor="test")
        release.join()

        program.execute("BEGIN IMMEDIATE")
        program.execute("ROLLBACK")
        file_store.pause("q", actor="test")
