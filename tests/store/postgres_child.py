"""What other processes do in the tests of the PostgreSQL store. Run as a program: `postgres_child.py VERB URL SCHEMA …`."""

import os
import sys
import time
from contextlib import closing, suppress

from workmill.domain.errors import StoreError
from workmill.domain.worker import Held, Wants
from workmill.store.base import Store
from workmill.store.open import open_store
from workmill.testing.factories import a_job, join, submit, succeeded


def say(*words: object) -> None:
    """One line, at once and in one piece: what has been said has been acknowledged."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def submit_forever(store: Store) -> None:
    """Say each id once its job is acknowledged, and go on until killed, whatever happens to the server."""
    while True:
        job = a_job()
        while True:
            with suppress(StoreError):
                store.submit([job])
                break
            time.sleep(0.02)
        say(job.id)


def work_forever(store: Store) -> None:
    """Exchange as fast as can be, submitting what is claimed anew, until killed. Says `go` once it does."""
    worker = join(store)
    store.submit([a_job() for _ in range(200)])
    runs = store.exchange(worker, (), Wants(anywhere=50)).claimed
    say("go")
    while True:
        store.submit([a_job() for _ in runs])
        runs = store.exchange(worker, [succeeded(run) for run in runs], Wants(anywhere=50)).claimed


def hold_for_ever(store: Store, count: str) -> None:
    """Claim, say what, and beat until killed."""
    worker = join(store, lease=3)
    runs = store.exchange(worker, (), Wants(anywhere=int(count))).claimed
    for run in runs:
        say(run.id)
    say("go")
    while True:
        store.heartbeat(worker, [Held(run.fence) for run in runs], time.time_ns())
        time.sleep(0.3)


def submit_one(store: Store) -> None:
    """Submit, and end."""
    say(submit(store).id)


VERBS = {function.__name__: function for function in (submit_forever, work_forever, hold_for_ever, submit_one)}

if __name__ == "__main__":
    verb, address, schema, *more = sys.argv[1:]
    with closing(open_store(address, schema=schema)) as opened:
        VERBS[verb](opened, *more)  # type: ignore[operator]
